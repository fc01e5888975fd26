/* SPDX-License-Identifier: MIT
 * cross_entropy_grad for the checker: with and without the gradient of the weight, which holds something already;
 * some rows have no target; logits with and without a soft cap. lse is near what the logits give, so that no probability is out of range. */
#include <math.h>

#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 6, KINDS = 4 };

static const struct {
    enum tfm_dtype dtype;
    double softcap;
} kinds[KINDS] = {
    {TFM_DTYPE_F32, 0}, {TFM_DTYPE_F64, 0}, {TFM_DTYPE_F32, 0.75}, {TFM_DTYPE_F64, 0.75}};

static void make(struct tfm__sample *sample, uint32_t kind, uint32_t rows, int64_t classes,
                 int64_t width, int with_dweight)
{
    const enum tfm_dtype dtype = kinds[kind].dtype;
    const int64_t shape[] = {classes, width};

    tfm__sample_begin(sample, rows, "%s [%lld, %lld]%s%s", tfm_dtype_name(dtype),
                      (long long)classes, (long long)width, with_dweight ? "" : " without dweight",
                      kinds[kind].softcap > 0 ? ", soft cap" : "");
    struct tfm_tensor *x = tfm__sample_input(sample, "x", dtype, 2, &width);
    struct tfm_tensor *weight = tfm__sample_trainable(sample, "weight", dtype, 2, shape);
    struct tfm_tensor *targets = tfm__sample_input(sample, "targets", TFM_DTYPE_I32, 1, NULL);
    struct tfm_tensor *lse = tfm__sample_input(sample, "lse", dtype, 1, NULL);
    struct tfm_tensor *dloss = tfm__sample_input(sample, "dloss", dtype, 1, NULL);
    struct tfm_tensor *dweight =
        with_dweight ? tfm__sample_sum(sample, "dweight", dtype, 2, shape) : NULL;
    for (size_t r = 0; r < tfm__sample_count(sample, targets); r++) {
        const double target = r % 5 == 2 ? -1 : (double)((int64_t)r * 37 % classes);
        const double about = log((double)classes) + (double)width / 18;
        tfm__sample_set(sample, targets, r, 1, &target);
        tfm__sample_set(sample, lse, r, 1, &about);
    }
    tfm__sample_output(sample, tfm_op_cross_entropy_grad(sample->graph, x, weight, targets, lse,
                                                         dloss, kinds[kind].softcap, dweight));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int64_t classes, width;
        int dweight;
    } shapes[SHAPES] = {{1, 3, 1},    {7, 1, 0},    {33, 31, 1},
                        {577, 65, 1}, {70, 129, 0}, {1100, 9, 1}};

    make(sample, i / SHAPES, TFM__CHECK_ROWS, shapes[i % SHAPES].classes, shapes[i % SHAPES].width,
         shapes[i % SHAPES].dweight);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, i, 256, 2048, 256, 1);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_tensor *weight = tfm_graph_node(sample->graph, 0)->inputs[1];
    return 6.0 * rows->n * (double)weight->shape[0] * (double)weight->shape[1];
}

const struct tfm__check_op tfm__check_op_cross_entropy_grad = {
    .samples = KINDS * SHAPES,
    .build = build,
    .ways = tfm__check_sums,
    .n_ways = TFM__CHECK_SUM_WAYS,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
};
