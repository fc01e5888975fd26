/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up, silu(x) = x / (1 + exp(-x)), gate and up of one shape [N, ...]. */
#include <math.h>

#include "example.h"

static int32_t supports(const struct tfm_node *node, char *reason, size_t size)
{
    (void)node, (void)reason, (void)size;
    return 1;
}

/* At -infinity its limit 0, not -inf / inf. */
static double silu(double x)
{
    return x == -INFINITY ? 0 : x / (1 + exp(-x));
}

static void run(const struct example_call *call)
{
    const size_t n = example_elements(call->node->outputs[0], call->rows);

    for (size_t i = 0; i < n; i++)
        call->output[i] = (float)(silu(call->inputs[0][i]) * call->inputs[1][i]);
}

const struct example_op example_swiglu = {supports, run};
