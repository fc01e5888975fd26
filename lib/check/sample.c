/* SPDX-License-Identifier: MIT
 * Building and filling of samples. */
#include "lib/check/sample.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken(const struct tfm__sample *sample)
{
    return sample->err.status != TFM_STATUS_OK;
}

void tfm__sample_begin(struct tfm__sample *sample, uint32_t rows, const char *format, ...)
{
    va_list arguments;

    memset(sample, 0, sizeof *sample);
    va_start(arguments, format);
    vsnprintf(sample->what, sizeof sample->what, format, arguments);
    va_end(arguments);
    sample->capacity = (struct tfm_capacity){rows, 1, rows};
    tfm_graph_create(&sample->graph, &sample->err);
}

void tfm__sample_end(struct tfm__sample *sample)
{
    for (size_t i = 0; i < TFM__SAMPLE_TENSORS; i++) {
        free(sample->data[i]);
        free(sample->want[i]);
    }
    tfm_graph_destroy(sample->graph);
    memset(sample, 0, sizeof *sample);
}

size_t tfm__sample_count(const struct tfm__sample *sample, const struct tfm_tensor *tensor)
{
    return tensor ? (size_t)(tfm__drive_outer(tensor, &sample->capacity) *
                             tfm_tensor_row_elements(tensor))
                  : 0;
}

/* A number in [-1, 1) that depends on the seed alone (Steele et al., SplitMix64, 2014). */
static double number(uint64_t seed)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return 2 * ((double)((x ^ (x >> 31)) >> 11) * 0x1p-53) - 1;
}

void tfm__sample_set(struct tfm__sample *sample, const struct tfm_tensor *tensor, size_t first,
                     size_t n, const double *values)
{
    if (!broken(sample))
        tfm_dtype_from_f64(tensor->dtype, values, sample->data[tensor->id], first, n);
}

void tfm__sample_get(const struct tfm__sample *sample, const struct tfm_tensor *tensor, size_t i,
                     double *value)
{
    tfm_dtype_to_f64(tensor->dtype, sample->data[tensor->id], i, 1, value);
}

void tfm__sample_fill(struct tfm__sample *sample, const struct tfm_tensor *tensor, uint64_t seed,
                      size_t first, size_t n, double size)
{
    double values[256]; /* a multiple of every block */

    for (size_t at = 0; at < n && !broken(sample); at += 256) {
        const size_t length = n - at < 256 ? n - at : 256;
        for (size_t i = 0; i < length; i++)
            values[i] =
                size * number(seed * 1000003 + (uint64_t)tensor->id * 7919 + first + at + i);
        tfm__sample_set(sample, tensor, first + at, length, values);
    }
}

/* Gives a new tensor memory and values. */
static struct tfm_tensor *adopt(struct tfm__sample *sample, struct tfm_tensor *tensor)
{
    if (broken(sample))
        return NULL;
    if (!tensor) {
        if (tfm_graph_check(sample->graph, &sample->err) == TFM_STATUS_OK)
            tfm_error_set(&sample->err, TFM_STATUS_INTERNAL, "%s: no tensor", sample->what);
        return NULL;
    }
    const size_t bytes = tfm__drive_bytes(tensor, tfm__drive_outer(tensor, &sample->capacity));
    if (tensor->id >= TFM__SAMPLE_TENSORS) {
        tfm_error_set(&sample->err, TFM_STATUS_INTERNAL, "%s: more than %d tensors", sample->what,
                      TFM__SAMPLE_TENSORS);
        return NULL;
    }
    sample->data[tensor->id] = calloc(bytes ? bytes : 1, 1);
    sample->want[tensor->id] = calloc(bytes ? bytes : 1, 1);
    if (!sample->data[tensor->id] || !sample->want[tensor->id]) {
        tfm_error_set(&sample->err, TFM_STATUS_NOMEM, "%s: out of memory", sample->what);
        return NULL;
    }
    if (tensor->dtype != TFM_DTYPE_I32)
        tfm__sample_fill(sample, tensor, 1, 0, tfm__sample_count(sample, tensor), 1);
    return tensor;
}

struct tfm_tensor *tfm__sample_input(struct tfm__sample *sample, const char *name,
                                     enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    int64_t whole[TFM_MAX_RANK] = {0};

    for (int i = 1; i < rank; i++)
        whole[i] = shape[i - 1];
    return broken(sample) ? NULL
                          : adopt(sample, tfm_graph_input(sample->graph, name, dtype, rank, whole));
}

struct tfm_tensor *tfm__sample_parameter(struct tfm__sample *sample, const char *name,
                                         enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    return broken(sample)
               ? NULL
               : adopt(sample, tfm_graph_parameter(sample->graph, name, dtype, rank, shape));
}

struct tfm_tensor *tfm__sample_buffer(struct tfm__sample *sample, const char *name,
                                      enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    return broken(sample)
               ? NULL
               : adopt(sample, tfm_graph_buffer(sample->graph, name, dtype, rank, shape));
}

struct tfm_tensor *tfm__sample_state(struct tfm__sample *sample, const char *name,
                                     enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    return broken(sample) ? NULL
                          : adopt(sample, tfm_graph_state(sample->graph, name, dtype, rank, shape));
}

void tfm__sample_output(struct tfm__sample *sample, struct tfm_tensor *tensor)
{
    sample->output = adopt(sample, tensor);
    if (!broken(sample) && !tfm_graph_output(sample->graph, sample->output, "output"))
        tfm_graph_check(sample->graph, &sample->err);
}
