/* SPDX-License-Identifier: MIT
 * Which parameters decay, and which have a rate of their own. */
#include <tfm/optimizer.h>

/* Does a node of this op have the parameter, or a view of it, as input `i`? */
static int is_read(const struct tfm_graph *graph, const struct tfm_tensor *parameter,
                   enum tfm_op op, uint32_t i)
{
    for (uint32_t n = 0; n < tfm_graph_node_count(graph); n++) {
        const struct tfm_node *node = tfm_graph_node(graph, n);
        const struct tfm_tensor *input = i < node->n_inputs ? node->inputs[i] : NULL;
        if (node->op == op && input && (input == parameter || input->view_of == parameter))
            return 1;
    }
    return 0;
}

struct tfm_optimizer_rule tfm_optimizer_usual_rules(void *context, const struct tfm_graph *graph,
                                                    const struct tfm_tensor *parameter)
{
    const double *rate = context;
    const int table = is_read(graph, parameter, TFM_OP_EMBEDDING, 0);
    const int multiplies = is_read(graph, parameter, TFM_OP_LINEAR, 1) ||
                           is_read(graph, parameter, TFM_OP_CROSS_ENTROPY, 1);

    return (struct tfm_optimizer_rule){
        .rate = table && rate ? *rate : 1,
        .decay = multiplies && !table ? 1 : 0,
    };
}
