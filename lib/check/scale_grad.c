/* SPDX-License-Identifier: MIT
 * scale_grad for the checker: by a factor alone, and through a soft cap. */
#include <stdio.h>
#include <string.h>

#include <tfm/grad.h>

#include "lib/check/op.h"

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return (strstr(sample->what, "capped") ? 12 : 1) * tfm__check_elements(sample, rows);
}

static struct tfm_tensor *by_factor(struct tfm_graph *graph, struct tfm_tensor *x,
                                    struct tfm_tensor *dy)
{
    return tfm_op_scale_grad(graph, x, dy, -0.3, 0);
}

/* So low that it bends every value that is not small. */
static struct tfm_tensor *capped(struct tfm_graph *graph, struct tfm_tensor *x,
                                 struct tfm_tensor *dy)
{
    return tfm_op_scale_grad(graph, x, dy, 0.7, 1.5);
}

static void name(struct tfm__sample *sample, int is_capped)
{
    const size_t used = strlen(sample->what);
    if (is_capped)
        snprintf(sample->what + used, sizeof sample->what - used, " capped");
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_binary(sample, i / 2, i % 2 ? capped : by_factor);
    name(sample, i % 2);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_binary(sample, i / 2, i % 2 ? capped : by_factor);
    name(sample, i % 2);
}

const struct tfm__check_op tfm__check_op_scale_grad = {
    .samples = 2 * TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = 2 * TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
