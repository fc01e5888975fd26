/* SPDX-License-Identifier: MIT
 * The trainer: what it is made of, a step, a validation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__ /* known once a header of it was read */
#include <malloc.h>
#endif

#include <tfm/schedule.h>

#include "lib/llm/trainer_internal.h"

/* ---- creation ---- */

static enum tfm_status check(const struct tfm_nn_decoder *model,
                             const struct tfm_trainer_settings *s,
                             const struct tfm_trainer_data *data, struct tfm_error *err)
{
    const struct tfm_dataset *sets[] = {data->train, data->validation};

    const enum tfm_status status = tfm_trainer_settings_check(s, model, err);

    if (status != TFM_STATUS_OK)
        return status;
    for (int i = 0; i < 2; i++)
        if (sets[i] && tfm_dataset_vocab(sets[i]) != (uint64_t)model->vocab)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "train: the %s has ids of a vocabulary of %llu tokens, the model "
                                 "has %lld",
                                 i ? "validation text" : "text",
                                 (unsigned long long)tfm_dataset_vocab(sets[i]),
                                 (long long)model->vocab);
    return TFM_STATUS_OK;
}

/* Every matrix in the type that the settings say; biases stay as the model has them. */
static enum tfm_status copy_model(struct tfm_trainer *t, const struct tfm_nn_decoder *model,
                                  struct tfm_error *err)
{
    const enum tfm_dtype type = t->settings.compute;

    t->model = *model;
    t->layers = calloc((size_t)model->layers + 1, sizeof *t->layers);
    if (!t->layers)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "trainer: out of memory");
    for (int64_t i = 0; i < model->layers; i++) {
        struct tfm_nn_decoder_layer *layer = &t->layers[i];
        *layer = model->layer ? model->layer[i] : model->each;
        layer->q = layer->k = layer->v = layer->o = type;
        layer->gate = layer->up = layer->down = type;
    }
    t->model.layer = t->layers;
    t->model.embedding = t->model.head = t->model.position_weight = type;
    t->model.slots = t->model.cells = 0;
    return TFM_STATUS_OK;
}

static enum tfm_status split(struct tfm_trainer *t, struct tfm_error *err)
{
    const size_t length = (size_t)t->settings.length;
    const struct tfm_dataset *own = t->data.validation;
    const enum tfm_status status = tfm_windows_split(
        t->data.train, length, own ? 0 : t->settings.held_out, t->settings.seed, &t->windows, err);

    if (status != TFM_STATUS_OK)
        return status;
    t->validation = t->windows;
    if (own) {
        const size_t n = tfm_dataset_count(own);
        t->validation = (struct tfm_windows){.length = length, .held = n ? (n - 1) / length : 0};
        if (t->validation.held == 0)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "train: the validation text has %zu tokens, a window needs %zu", n,
                                 length + 1);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status allocate(struct tfm_trainer *t, struct tfm_error *err)
{
    const size_t length = (size_t)t->settings.length, sequences = (size_t)t->settings.sequences;
    const size_t rows = length * sequences;

    t->slot = calloc(sequences, sizeof *t->slot);
    t->start = calloc(sequences, sizeof *t->start);
    t->past = calloc(sequences, sizeof *t->past);
    t->ids = calloc(rows, sizeof *t->ids);
    t->pos = calloc(rows, sizeof *t->pos);
    t->targets = calloc(rows, sizeof *t->targets);
    t->ones = calloc(rows, sizeof *t->ones);
    t->loss = calloc(rows, sizeof *t->loss);
    if (!t->slot || !t->start || !t->past || !t->ids || !t->pos || !t->targets || !t->ones ||
        !t->loss)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "trainer: out of memory");
    for (size_t s = 0; s < sequences; s++) {
        t->slot[s] = (int32_t)s;
        t->start[s] = (int32_t)(s * length);
    }
    for (size_t i = 0; i < rows; i++) {
        t->pos[i] = (int32_t)(i % length);
        t->ones[i] = 1;
    }
    return TFM_STATUS_OK;
}

struct forgetting {
    struct tfm_weights *weights;
    struct tfm_error *err;
};

static enum tfm_status forget(void *context, const struct tfm_tensor *parameter)
{
    const struct forgetting *f = context;
    return tfm_weights_forget(f->weights, parameter->name, f->err);
}

static enum tfm_status open_plans(struct tfm_trainer *t, const struct tfm_weights *weights,
                                  struct tfm_error *err)
{
    const struct tfm_adamw adamw = {
        .beta1 = t->settings.beta1,
        .beta2 = t->settings.beta2,
        .eps = t->settings.adam_eps,
        .weight_decay = t->settings.weight_decay,
        .clip = t->settings.clip,
    };
    enum tfm_status status = tfm_weights_create(&t->weights, err);

    t->given = weights;
    if (status == TFM_STATUS_OK)
        status = tfm__trainer_compile(t, TFM__TRAINER_TRAIN, &t->train, err);
    t->given = NULL;
    if (status == TFM_STATUS_OK && t->validation.held > 0)
        status = tfm__trainer_compile(t, TFM__TRAINER_EVALUATE, &t->evaluate, err);
    if (status == TFM_STATUS_OK)
        status =
            tfm_optimizer_create(t->train.plan, t->train.exec, t->weights, t->devices, t->n_devices,
                                 &adamw, NULL, &t->settings.embedding_rate, &t->optimizer, err);
    /* every exec from now on shares the variables: no second copy of the parameters */
    struct forgetting forgetting = {t->weights, err};
    if (status == TFM_STATUS_OK)
        status = tfm__trainer_each_parameter(t, forget, &forgetting);
#ifdef __GLIBC__
    /* what malloc keeps of them is a fifth of the memory of a training */
    malloc_trim(0);
#endif
    return status;
}

enum tfm_status tfm_trainer_create(const struct tfm_nn_decoder *model,
                                   const struct tfm_trainer_settings *settings,
                                   const struct tfm_trainer_data *data,
                                   const struct tfm_weights *weights,
                                   struct tfm_device *const *devices, size_t n_devices,
                                   struct tfm_trainer **trainer, struct tfm_error *err)
{
    enum tfm_status status;

    tfm_error_clear(err);
    status = check(model, settings, data, err);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_trainer *t = calloc(1, sizeof *t);
    if (!t)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "trainer: out of memory");
    t->settings = *settings;
    t->data = *data;
    for (size_t i = 0; i < n_devices && i < TFM__TRAINER_DEVICES; i++)
        t->devices[t->n_devices++] = tfm_device_retain(devices[i]);
    status = copy_model(t, model, err);
    if (status == TFM_STATUS_OK)
        status = split(t, err);
    if (status == TFM_STATUS_OK)
        status = tfm__trainer_run_fits(t, err);
    if (status == TFM_STATUS_OK)
        status = allocate(t, err);
    if (status == TFM_STATUS_OK)
        status = open_plans(t, weights, err);
    if (status == TFM_STATUS_OK) {
        t->identity = tfm__trainer_identity(t);
        if (!t->identity)
            status = tfm_error_set(err, TFM_STATUS_NOMEM, "trainer: out of memory");
    }
    if (status != TFM_STATUS_OK) {
        tfm_trainer_destroy(t);
        return status;
    }
    *trainer = t;
    return TFM_STATUS_OK;
}

static void close_plan(struct tfm__trainer_plan *plan)
{
    tfm_exec_destroy(plan->exec);
    tfm_plan_destroy(plan->plan);
}

void tfm_trainer_destroy(struct tfm_trainer *trainer)
{
    struct tfm_trainer *t = trainer;

    if (!t)
        return;
    tfm_optimizer_destroy(t->optimizer);
    close_plan(&t->sample);
    close_plan(&t->evaluate);
    close_plan(&t->train);
    tfm_weights_release(t->weights);
    for (size_t i = 0; i < t->n_devices; i++)
        tfm_device_release(t->devices[i]);
    free(t->layers);
    free(t->identity);
    free(t->slot);
    free(t->start);
    free(t->past);
    free(t->ids);
    free(t->pos);
    free(t->targets);
    free(t->ones);
    free(t->loss);
    free(t->sample_ids);
    free(t->sample_pos);
    free(t->logits);
    free(t);
}

/* ---- running ---- */

/* One run of the first `sequences` windows that stand in ids and targets; adds to sum and tokens. */
static enum tfm_status run(struct tfm_trainer *t, struct tfm_exec *exec, size_t sequences,
                           double *sum, uint64_t *tokens, struct tfm_error *err)
{
    const size_t n = sequences * (size_t)t->settings.length;
    const struct tfm_rows rows = {.n = (uint32_t)n,
                                  .n_seq = (uint32_t)sequences,
                                  .slot = t->slot,
                                  .start = t->start,
                                  .past = t->past};
    const enum tfm_status status = tfm_exec_run(exec, &rows, err);

    if (status != TFM_STATUS_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        if (t->targets[i] < 0)
            continue;
        *sum += (double)t->loss[i];
        ++*tokens;
    }
    return TFM_STATUS_OK;
}

static enum tfm_status accumulate(struct tfm_trainer *t, uint64_t *place, double *sum,
                                  uint64_t *tokens, struct tfm_error *err)
{
    const size_t sequences = (size_t)t->settings.sequences;
    enum tfm_status status = TFM_STATUS_OK;

    for (int64_t a = 0; a < t->settings.accumulate && status == TFM_STATUS_OK && isfinite(*sum);
         a++) {
        status = tfm_windows_train(&t->windows, t->data.train, place, sequences, t->ids, t->targets,
                                   err);
        if (status == TFM_STATUS_OK)
            status = run(t, t->train.exec, sequences, sum, tokens, err);
    }
    if (status == TFM_STATUS_OK && !isfinite(*sum)) {
        char name[256];
        tfm__trainer_first_not_finite(t, name, sizeof name);
        status = tfm_error_set(err, TFM_STATUS_BACKEND,
                               "step %llu: the loss is %g: the first tensor that is not finite is "
                               "\"%s\"; lower the rate, or go on from an earlier checkpoint",
                               (unsigned long long)t->step + 1, *sum, name);
    }
    return status;
}

static enum tfm_status refuse_broken(const struct tfm_trainer *t, struct tfm_error *err)
{
    return t->broken[0]
               ? tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                               "train: a step failed before (%.180s): load a checkpoint", t->broken)
               : TFM_STATUS_OK;
}

enum tfm_status tfm_trainer_step(struct tfm_trainer *trainer, struct tfm_trainer_report *report,
                                 struct tfm_error *err)
{
    struct tfm_trainer *t = trainer;
    const struct tfm_schedule schedule = {.rate = t->settings.rate,
                                          .final_rate = t->settings.final_rate,
                                          .warmup = (uint64_t)t->settings.warmup,
                                          .steps = (uint64_t)t->settings.steps};
    struct tfm_trainer_report made = {.step = t->step + 1,
                                      .rate = tfm_schedule_rate(&schedule, t->step)};
    struct tfm_optimizer_report update;
    struct tfm_error why = {0};
    uint64_t place = t->place;
    double sum = 0;
    enum tfm_status status;

    tfm_error_clear(err);
    status = refuse_broken(t, err);
    if (status != TFM_STATUS_OK)
        return status;
    status = accumulate(t, &place, &sum, &made.tokens, &why);
    if (status == TFM_STATUS_OK)
        status =
            tfm_optimizer_step(t->optimizer, made.rate, 1 / (double)made.tokens, &update, &why);
    if (status != TFM_STATUS_OK) {
        snprintf(t->broken, sizeof t->broken, "%.255s", why.text);
        return tfm_error_set(err, status, "%s", why.text);
    }
    made.loss = sum / (double)made.tokens;
    made.norm = update.norm;
    made.clipped = update.clipped;
    t->place = place;
    t->step++;
    t->tokens += made.tokens;
    *report = made;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_trainer_evaluate(struct tfm_trainer *trainer, double *loss, uint64_t *tokens,
                                     struct tfm_error *err)
{
    struct tfm_trainer *t = trainer;
    const struct tfm_dataset *text = t->data.validation ? t->data.validation : t->data.train;
    const uint64_t most = (uint64_t)t->settings.sequences, held = t->validation.held;
    enum tfm_status status;
    double sum = 0;
    uint64_t counted = 0;

    tfm_error_clear(err);
    status = refuse_broken(t, err);
    if (status == TFM_STATUS_OK && held == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "train: there is no validation text: give one, or hold out a share");
    for (uint64_t first = 0; first < held && status == TFM_STATUS_OK; first += most) {
        const uint64_t left = held - first;
        const size_t n = (size_t)(left < most ? left : most);
        status = tfm_windows_held(&t->validation, text, first, n, t->ids, t->targets, err);
        if (status == TFM_STATUS_OK)
            status = run(t, t->evaluate.exec, n, &sum, &counted, err);
    }
    if (status != TFM_STATUS_OK)
        return status;
    *loss = sum / (double)counted;
    *tokens = counted;
    return TFM_STATUS_OK;
}

/* ---- what there is ---- */

uint64_t tfm_trainer_steps(const struct tfm_trainer *trainer)
{
    return trainer->step;
}

uint64_t tfm_trainer_tokens(const struct tfm_trainer *trainer)
{
    return trainer->tokens;
}

static enum tfm_status count(void *context, const struct tfm_tensor *tensor)
{
    *(uint64_t *)context += tfm__trainer_elements(tensor);
    return TFM_STATUS_OK;
}

uint64_t tfm_trainer_parameters(const struct tfm_trainer *trainer)
{
    uint64_t n = 0;

    (void)tfm__trainer_each_parameter(trainer, count, &n);
    return n;
}

uint64_t tfm_trainer_windows(const struct tfm_trainer *trainer)
{
    return trainer->windows.train;
}

uint64_t tfm_trainer_held(const struct tfm_trainer *trainer)
{
    return trainer->validation.held;
}

void tfm_trainer_summarize(const struct tfm_trainer *trainer, struct tfm_plan_summary *summary)
{
    struct tfm_plan_summary update;

    tfm_plan_summarize(trainer->train.plan, summary);
    tfm_optimizer_summarize(trainer->optimizer, &update);
    tfm_plan_summary_add(summary, &update);
}

const struct tfm_plan *tfm_trainer_plan(const struct tfm_trainer *trainer)
{
    return trainer->train.plan;
}
