/* SPDX-License-Identifier: MIT
 * sum_squares for the checker: sizes around those of a vector and of a block. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 8, WAYS = 4 };

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    tfm__sample_begin(sample, 3, "%s rank %d [%lld, ...]", tfm_dtype_name(dtype), rank,
                      (long long)shape[0]);
    struct tfm_tensor *x = tfm__sample_state(sample, "x", dtype, rank, shape);
    tfm__sample_output(sample, tfm_op_sum_squares(sample->graph, x));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int rank;
        int64_t shape[TFM_MAX_RANK];
    } shapes[SHAPES] = {{1, {1}},    {1, {31}},      {1, {65}},         {2, {33, 7}},
                        {1, {4096}}, {2, {3, 4097}}, {4, {2, 3, 5, 7}}, {2, {91, 577}}};

    make(sample, dtypes[i / SHAPES], shapes[i % SHAPES].rank, shapes[i % SHAPES].shape);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, dtypes[i], 2, (int64_t[]){2048, 4096});
}

static void prepare(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    (void)sample;
    tfm__check_rows_set(run, (uint32_t)n, 0);
}

static const struct tfm__check_way ways[WAYS] = {
    {"1 row", prepare, 1, 0, 0, NULL},
    {"3 rows", prepare, 3, 0, 0, NULL},
    {"no rows", prepare, 0, 0, 0, NULL},
    {"1 row, memory for 1", prepare, 1, 1, 0, NULL},
};

static double elements(const struct tfm__sample *sample)
{
    const struct tfm_tensor *x = tfm_graph_node(sample->graph, 0)->inputs[0];
    return (double)tfm_tensor_elements(x);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return rows->n ? 2 * elements(sample) : 0;
}

const struct tfm__check_op tfm__check_op_sum_squares = {
    .samples = 2 * SHAPES,
    .build = build,
    .ways = ways,
    .n_ways = WAYS,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
};
