/* SPDX-License-Identifier: MIT
 * linear for the checker: every weight dtype, sizes on and off every tile, with and without bias. No
 * weight is square, so that a transposed one cannot pass. */
#include "lib/check/op.h"

enum { SHAPES = 7, KINDS = TFM__CHECK_WEIGHTS + 2 };

/* The last two are trainable. */
static enum tfm_dtype dtype_of(uint32_t kind)
{
    static const enum tfm_dtype trainable[] = {TFM_DTYPE_F32, TFM_DTYPE_BF16};
    return kind < TFM__CHECK_WEIGHTS ? tfm__check_weights[kind]
                                     : trainable[kind - TFM__CHECK_WEIGHTS];
}

static void make(struct tfm__sample *sample, uint32_t kind, uint32_t rows, int64_t in, int64_t out,
                 int biased, int rank)
{
    const enum tfm_dtype dtype = dtype_of(kind);
    const int trainable = kind >= TFM__CHECK_WEIGHTS;
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t shape[] = {out, in}, x_shape[] = {3, in};

    tfm__sample_begin(sample, rows, "%s%s weight [%lld, %lld]%s%s", trainable ? "trainable " : "",
                      tfm_dtype_name(dtype), (long long)out, (long long)in,
                      biased ? " with bias" : "", rank > 2 ? " x [N, 3, in]" : "");
    sample->special = tfm__sample_input(sample, "x", real, rank, &x_shape[3 - rank]);
    struct tfm_tensor *weight = trainable
                                    ? tfm__sample_trainable(sample, "weight", dtype, 2, shape)
                                    : tfm__sample_parameter(sample, "weight", dtype, 2, shape);
    struct tfm_tensor *bias = biased ? tfm__sample_parameter(sample, "bias", real, 1, shape) : NULL;
    tfm__sample_output(sample, tfm_op_linear(sample->graph, sample->special, weight, bias));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int64_t in, out;
        int biased;
    } plain[SHAPES] = {{1, 3, 0},   {3, 1, 1},    {31, 7, 0}, {33, 65, 1},
                       {65, 31, 0}, {577, 33, 0}, {33, 7, 1}},
      blocks[SHAPES] = {{32, 1, 0},   {32, 7, 1},     {64, 33, 0}, {96, 65, 1},
                        {576, 31, 0}, {1536, 129, 0}, {64, 7, 1}};
    const uint32_t kind = i / SHAPES;
    const int is_block = tfm_dtype_info(dtype_of(kind))->block > 1;

    make(sample, kind, TFM__CHECK_ROWS, is_block ? blocks[i % SHAPES].in : plain[i % SHAPES].in,
         is_block ? blocks[i % SHAPES].out : plain[i % SHAPES].out,
         is_block ? blocks[i % SHAPES].biased : plain[i % SHAPES].biased,
         i % SHAPES == SHAPES - 1 ? 3 : 2);
}

/* A step of generation and a chunk of a prompt. */
static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const uint32_t rows[] = {1, 64};
    make(sample, i / 2, rows[i % 2], 1024, 1536, 0, 2);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    return 2 * (double)node->inputs[1]->shape[1] * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_linear = {
    .samples = KINDS * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = 2 * KINDS,
    .build_large = build_large,
    .operations = operations,
};
