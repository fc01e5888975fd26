/* SPDX-License-Identifier: MIT
 * linear: y = x W^T (+ b); x [N, ..., in], weight [out, in], bias [out] or absent -> [N, ..., out].
 * Shows host->parallel_for: threads share the features, each sum is computed whole by one of them. */
#include "example.h"

static int32_t supports(const struct tfm_node *node, char *reason, size_t size)
{
    if (node->inputs[0]->rank < 2 || node->inputs[1]->rank != 2)
        return example_refuse(reason, size, "linear: x must be [N, ..., in], weight [out, in]");
    return 1;
}

struct work {
    const float *x, *weight, *bias;
    float *y;
    size_t rows, in, out;
};

static void features(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t r = 0; r < w->rows; r++) {
        for (size_t f = begin; f < end; f++) {
            double sum = w->bias ? w->bias[f] : 0;
            for (size_t i = 0; i < w->in; i++)
                sum += (double)w->x[r * w->in + i] * w->weight[f * w->in + i];
            w->y[r * w->out + f] = (float)sum;
        }
    }
}

static void run(const struct example_call *call)
{
    const struct tfm_tensor *weight = call->node->inputs[1];
    struct work w = {
        .x = call->inputs[0],
        .weight = call->inputs[1],
        .bias = call->node->n_inputs > 2 ? call->inputs[2] : NULL,
        .y = call->output,
        .in = (size_t)weight->shape[1],
        .out = (size_t)weight->shape[0],
    };

    w.rows = example_elements(call->node->inputs[0], call->rows) / w.in;
    call->device->host->parallel_for(w.out, features, &w);
}

const struct example_op example_linear = {supports, run};
