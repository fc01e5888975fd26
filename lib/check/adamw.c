/* SPDX-License-Identifier: MIT
 * adamw for the checker: shapes that divide nothing, with and without exact values beside a narrow parameter. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 5, DTYPES = 4, WAYS = 5 };

static const enum tfm_dtype dtypes[DTYPES] = {TFM_DTYPE_F32, TFM_DTYPE_BF16, TFM_DTYPE_F16,
                                              TFM_DTYPE_F64};

/* Second moments are not negative; the last row of settings is nonsense that nobody may read. */
static void fill(struct tfm__sample *sample)
{
    static const double settings[TFM_ADAMW_HYPERS] = {0.01, 0.75, 0.875, 1e-5, 0.001, 0.5, 4, 8};
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    const struct tfm_tensor *v = node->inputs[3], *hyper = node->inputs[4];

    if (sample->err.status != TFM_STATUS_OK)
        return;
    for (size_t i = 0; i < tfm__sample_count(sample, v); i++) {
        const double value = tfm__sample_random(7 * i + 1);
        tfm__sample_set(sample, v, i, 1, &value);
    }
    tfm__sample_fill(sample, node->inputs[1], 3, 0, tfm__sample_count(sample, v), 2);
    tfm__sample_fill(sample, hyper, 5, 0, tfm__sample_count(sample, hyper), 100);
    tfm__sample_set(sample, hyper, 0, TFM_ADAMW_HYPERS, settings);
}

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    static const int64_t width[] = {TFM_ADAMW_HYPERS};
    static const char *const names[] = {"g", "m", "v", "master"};
    const enum tfm_dtype exact = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    struct tfm_tensor *state[4] = {NULL};

    tfm__sample_begin(sample, 3, "%s rank %d [%lld, ...]", tfm_dtype_name(dtype), rank,
                      (long long)shape[0]);
    struct tfm_tensor *w = tfm__sample_trainable(sample, "w", dtype, rank, shape);
    for (int i = 0; i < (dtype == exact ? 3 : 4); i++)
        state[i] = tfm__sample_sum(sample, names[i], exact, rank, shape);
    struct tfm_tensor *hyper = tfm__sample_input(sample, "hyper", exact, 2, width);
    if (w)
        sample->sums |= 1u << w->id;
    tfm__sample_output(
        sample, tfm_op_adamw(sample->graph, w, state[0], state[1], state[2], hyper, state[3]));
    fill(sample);
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int rank;
        int64_t shape[TFM_MAX_RANK];
    } shapes[SHAPES] = {{1, {1}}, {1, {31}}, {2, {33, 7}}, {3, {5, 3, 65}}, {2, {91, 577}}};

    make(sample, dtypes[i / SHAPES], shapes[i % SHAPES].rank, shapes[i % SHAPES].shape);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, dtypes[i], 2, (int64_t[]){1024, 4096});
}

static void prepare(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    tfm__check_rows_set(run, (uint32_t)n, 0);
    fill(sample);
}

/* Without new gradients: those of the run before are zero. */
static void prepare_again(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    (void)sample;
    tfm__check_rows_set(run, (uint32_t)n, 0);
}

static const struct tfm__check_way ways[WAYS] = {
    {"1 row", prepare, 1, 0, 0, NULL},
    {"1 row again", prepare_again, 1, 0, 0, NULL},
    {"3 rows", prepare, 3, 0, 0, NULL},
    {"no rows", prepare, 0, 0, 0, NULL},
    {"1 row, memory for 1", prepare, 1, 1, 0, NULL},
};

static double elements(const struct tfm__sample *sample)
{
    const struct tfm_tensor *w = tfm_graph_node(sample->graph, 0)->inputs[0];
    return (double)tfm_tensor_elements(w);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return rows->n ? 16 * elements(sample) : 0;
}

/* Every state is read and written. */
static double bytes(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    double sum = 0;

    (void)rows;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && i != 4)
            sum += (i == 0 && node->n_inputs > 5 && node->inputs[5] ? 1 : 2) *
                   (double)tfm__drive_bytes(node->inputs[i], node->inputs[i]->shape[0]);
    }
    return sum;
}

const struct tfm__check_op tfm__check_op_adamw = {
    .samples = DTYPES * SHAPES,
    .build = build,
    .ways = ways,
    .n_ways = WAYS,
    .large = DTYPES,
    .build_large = build_large,
    .operations = operations,
    .bytes = bytes,
};
