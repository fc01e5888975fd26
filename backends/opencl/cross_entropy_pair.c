/* SPDX-License-Identifier: MIT
 * Which cross_entropy and cross_entropy_grad of a segment are one piece of work: the gradient's chunks of rows need the
 * very logits that loss and lse are made of. The gradient then writes loss and lse, so that nobody may read them
 * before it, and their memory must still be theirs. */
#include "backends/opencl/cross_entropy.h"

/* Results that stand between a cross_entropy and x of its gradient, if x was computed again for it. */
enum { DEPTH = 4 };

static const struct tfm_tensor *root_of(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of : tensor;
}

static int reads(const struct tfm_node *node, const struct tfm_tensor *tensor)
{
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] && root_of(node->inputs[k]) == tensor)
            return 1;
    }
    return 0;
}

/* An older library has no room for younger attributes. */
static int same_attrs(const struct tfm_attrs *a, const struct tfm_attrs *b, int64_t library)
{
#define TFM_ATTR(ctype, name, neutral, minor, meaning) \
    if ((minor) <= library && a->name != b->name)      \
        return 0;
#include <tfm/attrs.def>
#undef TFM_ATTR
    return 1;
}

static const struct tfm_node *maker_of(const struct tfm_segment *segment,
                                       const struct tfm_tensor *tensor, uint32_t *output)
{
    for (uint32_t i = 0; i < segment->n_nodes; i++) {
        for (*output = 0; *output < segment->nodes[i]->n_outputs; ++*output) {
            if (segment->nodes[i]->outputs[*output] == tensor)
                return segment->nodes[i];
        }
    }
    return NULL;
}

/* Equal bits: one tensor, or results of equal nodes, as where an activation is not kept for backward. */
static int same_value(const struct tfm__cl_planner *p, const struct tfm_tensor *a,
                      const struct tfm_tensor *b, int depth)
{
    uint32_t i, k;

    if (a == b)
        return 1;
    if (!a || !b || !depth || a->view_of || b->view_of)
        return 0;
    const struct tfm_node *x = maker_of(p->segment, a, &i), *y = maker_of(p->segment, b, &k);
    if (!x || !y || i != k || x->op != y->op || x->n_inputs != y->n_inputs ||
        !same_attrs(&x->attrs, &y->attrs, p->device->host->abi_minor))
        return 0;
    for (k = 0; k < x->n_inputs; k++) {
        if (x->inputs[k] && root_of(x->inputs[k])->kind == TFM_TENSOR_STATE)
            return 0;
        if (!same_value(p, x->inputs[k], y->inputs[k], depth - 1))
            return 0;
    }
    return 1;
}

static int is_gradient_of(const struct tfm__cl_planner *p, const struct tfm_node *node,
                          const struct tfm_node *forward)
{
    return node->op == TFM_OP_CROSS_ENTROPY_GRAD && node->inputs[3] == forward->outputs[1] &&
           node->inputs[1] == forward->inputs[1] && node->inputs[2] == forward->inputs[2] &&
           node->inputs[4] != forward->outputs[0] && node->inputs[4] != forward->outputs[1] &&
           node->attrs.softcap == forward->attrs.softcap &&
           same_value(p, node->inputs[0], forward->inputs[0], DEPTH);
}

static int is_read_later(const struct tfm_segment *segment, const struct tfm_tensor *tensor,
                         uint32_t after)
{
    int any = segment->read_later[segment->index[tensor->id]];

    for (uint32_t i = after + 1; i < segment->n_nodes && !any; i++)
        any = reads(segment->nodes[i], tensor);
    return any;
}

const struct tfm_node *tfm__cl_cross_entropy_gradient(const struct tfm__cl_planner *p,
                                                      const struct tfm_node *forward)
{
    const struct tfm_segment *segment = p->segment;
    uint32_t i = 0;

    while (i < segment->n_nodes && segment->nodes[i] != forward)
        i++;
    for (i++; i < segment->n_nodes; i++) {
        const struct tfm_node *node = segment->nodes[i];
        if (node->op == TFM_OP_ADAMW) /* parameters are others from here on */
            return NULL;
        if (reads(node, forward->outputs[0]) || reads(node, forward->outputs[1]))
            return is_gradient_of(p, node, forward) &&
                           is_read_later(segment, forward->outputs[0], i)
                       ? node
                       : NULL;
    }
    return NULL;
}

const struct tfm_node *tfm__cl_cross_entropy_forward(const struct tfm__cl_planner *p,
                                                     const struct tfm_node *gradient)
{
    uint32_t output;
    const struct tfm_node *maker = maker_of(p->segment, gradient->inputs[3], &output);

    return maker && maker->op == TFM_OP_CROSS_ENTROPY &&
                   tfm__cl_cross_entropy_gradient(p, maker) == gradient
               ? maker
               : NULL;
}
