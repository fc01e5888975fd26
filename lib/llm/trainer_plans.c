/* SPDX-License-Identifier: MIT
 * The plans of a trainer: forward and backward, forward for validation, one token after the other for samples.
 * All work on the trainable parameters of the first. */
#include <stdio.h>
#include <string.h>

#include "lib/llm/trainer_internal.h"

static enum tfm_status train_one(void *context, const struct tfm_tensor *tensor)
{
    tfm_graph_train(context, (struct tfm_tensor *)tensor);
    return TFM_STATUS_OK;
}

/* Every parameter, the embedding and the head among them. */
static void train_all(struct tfm_graph *graph)
{
    (void)tfm_graph_parameters(graph, train_one, graph);
}

static int in_ffn(const struct tfm_scope *scope)
{
    for (; scope; scope = scope->parent) {
        const size_t n = strlen(scope->name);
        if (n >= 4 && strcmp(scope->name + n - 4, ".ffn") == 0)
            return 1;
    }
    return 0;
}

/* What norms and feed-forward layers make, which is most of what backward would keep. */
static void recompute(struct tfm_graph *graph)
{
    const uint32_t n = tfm_graph_node_count(graph);

    for (uint32_t i = 0; i < n; i++) {
        const struct tfm_node *node = tfm_graph_node(graph, i);
        if (node->op == TFM_OP_RMS_NORM || node->op == TFM_OP_LAYER_NORM || in_ffn(node->scope))
            (void)tfm_graph_recompute(graph, (struct tfm_tensor *)node->outputs[0]);
    }
}

static void build_train(struct tfm_graph *graph, const struct tfm_nn_decoder *model,
                        const struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    struct tfm_tensor *loss = tfm_nn_decoder_loss(graph, model);
    struct tfm_tensor *seed = tfm_graph_input(graph, "dloss", TFM_DTYPE_F32, 1, (int64_t[]){0});

    train_all(graph);
    if (settings->recompute)
        recompute(graph);
    if (loss && seed)
        (void)tfm_graph_backward(graph, 1, &loss, &seed, err);
}

static void build_evaluate(struct tfm_graph *graph, const struct tfm_nn_decoder *model,
                           const struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    (void)settings, (void)err;
    (void)tfm_nn_decoder_loss(graph, model);
    train_all(graph);
}

static void build_sample(struct tfm_graph *graph, const struct tfm_nn_decoder *model,
                         const struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    (void)settings, (void)err;
    (void)tfm_nn_decoder(graph, model);
    train_all(graph);
}

static void build_look(struct tfm_graph *graph, const struct tfm_nn_decoder *model,
                       const struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    char name[300];

    build_evaluate(graph, model, settings, err);
    for (uint32_t i = 0; i < tfm_graph_node_count(graph); i++) {
        struct tfm_tensor *made = (struct tfm_tensor *)tfm_graph_node(graph, i)->outputs[0];
        if (made->kind != TFM_TENSOR_INTERMEDIATE || made->view_of)
            continue;
        snprintf(name, sizeof name, "%c%s", TFM__TRAINER_RESULT, made->name);
        (void)tfm_graph_output(graph, made, name);
    }
}

static const struct {
    void (*build)(struct tfm_graph *graph, const struct tfm_nn_decoder *model,
                  const struct tfm_trainer_settings *settings, struct tfm_error *err);
} purposes[] = {
    [TFM__TRAINER_TRAIN] = {build_train},
    [TFM__TRAINER_EVALUATE] = {build_evaluate},
    [TFM__TRAINER_SAMPLE] = {build_sample},
    [TFM__TRAINER_LOOK] = {build_look},
};

static struct tfm_capacity capacity_of(const struct tfm_trainer *t,
                                       enum tfm__trainer_purpose purpose)
{
    const uint32_t length = (uint32_t)t->settings.length,
                   sequences = (uint32_t)t->settings.sequences;

    if (purpose == TFM__TRAINER_SAMPLE)
        return (struct tfm_capacity){.rows = length, .sequences = 1, .out_rows = 1};
    return (struct tfm_capacity){.rows = length * sequences, .sequences = sequences};
}

struct bound {
    const char *name;
    void *memory;
    size_t bytes;
};

/* What the graph does not have (no positions, no gradient) is passed over. */
static enum tfm_status bind_all(struct tfm__trainer_plan *plan, const struct bound *bound, size_t n,
                                struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (size_t i = 0; i < n && status == TFM_STATUS_OK; i++) {
        if (tfm_graph_find(tfm_plan_graph(plan->plan), bound[i].name))
            status = tfm_exec_bind(plan->exec, bound[i].name, bound[i].memory, bound[i].bytes, err);
    }
    return status;
}

static enum tfm_status bind(struct tfm_trainer *t, enum tfm__trainer_purpose purpose,
                            struct tfm__trainer_plan *plan, struct tfm_error *err)
{
    const size_t length = (size_t)t->settings.length;
    const size_t rows = length * (size_t)t->settings.sequences;

    if (purpose == TFM__TRAINER_SAMPLE)
        return bind_all(plan,
                        (const struct bound[]){
                            {"ids", t->sample_ids, length * sizeof *t->sample_ids},
                            {"pos", t->sample_pos, length * sizeof *t->sample_pos},
                            {"logits", t->logits, (size_t)t->model.vocab * sizeof *t->logits}},
                        3, err);
    return bind_all(plan,
                    (const struct bound[]){{"ids", t->ids, rows * sizeof *t->ids},
                                           {"pos", t->pos, rows * sizeof *t->pos},
                                           {"targets", t->targets, rows * sizeof *t->targets},
                                           {"dloss", t->ones, rows * sizeof *t->ones},
                                           {"loss", t->loss, rows * sizeof *t->loss}},
                    5, err);
}

/* What a graph needs beyond what it shares: buffers, and for the first the parameters. */
static enum tfm_status complete(struct tfm_trainer *t, struct tfm_graph *graph,
                                enum tfm__trainer_purpose purpose, struct tfm_error *err)
{
    if (purpose != TFM__TRAINER_TRAIN)
        return TFM_STATUS_OK;
    enum tfm_status status = tfm__trainer_fits(t, graph, 0, err);
    if (status == TFM_STATUS_OK)
        status = tfm__trainer_give(t, graph, err);
    return status == TFM_STATUS_OK
               ? tfm_trainer_initialize(graph, t->model.layers, t->settings.seed, t->weights, err)
               : status;
}

enum tfm_status tfm__trainer_compile(struct tfm_trainer *trainer, enum tfm__trainer_purpose purpose,
                                     struct tfm__trainer_plan *plan, struct tfm_error *err)
{
    const struct tfm_capacity capacity = capacity_of(trainer, purpose);
    struct tfm_nn_decoder model = trainer->model;
    struct tfm_graph *graph = NULL;
    enum tfm_status status = tfm_graph_create(&graph, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (purpose == TFM__TRAINER_SAMPLE) {
        model.slots = 1;
        model.cells = trainer->settings.length;
        model.cache = TFM_DTYPE_F32;
    }
    purposes[purpose].build(graph, &model, &trainer->settings, err);
    status = tfm_graph_check(graph, err);
    if (status == TFM_STATUS_OK)
        status = complete(trainer, graph, purpose, err);
    if (status == TFM_STATUS_OK)
        status = tfm_plan_compile(graph, trainer->weights, trainer->devices, trainer->n_devices,
                                  &capacity, &plan->plan, err);
    if (status == TFM_STATUS_OK && purpose == TFM__TRAINER_TRAIN) {
        struct tfm_plan_summary summary;
        tfm_plan_summarize(plan->plan, &summary);
        status = tfm__trainer_fits(trainer, graph, summary.arena_bytes, err);
    }
    tfm_graph_destroy(graph);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_create_sharing(plan->plan, trainer->train.exec, &plan->exec, err);
    return status == TFM_STATUS_OK ? bind(trainer, purpose, plan, err) : status;
}

enum tfm_status tfm__trainer_each_parameter(
    const struct tfm_trainer *trainer,
    enum tfm_status (*visit)(void *context, const struct tfm_tensor *tensor), void *context)
{
    return tfm_graph_parameters(tfm_plan_graph(trainer->train.plan), visit, context);
}
