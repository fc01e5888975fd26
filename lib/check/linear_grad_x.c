/* SPDX-License-Identifier: MIT
 * linear_grad_x for the checker: a trainable weight, which lies in memory of the exec, and a frozen one, of
 * every dtype. No weight is square, so that a transposed one cannot pass. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 6, KINDS = TFM__CHECK_WEIGHTS + 2 };

/* The first two are trainable. */
static enum tfm_dtype dtype_of(uint32_t kind)
{
    static const enum tfm_dtype trainable[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};
    return kind < 2 ? trainable[kind] : tfm__check_weights[kind - 2];
}

static void make(struct tfm__sample *sample, uint32_t kind, uint32_t rows, int64_t in, int64_t out,
                 int rank)
{
    const enum tfm_dtype dtype = dtype_of(kind);
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t shape[] = {out, in}, dy_shape[] = {3, out};

    tfm__sample_begin(sample, rows, "%s%s weight [%lld, %lld]%s", kind < 2 ? "trainable " : "",
                      tfm_dtype_name(dtype), (long long)out, (long long)in,
                      rank > 2 ? " dy [N, 3, out]" : "");
    struct tfm_tensor *weight = kind < 2 ? tfm__sample_trainable(sample, "weight", dtype, 2, shape)
                                         : tfm__sample_parameter(sample, "weight", dtype, 2, shape);
    sample->special = tfm__sample_input(sample, "dy", real, rank, &dy_shape[3 - rank]);
    tfm__sample_output(sample, tfm_op_linear_grad_x(sample->graph, weight, sample->special));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t plain[SHAPES][2] = {{1, 3}, {3, 1}, {31, 7}, {33, 65}, {65, 577}, {40, 7}},
                         blocks[SHAPES][2] = {{32, 1},   {32, 7},  {64, 33},
                                              {96, 577}, {576, 3}, {64, 7}};
    const uint32_t kind = i / SHAPES;
    const int64_t *sizes =
        tfm_dtype_info(dtype_of(kind))->block > 1 ? blocks[i % SHAPES] : plain[i % SHAPES];

    make(sample, kind, TFM__CHECK_ROWS, sizes[0], sizes[1], i % SHAPES == SHAPES - 1 ? 3 : 2);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, i, 256, 1024, 1536, 2);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    return 2 * (double)node->inputs[0]->shape[0] * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_linear_grad_x = {
    .samples = KINDS * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = KINDS,
    .build_large = build_large,
    .operations = operations,
};
