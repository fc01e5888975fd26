/* SPDX-License-Identifier: MIT
 * Which tensor of a run was the first that is not finite: a parameter, or what a node made of finite ones. For that the run is
 * done once more, forward, with the result of every node as an output. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/llm/trainer_internal.h"

struct results {
    struct tfm__trainer_plan plan;
    void **memory; /* [nodes], NULL = nobody looks at it */
    uint32_t n;
};

static const struct tfm_tensor *result(const struct results *r, uint32_t node)
{
    const struct tfm_tensor *made = tfm_graph_node(tfm_plan_graph(r->plan.plan), node)->outputs[0];

    return made->name[0] == TFM__TRAINER_RESULT ? made : NULL;
}

static size_t elements(const struct tfm_trainer *t, const struct tfm_tensor *tensor)
{
    return (size_t)tfm_tensor_row_elements(tensor) * (size_t)t->settings.length *
           (size_t)t->settings.sequences;
}

static enum tfm_status bind_all(const struct tfm_trainer *t, struct results *r,
                                struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    r->n = tfm_graph_node_count(tfm_plan_graph(r->plan.plan));
    r->memory = calloc(r->n, sizeof *r->memory);
    if (!r->memory)
        return TFM_STATUS_NOMEM;
    for (uint32_t i = 0; i < r->n && status == TFM_STATUS_OK; i++) {
        const struct tfm_tensor *tensor = result(r, i);
        if (!tensor)
            continue;
        const size_t bytes = elements(t, tensor) * tfm_dtype_info(tensor->dtype)->bytes;
        r->memory[i] = malloc(bytes);
        status = r->memory[i] ? tfm_exec_bind(r->plan.exec, tensor->name, r->memory[i], bytes, err)
                              : TFM_STATUS_NOMEM;
    }
    return status;
}

/* The name of the first result that is not finite, NULL = none is, or it cannot be found out. */
static const char *search(struct tfm_trainer *t, struct results *r)
{
    const struct tfm_rows rows = {
        .n = (uint32_t)((size_t)t->settings.length * (size_t)t->settings.sequences),
        .n_seq = (uint32_t)t->settings.sequences,
        .slot = t->slot,
        .start = t->start,
        .past = t->past};
    struct tfm_error err;

    if (tfm__trainer_compile(t, TFM__TRAINER_LOOK, &r->plan, &err) != TFM_STATUS_OK ||
        bind_all(t, r, &err) != TFM_STATUS_OK ||
        tfm_exec_run(r->plan.exec, &rows, &err) != TFM_STATUS_OK)
        return NULL;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct tfm_tensor *tensor = result(r, i);
        if (tensor && !tfm__trainer_finite(tensor->dtype, r->memory[i], elements(t, tensor)))
            return tensor->name + 1;
    }
    return NULL;
}

void tfm__trainer_first_not_finite(struct tfm_trainer *trainer, char *name, size_t size)
{
    struct results r = {.n = 0};
    const char *found = tfm__trainer_not_finite(trainer);

    if (!found)
        found = search(trainer, &r);
    snprintf(name, size, "%s", found ? found : "loss");
    tfm_exec_destroy(r.plan.exec);
    tfm_plan_destroy(r.plan.plan);
    for (uint32_t i = 0; i < r.n; i++)
        free(r.memory[i]);
    free(r.memory);
}
