/* SPDX-License-Identifier: MIT
 * take_rows_grad for the checker: behind a take_rows, which makes the rows that it gives back. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 3 };

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows, int rank,
                 const int64_t *shape)
{
    tfm__sample_begin(sample, rows, "%s rank %d [N, %lld%s]", tfm_dtype_name(dtype), rank,
                      (long long)shape[0], rank > 2 ? ", ..." : "");
    struct tfm_tensor *x = tfm__sample_input(sample, "x", dtype, rank, shape);
    struct tfm_tensor *taken = tfm_op_take_rows(sample->graph, x);
    tfm__sample_output(sample, tfm_op_take_rows_grad(sample->graph, taken));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int rank;
        int64_t shape[2];
    } shapes[SHAPES] = {{2, {1, 0}}, {2, {33, 0}}, {3, {3, 7}}};
    make(sample, tfm__check_floats[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES].rank,
         shapes[i % SHAPES].shape);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shape[] = {4096};
    make(sample, tfm__check_floats[i], TFM__CHECK_LARGE_ROWS, 2, shape);
}

/* all, every second one last first, pairs twice, none */
static void prepare(struct tfm__sample *sample, struct tfm__check_rows *run, int kind)
{
    const uint32_t n = kind == 4 ? 0 : 33;

    (void)sample;
    tfm__check_rows_set(run, n, 0);
    for (uint32_t i = 0; i < n; i++)
        run->out[i] = (int32_t)(kind == 1 ? n - 1 - 2 * i : kind == 2 ? i / 2 : i);
    run->rows.n_out = kind == 1 ? (n + 1) / 2 : kind == 3 ? 0 : n;
}

static const struct tfm__check_way ways[] = {
    {"all of 33 rows", prepare, 0, 0, 0, NULL},
    {"every second, last first", prepare, 1, 0, 0, NULL},
    {"rows twice", prepare, 2, 0, 0, NULL},
    {"none of 33", prepare, 3, 0, 0, NULL},
    {"no rows", prepare, 4, 0, 0, NULL},
    {"33 rows, memory for 33", prepare, 0, 33, 0, NULL},
};

const struct tfm__check_op tfm__check_op_take_rows_grad = {
    .samples = TFM__CHECK_FLOATS * SHAPES,
    .build = build,
    .ways = ways,
    .n_ways = sizeof ways / sizeof *ways,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = tfm__check_elements,
};
