/* SPDX-License-Identifier: MIT
 * One linear layer, run once, for `tfm tune`. */
#include "lib/tools/tune_check.h"

#include <stdlib.h>

#include <tfm/nn.h>
#include <tfm/plan.h>
#include <tfm/weights.h>

/* Of the squares, relative: quantized activations come to about 1e-5, one wrong value in a thousand to more. */
static const double bound = 1e-3;

struct layer {
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    float *x;     /* [rows, in] */
    float *w;     /* [out, in] */
    void *stored; /* w as the weight's dtype */
};

static void close_layer(struct layer *l)
{
    tfm_exec_destroy(l->exec);
    tfm_plan_destroy(l->plan);
    tfm_weights_release(l->weights);
    tfm_graph_destroy(l->graph);
    free(l->x);
    free(l->w);
    free(l->stored);
}

static void fill(float *values, size_t n, uint32_t state)
{
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
}

static enum tfm_status make(struct layer *l, enum tfm_dtype dtype, int64_t in, int64_t out,
                            uint32_t rows, struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    const size_t n = (size_t)(in * out), bytes = n / info->block * info->bytes;
    const int64_t shape[] = {0, in}, weight[] = {out, in};
    enum tfm_status status = tfm_graph_create(&l->graph, err);

    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_tensor *x = tfm_graph_input(l->graph, "x", TFM_DTYPE_F32, 2, shape);
    tfm_graph_output(l->graph, tfm_nn_linear(l->graph, "layer", x, out, dtype, 0), "y");
    status = tfm_graph_check(l->graph, err);
    l->x = malloc((size_t)in * rows * sizeof *l->x);
    l->w = malloc(n * sizeof *l->w);
    l->stored = malloc(bytes);
    if (status == TFM_STATUS_OK && (!l->x || !l->w || !l->stored))
        return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory");
    if (status == TFM_STATUS_OK)
        status = tfm_weights_create(&l->weights, err);
    if (status != TFM_STATUS_OK)
        return status;
    fill(l->x, (size_t)in * rows, 1);
    fill(l->w, n, 2);
    tfm_dtype_from_f32(dtype, l->w, l->stored, 0, n);
    return tfm_weights_set(l->weights, "layer.weight", dtype, 2, weight, l->stored, bytes, err);
}

enum tfm_status tfm__tune_compute(struct tfm_device *device, enum tfm_dtype weight, int64_t in,
                                  int64_t out, uint32_t rows, float *y, struct tfm_error *err)
{
    const struct tfm_capacity capacity = {.rows = rows, .sequences = 1, .out_rows = 1};
    const int32_t zero = 0;
    const struct tfm_rows run = {
        .n = rows, .n_seq = 1, .slot = &zero, .start = &zero, .past = &zero};
    struct layer l = {0};

    enum tfm_status status = make(&l, weight, in, out, rows, err);
    if (status == TFM_STATUS_OK)
        status = tfm_plan_compile(l.graph, l.weights, &device, 1, &capacity, &l.plan, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_create(l.plan, &l.exec, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(l.exec, "x", l.x, (size_t)in * rows * sizeof *l.x, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(l.exec, "y", y, (size_t)out * rows * sizeof *y, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_run(l.exec, &run, err);
    close_layer(&l);
    return status;
}

int tfm__tune_agree(const float *have, const float *want, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)have[i] - (double)want[i];
        off += d * d;
        all += (double)want[i] * (double)want[i];
    }
    return off <= bound * all; /* not when it is no number */
}
