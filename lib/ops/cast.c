/* SPDX-License-Identifier: MIT
 * cast: y = x in another float dtype, each value rounded once to nearest even
 *   x [N, ...] F32, F16, BF16 or F64 -> [N, ...] any of these
 * Gradient: dx = dy cast back to the dtype of x. */
#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};
    const struct tfm_tensor *x = node->inputs[0];
    const struct tfm_tensor target = {.dtype = (enum tfm_dtype)node->attrs.dtype};

    if (!tfm__is_class(x, TFM_DTYPE_FLOAT) || !tfm__is_class(&target, TFM_DTYPE_FLOAT))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "x and the result must be of float dtypes");
    if (!tfm__is_activation(x))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, ...]");
    tfm__shape_like(&outputs[0], x, target.dtype);
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    g->dx[0] = tfm_op_cast(g->graph, g->dy[0], g->node->inputs[0]->dtype);
}

const struct tfm__rule tfm__rule_cast = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_cast(struct tfm_graph *graph, struct tfm_tensor *x, enum tfm_dtype dtype)
{
    struct tfm_tensor *const inputs[] = {x};
    const struct tfm_attrs attrs = {.dtype = (int32_t)dtype};
    return tfm__graph_append(graph, TFM_OP_CAST, inputs, 1, &attrs);
}
