/* SPDX-License-Identifier: MIT
 * Pre-norm block: u = x + attn(norm(x)), y = u + ffn(norm(u)) (Xiong et al., arXiv:2002.04745). */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_block(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                const struct tfm_nn_block *config)
{
    struct tfm__name buffer;

    tfm_graph_scope_push(graph, "block_pre_norm", name);
    struct tfm_tensor *h =
        tfm_nn_rms_norm(graph, tfm__name_join(&buffer, name, "attn_norm"), x, config->eps);
    h = tfm_nn_attention(graph, tfm__name_join(&buffer, name, "attn"), h, &config->attention);
    struct tfm_tensor *u = tfm_op_add(graph, x, h);
    h = tfm_nn_rms_norm(graph, tfm__name_join(&buffer, name, "ffn_norm"), u, config->eps);
    h = tfm_nn_swiglu(graph, tfm__name_join(&buffer, name, "ffn"), h, &config->ffn);
    struct tfm_tensor *y = tfm_op_add(graph, u, h);
    tfm_graph_scope_pop(graph);
    return y;
}
