/* SPDX-License-Identifier: MIT
 * take_rows for the checker: rows kept in and out of order, one of them, none. */
#include "lib/check/op.h"

enum { SHAPES = 3, DTYPES = 5 };

static const enum tfm_dtype dtypes[DTYPES] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                              TFM_DTYPE_F64, TFM_DTYPE_I32};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows, int rank,
                 const int64_t *shape)
{
    tfm__sample_begin(sample, rows, "%s rank %d [N, %lld%s]", tfm_dtype_name(dtype), rank,
                      (long long)shape[0], rank > 2 ? ", ..." : "");
    sample->exact = 1;
    struct tfm_tensor *x = tfm__sample_input(sample, "x", dtype, rank, shape);
    for (size_t i = 0; x && dtype == TFM_DTYPE_I32 && i < tfm__sample_count(sample, x); i++) {
        const double value = (double)i * 1001 - 7;
        tfm__sample_set(sample, x, i, 1, &value);
    }
    tfm__sample_output(sample, tfm_op_take_rows(sample->graph, x));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int rank;
        int64_t shape[2];
    } shapes[SHAPES] = {{2, {1, 0}}, {2, {33, 0}}, {3, {3, 7}}};
    make(sample, dtypes[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES].rank,
         shapes[i % SHAPES].shape);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shape[] = {4096};
    make(sample, dtypes[i], TFM__CHECK_LARGE_ROWS, 2, shape);
}

static void all(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    (void)sample;
    tfm__check_rows_set(run, (uint32_t)n, 0);
}

static void last(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    all(sample, run, n);
    run->rows.n_out = 1;
    run->out[0] = n - 1;
}

static void reversed(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    all(sample, run, n);
    run->rows.n_out = (uint32_t)(n + 1) / 2;
    for (int i = 0; i < (n + 1) / 2; i++)
        run->out[i] = n - 1 - 2 * i;
}

static void twice(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    all(sample, run, n);
    for (int i = 0; i < n; i++)
        run->out[i] = i / 2;
}

static void none(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    all(sample, run, n);
    run->rows.n_out = 0;
}

static const struct tfm__check_way ways[] = {
    {"all of 65 rows", all, 65, 0, 0, NULL},
    {"all of 7 rows", all, 7, 0, 0, NULL},
    {"1 of 1", last, 1, 0, 0, NULL},
    {"the last of 33", last, 33, 0, 0, NULL},
    {"every second, last first", reversed, 33, 0, 0, NULL},
    {"rows twice", twice, 31, 0, 0, NULL},
    {"none of 9", none, 9, 0, 0, NULL},
    {"no rows", none, 0, 0, 0, NULL},
    {"3 rows, memory for 3", all, 3, 3, 0, NULL},
};

const struct tfm__check_op tfm__check_op_take_rows = {
    .samples = DTYPES * SHAPES,
    .build = build,
    .ways = ways,
    .n_ways = sizeof ways / sizeof *ways,
    .large = DTYPES,
    .build_large = build_large,
    .operations = tfm__check_elements,
};
