/* SPDX-License-Identifier: MIT
 * `tfm plan -o dot`: the graph for Graphviz; a box a segment, an edge a tensor. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/tools/message.h"
#include "lib/tools/plan_text.h"

/* Inside a double-quoted string of the dot language. */
static void put_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static uint32_t root_id(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of->id : tensor->id;
}

static void put_node(const struct tfm_plan_node *n)
{
    printf("    n%" PRIu32 " [label=\"%s\\n", n->node->id, tfm_op_name(n->node->op));
    put_quoted(tfm__plan_layer(n->node));
    if (n->fallback) {
        printf("\\nfell back: ");
        put_quoted(n->refusal);
        printf("\", color=red];\n");
    } else {
        printf("\"];\n");
    }
}

static void put_edges(const struct tfm_node *node, const uint32_t *producer)
{
    struct tfm__shape_line line;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        const struct tfm_tensor *t = node->inputs[i];
        if (t && producer[root_id(t)])
            printf("  n%" PRIu32 " -> n%" PRIu32 " [label=\"%s\"];\n", producer[root_id(t)] - 1,
                   node->id, tfm__plan_shape(t, &line));
    }
}

int tfm__plan_put_dot(const struct tfm_plan *plan)
{
    const struct tfm_graph *graph = tfm_plan_graph(plan);
    struct tfm_plan_summary summary;
    uint32_t segment = UINT32_MAX;
    /* 1 + number of the node that wrote a tensor last, 0 = none did */
    uint32_t *producer = calloc(tfm_graph_tensor_count(graph) + 1, sizeof *producer);

    if (!producer)
        return tfm__failed("out of memory");
    tfm_plan_summarize(plan, &summary);
    printf("digraph plan {\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n");
    for (uint32_t i = 0; i < summary.nodes; i++) {
        struct tfm_plan_node n;
        if (tfm_plan_describe(plan, i, &n) != TFM_STATUS_OK)
            continue;
        if (n.segment != segment)
            printf("%s  subgraph cluster_%" PRIu32 " {\n    label=\"segment %" PRIu32 ": %s\";\n",
                   i ? "  }\n" : "", n.segment, n.segment, n.backend);
        segment = n.segment;
        put_node(&n);
    }
    printf("%s", summary.nodes ? "  }\n" : "");
    for (uint32_t i = 0; i < summary.nodes; i++) {
        const struct tfm_node *node = tfm_graph_node(graph, i);
        put_edges(node, producer);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            if (node->outputs[k])
                producer[root_id(node->outputs[k])] = node->id + 1;
    }
    printf("}\n");
    free(producer);
    return TFM__EXIT_OK;
}
