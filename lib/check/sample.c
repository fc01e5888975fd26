/* SPDX-License-Identifier: MIT
 * Building and filling of samples. */
#include "lib/check/sample.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/compare.h"

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
    return tensor ? (size_t)(tfm_tensor_rows_most(tensor, &sample->capacity) *
                             tfm_tensor_row_elements(tensor))
                  : 0;
}

double tfm__sample_random(uint64_t seed)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
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
                size * (2 * tfm__sample_random(seed * 1000003 + (uint64_t)tensor->id * 7919 +
                                               first + at + i) -
                        1);
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
    const size_t bytes = tfm__drive_bytes(tensor, tfm_tensor_rows_most(tensor, &sample->capacity));
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

struct tfm_tensor *tfm__sample_sum(struct tfm__sample *sample, const char *name,
                                   enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    struct tfm_tensor *state = tfm__sample_state(sample, name, dtype, rank, shape);

    if (state)
        sample->sums |= 1u << state->id;
    return state;
}

struct tfm_tensor *tfm__sample_trainable(struct tfm__sample *sample, const char *name,
                                         enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    struct tfm_tensor *parameter = tfm__sample_parameter(sample, name, dtype, rank, shape);

    return broken(sample) ? NULL : tfm_graph_train(sample->graph, parameter);
}

void tfm__sample_output(struct tfm__sample *sample, struct tfm_tensor *tensor)
{
    const uint32_t nodes = tfm_graph_node_count(sample->graph);
    char name[16];

    if (broken(sample))
        return;
    if (!tensor || nodes == 0) {
        if (tfm_graph_check(sample->graph, &sample->err) == TFM_STATUS_OK)
            tfm_error_set(&sample->err, TFM_STATUS_INTERNAL, "%s: no node", sample->what);
        return;
    }
    const struct tfm_node *node = tfm_graph_node(sample->graph, nodes - 1);
    for (uint32_t i = 0; i < node->n_outputs && !broken(sample); i++) {
        struct tfm_tensor *output = adopt(sample, (struct tfm_tensor *)node->outputs[i]);
        snprintf(name, sizeof name, i ? "output %u" : "output", i);
        if (!broken(sample) && !tfm_graph_output(sample->graph, output, name))
            tfm_graph_check(sample->graph, &sample->err);
        sample->outputs[sample->n_outputs++] = output;
    }
}

/* ---- comparing ---- */

static enum tfm_status compare_bits(const struct tfm__sample *sample,
                                    const struct tfm_tensor *tensor, struct tfm_error *err)
{
    const unsigned char *got = sample->data[tensor->id], *want = sample->want[tensor->id];
    const size_t bytes = tfm__drive_bytes(tensor, tensor->shape[0]);

    for (size_t i = 0; i < bytes; i++) {
        if (got[i] != want[i])
            return tfm_error_set(err, TFM_STATUS_INTERNAL,
                                 "'%s' differs from that of the reference from byte %zu of %zu on",
                                 tensor->name, i, bytes);
    }
    return TFM_STATUS_OK;
}

/* n values within the bound of ops.def. */
static enum tfm_status compare_values(const struct tfm__sample *sample,
                                      const struct tfm_tensor *tensor, size_t n,
                                      struct tfm_error *err)
{
    const struct tfm_node *node =
        tfm_graph_node(sample->graph, tfm_graph_node_count(sample->graph) - 1);
    const struct tfm__tolerance tolerance = {.dtype = tensor->dtype,
                                             .nmse = tfm_op_info(node->op)->nmse,
                                             .exact = sample->exact,
                                             .width = (size_t)tfm_tensor_row_elements(tensor)};
    double *values = malloc((n ? 2 * n : 1) * sizeof *values);

    if (!values)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory to compare %zu values", n);
    tfm_dtype_to_f64(tensor->dtype, sample->data[tensor->id], 0, n, values);
    tfm_dtype_to_f64(tensor->dtype, sample->want[tensor->id], 0, n, values + n);
    const enum tfm_status status = tfm__compare(&tolerance, values, values + n, n, err);
    free(values);
    if (status != TFM_STATUS_OK)
        tfm_error_prefix(err, "%s", tensor->name);
    return status;
}

enum tfm_status tfm__sample_compare(const struct tfm__sample *sample, const struct tfm_rows *rows,
                                    struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t i = 0; i < sample->n_outputs && status == TFM_STATUS_OK; i++) {
        const struct tfm_tensor *output = sample->outputs[i];
        status = compare_values(
            sample, output,
            (size_t)(tfm_tensor_rows(output, rows) * tfm_tensor_row_elements(output)), err);
    }
    for (uint32_t id = 0; id < tfm_graph_tensor_count(sample->graph); id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(sample->graph, id);
        if (!tfm__drive_is_variable(tensor) || status != TFM_STATUS_OK)
            continue;
        status = sample->sums >> id & 1
                     ? compare_values(sample, tensor, tfm__sample_count(sample, tensor), err)
                     : compare_bits(sample, tensor, err);
    }
    return status;
}
