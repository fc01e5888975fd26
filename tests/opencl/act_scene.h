/* SPDX-License-Identifier: MIT
 * For tests of products of rounded factors (TFM_ACT): one graph on a device of PoCL, compiled and run, and copies of the
 * kernels in which a way to multiply is wrong. */
#ifndef TESTS_OPENCL_ACT_SCENE_H
#define TESTS_OPENCL_ACT_SCENE_H

#include "tests/opencl/parts.h"

enum { ROWS = 43 }; /* of the capacity */

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;
static struct tfm_plan *plan;
static struct tfm_exec *exec;

static inline void scene_open(const char *act)
{
    setenv("TFM_ACT", act, 1);
    parts_open(&devices);
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
    plan = NULL;
    exec = NULL;
}

static inline void undo(void)
{
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    exec = NULL;
    plan = NULL;
}

static inline void scene_close(void)
{
    undo();
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    test_devices_close(&devices);
    unsetenv("TFM_ACT");
}

static inline void compile(void)
{
    const struct tfm_capacity capacity = {ROWS, 1, ROWS};
    struct tfm_error err = {0};

    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* n floats or ids. */
static inline void bind(const char *name, void *memory, size_t n)
{
    ck_assert_int_eq(tfm_exec_bind(exec, name, memory, n * 4, NULL), TFM_STATUS_OK);
}

static inline void run(uint32_t n)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {n, n > 0, 0, &zero, &zero, &zero, NULL};
    struct tfm_error err = {0};
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
}

static inline float *floats(size_t n)
{
    float *made = calloc(n, sizeof *made);
    ck_assert_ptr_nonnull(made);
    return made;
}

/* The n values that the weights have under a name, as floats. */
static inline double *stored(const char *name, size_t n)
{
    enum tfm_dtype dtype;
    struct tfm_weight weight;
    float *values = floats(n);
    double *made = calloc(n, sizeof *made);
    ck_assert_ptr_nonnull(made);
    ck_assert_int_eq(tfm_weights_get(weights, name, &dtype, &weight, NULL), TFM_STATUS_OK);
    tfm_dtype_to_f32(dtype, weight.data, 0, n, values);
    for (size_t i = 0; i < n; i++)
        made[i] = (double)values[i];
    free(values);
    return made;
}

/* ---- kernels that are wrong ---- */

static char spoiled[64]; /* a folder */

/* Devices that are opened from now on get a copy of kernels/ in which sed has put `to` for `from` in a file. */
static inline void spoil(const char *file, const char *from, const char *to)
{
    const char *top = getenv("TFM_TEST_SRCDIR"), *tmp = getenv("TMPDIR");
    char command[1024];

    top = top ? top : ".";
    snprintf(spoiled, sizeof spoiled, "%.40s/tfm-act-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(spoiled));
    snprintf(command, sizeof command,
             "cp '%s'/kernels/*.cl '%s'/kernels/step.h '%s' && sed -i 's/%s/%s/' '%s/%s' && "
             "! cmp -s '%s/%s' '%s/kernels/%s'",
             top, top, spoiled, from, to, spoiled, file, spoiled, file, top, file);
    ck_assert_int_eq(system(command), 0);
    setenv("TFM_KERNEL_PATH", spoiled, 1);
}

static inline void unspoil(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", spoiled);
    ck_assert_int_eq(system(command), 0);
    unsetenv("TFM_KERNEL_PATH");
}

#endif
