/* SPDX-License-Identifier: MIT
 * gelu_grad for the checker: the exact form and the one with tanh. */
#include <stdio.h>
#include <string.h>

#include <tfm/grad.h>

#include "lib/check/op.h"

/* An error function or a tanh of a polynomial, and two products. */
static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 24 * tfm__check_elements(sample, rows);
}

static struct tfm_tensor *exact(struct tfm_graph *graph, struct tfm_tensor *x,
                                struct tfm_tensor *dy)
{
    return tfm_op_gelu_grad(graph, x, dy, 0);
}

static struct tfm_tensor *by_tanh(struct tfm_graph *graph, struct tfm_tensor *x,
                                  struct tfm_tensor *dy)
{
    return tfm_op_gelu_grad(graph, x, dy, 1);
}

static void name(struct tfm__sample *sample, int is_tanh)
{
    const size_t used = strlen(sample->what);
    snprintf(sample->what + used, sizeof sample->what - used, "%s", is_tanh ? " tanh" : " erf");
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_binary(sample, i / 2, i % 2 ? by_tanh : exact);
    name(sample, i % 2);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_binary(sample, i / 2, i % 2 ? by_tanh : exact);
    name(sample, i % 2);
}

const struct tfm__check_op tfm__check_op_gelu_grad = {
    .samples = 2 * TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = 2 * TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
