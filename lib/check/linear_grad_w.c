/* SPDX-License-Identifier: MIT
 * linear_grad_w for the checker: with and without the weight's and the bias' gradient, which hold something
 * already. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 8 };

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows, int64_t in,
                 int64_t out, int with_dw, int with_db, int rank)
{
    const int64_t x_shape[] = {3, in}, dy_shape[] = {3, out}, shape[] = {out, in};

    tfm__sample_begin(sample, rows, "%s [%lld, %lld]%s%s%s", tfm_dtype_name(dtype), (long long)out,
                      (long long)in, with_dw ? "" : " without dw", with_db ? " with db" : "",
                      rank > 2 ? " x [N, 3, in]" : "");
    struct tfm_tensor *x = tfm__sample_input(sample, "x", dtype, rank, &x_shape[3 - rank]);
    struct tfm_tensor *dy = tfm__sample_input(sample, "dy", dtype, rank, &dy_shape[3 - rank]);
    struct tfm_tensor *dw = with_dw ? tfm__sample_sum(sample, "dw", dtype, 2, shape) : NULL;
    struct tfm_tensor *db = with_db ? tfm__sample_sum(sample, "db", dtype, 1, shape) : NULL;
    tfm__sample_output(sample, tfm_op_linear_grad_w(sample->graph, x, dy, dw, db));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int64_t in, out;
        int dw, db, rank;
    } shapes[SHAPES] = {{1, 3, 1, 0, 2},    {3, 1, 1, 1, 2},  {31, 7, 1, 0, 2}, {33, 65, 1, 1, 2},
                        {577, 33, 1, 0, 2}, {7, 33, 0, 1, 2}, {33, 7, 1, 1, 3}, {64, 160, 1, 1, 2}};

    make(sample, dtypes[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES].in, shapes[i % SHAPES].out,
         shapes[i % SHAPES].dw, shapes[i % SHAPES].db, shapes[i % SHAPES].rank);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, dtypes[i], 256, 1024, 1536, 1, 0, 2);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    return 2.0 * rows->n * (double)tfm_tensor_row_elements(node->inputs[0]) *
           (double)tfm_tensor_row_elements(node->inputs[1]);
}

const struct tfm__check_op tfm__check_op_linear_grad_w = {
    .samples = 2 * SHAPES,
    .build = build,
    .ways = tfm__check_sums,
    .n_ways = TFM__CHECK_SUM_WAYS,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
};
