/* SPDX-License-Identifier: MIT
 * cross_entropy for the checker: targets in every part of the classes and none in some rows, a trainable weight,
 * which lies in memory of the exec, and a frozen one of every dtype; fewer and more classes than any chunk has;
 * logits with a soft cap that bends most of them. */
#include "lib/check/op.h"

enum { SHAPES = 5, TRAINABLE = 4, KINDS = TFM__CHECK_WEIGHTS + TRAINABLE };

/* The first ones are trainable; kinds 2 and 3 have a soft cap. */
static enum tfm_dtype dtype_of(uint32_t kind)
{
    static const enum tfm_dtype trainable[] = {TFM_DTYPE_F32, TFM_DTYPE_F64, TFM_DTYPE_F32,
                                               TFM_DTYPE_F64};
    return kind < TRAINABLE ? trainable[kind] : tfm__check_weights[kind - TRAINABLE];
}

static void make(struct tfm__sample *sample, uint32_t kind, uint32_t rows, int64_t classes,
                 int64_t width)
{
    const enum tfm_dtype dtype = dtype_of(kind);
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t shape[] = {classes, width};
    const double softcap = kind == 2 || kind == 3 ? 0.75 : 0;

    tfm__sample_begin(sample, rows, "%s%s weight [%lld, %lld]%s",
                      kind < TRAINABLE ? "trainable " : "", tfm_dtype_name(dtype),
                      (long long)classes, (long long)width, softcap > 0 ? ", soft cap" : "");
    sample->special = tfm__sample_input(sample, "x", real, 2, &width);
    sample->only_nan = 1;
    struct tfm_tensor *weight = kind < TRAINABLE
                                    ? tfm__sample_trainable(sample, "weight", dtype, 2, shape)
                                    : tfm__sample_parameter(sample, "weight", dtype, 2, shape);
    struct tfm_tensor *targets = tfm__sample_input(sample, "targets", TFM_DTYPE_I32, 1, NULL);
    for (size_t r = 0; r < tfm__sample_count(sample, targets); r++) {
        const double target = r % 5 == 2 ? -1 : (double)((int64_t)r * 37 % classes);
        tfm__sample_set(sample, targets, r, 1, &target);
    }
    tfm__sample_output(sample, tfm_op_cross_entropy(sample->graph, sample->special, weight, targets,
                                                    softcap, NULL));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t plain[SHAPES][2] = {{1, 3}, {7, 1}, {33, 31}, {577, 65}, {1100, 40}},
                         blocks[SHAPES][2] = {{1, 32}, {7, 64}, {33, 96}, {577, 32}, {70, 576}};
    const uint32_t kind = i / SHAPES;
    const int64_t *sizes =
        tfm_dtype_info(dtype_of(kind))->block > 1 ? blocks[i % SHAPES] : plain[i % SHAPES];

    make(sample, kind, TFM__CHECK_ROWS, sizes[0], sizes[1]);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, i, 256, 4096, 256);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_tensor *weight = tfm_graph_node(sample->graph, 0)->inputs[1];
    return 2.0 * rows->n * (double)weight->shape[0] * (double)weight->shape[1];
}

const struct tfm__check_op tfm__check_op_cross_entropy = {
    .samples = KINDS * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
};
