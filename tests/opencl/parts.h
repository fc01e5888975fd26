/* SPDX-License-Identifier: MIT
 * For tests of the inner parts of the opencl backend: they are linked into the test, so that it can
 * reach behind the table. A device of PoCL, a graph and weights with made-up values. */
#ifndef TESTS_OPENCL_PARTS_H
#define TESTS_OPENCL_PARTS_H

#include "backends/opencl/internal.h"

#include <tfm/plan.h>

#include "lib/core/device.h"
#include "tests/core/runner.h"
#include "tests/devices.h"

/* As test_devices_try, but the backend is the one linked in. */
static inline enum tfm_status parts_try(struct test_devices *d, struct tfm_error *err)
{
    memset(d, 0, sizeof *d);
    unsetenv("TFM_PLUGIN_PATH");
    enum tfm_status status = tfm_registry_create(NULL, 0, &d->registry, err);
    if (status == TFM_STATUS_OK)
        status = tfm_registry_add(d->registry, &tfm_backend_v1, err);
    if (status == TFM_STATUS_OK)
        status = tfm_devices_open(d->registry, "opencl:Portable Computing Language", 1, d->device,
                                  2, &d->n, err);
    return status;
}

static inline void parts_open(struct test_devices *d)
{
    struct tfm_error err = {0};
    ck_assert_msg(parts_try(d, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(d->n, 1);
}

/* For tests_ask. */
static inline int parts_present(void)
{
    struct test_devices d;
    struct tfm_error err = {0};
    const int present = parts_try(&d, &err) == TFM_STATUS_OK;
    if (!present)
        fprintf(stderr, "%s\n", err.text);
    test_devices_close(&d);
    return present;
}

static inline struct tfm__cl_device *parts_handle(const struct test_devices *d)
{
    return tfm__device_handle(d->device[0]);
}

/* Value i of a made-up tensor: multiples of 1/8 in [-0.75, 0.75]; `seed` tells tensors apart. */
static inline float parts_value(size_t i, unsigned seed)
{
    return (float)(int)((i * 7 + i / 13 * 3 + seed * 5) % 13) * 0.125f - 0.75f;
}

/* Declares a parameter of the graph and gives the weights its values. */
static inline struct tfm_tensor *parts_parameter(struct tfm_graph *graph,
                                                 struct tfm_weights *weights, const char *name,
                                                 enum tfm_dtype dtype, int64_t rows,
                                                 int64_t columns, unsigned seed)
{
    const int64_t shape[] = {rows, columns};
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    const size_t n = (size_t)(rows * columns);
    float *values = malloc(n * sizeof *values);
    void *data = malloc(n / info->block * info->bytes);
    struct tfm_error err = {0};

    ck_assert(values && data);
    for (size_t i = 0; i < n; i++)
        values[i] = parts_value(i, seed);
    tfm_dtype_from_f32(dtype, values, data, 0, n);
    ck_assert_msg(tfm_weights_set(weights, name, dtype, 2, shape, data,
                                  n / info->block * info->bytes, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    free(values);
    free(data);
    return tfm_graph_parameter(graph, name, dtype, 2, shape);
}

#endif
