/* SPDX-License-Identifier: MIT
 * add: y = a + b, a and b of one shape [N, ...]. */
#include "example.h"

static int32_t supports(const struct tfm_node *node, char *reason, size_t size)
{
    (void)node, (void)reason, (void)size; /* any shape will do */
    return 1;
}

static void run(const struct example_call *call)
{
    const size_t n = example_elements(call->node->outputs[0], call->rows);

    /* y may be the memory of a: element i is read before it is written */
    for (size_t i = 0; i < n; i++)
        call->output[i] = call->inputs[0][i] + call->inputs[1][i];
}

const struct example_op example_add = {supports, run};
