/* SPDX-License-Identifier: MIT
 * Nodes in words, for error texts: what they read, and which of them a backend failed at. */
#include <stdio.h>

#include "lib/core/rule.h"

void tfm__operands_format(const struct tfm_node *node, const char *const *roles, char *list,
                          size_t size)
{
    size_t used = 0;

    list[0] = '\0';
    for (uint32_t i = 0; i < node->n_inputs && used < size; i++) {
        const struct tfm_tensor *t = node->inputs[i];
        struct tfm__shape_text shape;
        if (!t)
            continue;
        const int n = snprintf(list + used, size - used, "%s%s%s'%s' %s %s", used ? ", " : "",
                               roles ? roles[i] : "", roles ? " " : "", t->name ? t->name : "",
                               tfm__shape_format(t, &shape), tfm_dtype_name(t->dtype));
        used += n > 0 ? (size_t)n : 0;
    }
}

const char *tfm__layer_name(const struct tfm_node *node)
{
    return node->scope ? node->scope->name : "graph";
}

void tfm__nodes_blame(struct tfm_error *err, enum tfm_status status, const char *backend,
                      const char *what, const struct tfm_node *const *nodes, uint32_t n)
{
    const struct tfm_node *first = nodes[0], *last = nodes[n - 1];
    char list[400];

    /* a backend that fails without a word still has to be told apart */
    tfm_error_set(err, status, "no reason given: %s", tfm_status_text(status));
    if (n > 1) {
        tfm_error_prefix(err, "%s to %s: %s of %u nodes, %s to %s, on %s, which took them",
                         tfm__layer_name(first), tfm__layer_name(last), what, n,
                         tfm_op_name(first->op), tfm_op_name(last->op), backend);
        return;
    }
    tfm__operands_format(first, NULL, list, sizeof list);
    tfm_error_prefix(err, "%s: %s of %s of %s on %s, which took it", tfm__layer_name(first), what,
                     tfm_op_name(first->op), list, backend);
}
