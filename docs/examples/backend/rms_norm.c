/* SPDX-License-Identifier: MIT
 * rms_norm: y = x / sqrt(mean(x^2) + eps) * gamma over the last extent; x [N, ..., D], gamma [D]. */
#include <math.h>

#include "example.h"

static int32_t supports(const struct tfm_node *node, char *reason, size_t size)
{
    if (node->inputs[0]->rank < 2)
        return example_refuse(reason, size, "rms_norm: x must be [N, ..., D]");
    return 1;
}

static void run(const struct example_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    const size_t width = (size_t)x->shape[x->rank - 1];
    const size_t rows = example_elements(x, call->rows) / width;
    const float *gamma = call->inputs[1];

    for (size_t r = 0; r < rows; r++) {
        const float *from = call->inputs[0] + r * width;
        float *to = call->output + r * width;
        double squares = 0;
        for (size_t i = 0; i < width; i++)
            squares += (double)from[i] * from[i];
        const double factor = 1 / sqrt(squares / (double)width + call->node->attrs.eps);
        for (size_t i = 0; i < width; i++)
            to[i] = (float)(from[i] * factor * gamma[i]);
    }
}

const struct example_op example_rms_norm = {supports, run};
