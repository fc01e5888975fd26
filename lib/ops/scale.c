/* SPDX-License-Identifier: MIT
 * scale: y = factor * x (embeddings times sqrt(D), residuals, logits)
 *   x [N, ...] F32, F16, BF16 or F64 -> like x; the product is rounded once
 * Gradient: dx = factor dy. */
#include <math.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};

    if (!isfinite(node->attrs.factor))
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "factor must be finite");
    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_scale = {.infer = infer};

struct tfm_tensor *tfm_op_scale(struct tfm_graph *graph, struct tfm_tensor *x, double factor)
{
    struct tfm_tensor *const inputs[] = {x};
    const struct tfm_attrs attrs = {.factor = factor};
    return tfm__graph_append(graph, TFM_OP_SCALE, inputs, 1, &attrs);
}
