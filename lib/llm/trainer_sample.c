/* SPDX-License-Identifier: MIT
 * Text from a model in training: its own plan with a cache, on the parameters of now. */
#include <stdlib.h>
#include <string.h>

#include "lib/llm/trainer_internal.h"

/* Made when it is first asked for: many trainings never do. */
static enum tfm_status open_sampling(struct tfm_trainer *t, struct tfm_error *err)
{
    const size_t length = (size_t)t->settings.length;

    if (t->sample.exec)
        return TFM_STATUS_OK;
    if (!t->logits) {
        t->sample_ids = calloc(length, sizeof *t->sample_ids);
        t->sample_pos = calloc(length, sizeof *t->sample_pos);
        t->logits = calloc((size_t)t->model.vocab, sizeof *t->logits);
    }
    if (!t->sample_ids || !t->sample_pos || !t->logits)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "train: out of memory");
    return tfm__trainer_compile(t, TFM__TRAINER_SAMPLE, &t->sample, err);
}

/* ids behind the `used` tokens that are there; logits of the last one. */
static enum tfm_status feed(struct tfm_trainer *t, const int32_t *ids, size_t n, size_t used,
                            struct tfm_error *err)
{
    const int32_t slot = 0, start = 0, past = (int32_t)used, out = (int32_t)n - 1;
    const struct tfm_rows rows = {.n = (uint32_t)n,
                                  .n_seq = 1,
                                  .n_out = 1,
                                  .slot = &slot,
                                  .start = &start,
                                  .past = &past,
                                  .out = &out};

    for (size_t i = 0; i < n; i++) {
        t->sample_ids[i] = ids[i];
        t->sample_pos[i] = (int32_t)(used + i);
    }
    return tfm_exec_run(t->sample.exec, &rows, err);
}

static enum tfm_status write_on(struct tfm_trainer *t, struct tfm_sampler *sampler,
                                const int32_t *prompt, size_t n_prompt, size_t n,
                                int (*take)(void *context, int32_t id), void *context,
                                struct tfm_error *err)
{
    size_t used = n_prompt;
    enum tfm_status status = feed(t, prompt, n_prompt, 0, err);

    for (size_t made = 0; made < n && status == TFM_STATUS_OK; made++) {
        int32_t id = -1;
        status = tfm_sampler_next(sampler, t->logits, &id, err);
        if (status != TFM_STATUS_OK || take(context, id) || used == (size_t)t->settings.length ||
            made + 1 == n)
            break;
        status = feed(t, &id, 1, used++, err);
    }
    return status;
}

enum tfm_status tfm_trainer_sample(struct tfm_trainer *trainer,
                                   const struct tfm_sampler_options *sampling,
                                   const int32_t *prompt, size_t n_prompt, size_t n,
                                   int (*take)(void *context, int32_t id), void *context,
                                   struct tfm_error *err)
{
    struct tfm_trainer *t = trainer;
    struct tfm_sampler *sampler = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    if (n_prompt < 1 || n_prompt >= (size_t)t->settings.length)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "train: a sample of a prompt of %zu tokens: it must have 1 to %lld",
                             n_prompt, (long long)t->settings.length - 1);
    if (t->broken[0])
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "train: no sample, since a step failed (%.180s)", t->broken);
    status = open_sampling(t, err);
    if (status == TFM_STATUS_OK)
        status = tfm_sampler_create((size_t)t->model.vocab, sampling, &sampler, err);
    if (status == TFM_STATUS_OK)
        status = write_on(t, sampler, prompt, n_prompt, n, take, context, err);
    tfm_sampler_destroy(sampler);
    return status;
}
