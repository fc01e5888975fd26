/* SPDX-License-Identifier: MIT
 * swiglu_grad for the checker. */
#include <tfm/grad.h>

#include "lib/check/op.h"

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 6 * tfm__check_elements(sample, rows);
}

static struct tfm_tensor *make(struct tfm_graph *graph, struct tfm_tensor *gate,
                               struct tfm_tensor *up, struct tfm_tensor *dy)
{
    struct tfm_tensor *dup;

    return tfm_op_swiglu_grad(graph, gate, up, dy, &dup);
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_ternary(sample, i, make);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_ternary(sample, i, make);
}

const struct tfm__check_op tfm__check_op_swiglu_grad = {
    .samples = TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
