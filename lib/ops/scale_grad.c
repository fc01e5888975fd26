/* SPDX-License-Identifier: MIT
 * scale_grad: the gradient of scale with a soft cap S: dx = factor (1 - tanh(factor x / S)^2) dy; without one
 * factor dy
 *   x [N, ...] F32, F16, BF16 or F64, dy like x -> like x */
#include <math.h>

#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "dy"};

    if (!isfinite(node->attrs.factor))
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "factor must be finite");
    if (!isfinite(node->attrs.softcap) || node->attrs.softcap < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "softcap must be finite and positive; 0 = off");
    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_scale_grad = {.infer = infer};

struct tfm_tensor *tfm_op_scale_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                     struct tfm_tensor *dy, double factor, double softcap)
{
    struct tfm_tensor *const inputs[] = {x, dy};
    const struct tfm_attrs attrs = {.factor = factor, .softcap = softcap};
    return tfm__graph_append(graph, TFM_OP_SCALE_GRAD, inputs, 2, &attrs);
}
