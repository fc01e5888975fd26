/* SPDX-License-Identifier: MIT
 * A session: one plan, one exec with its KV cache, and the tokens fed so far. */
#include <stdlib.h>

#include <tfm/session.h>

#include "lib/core/checked.h"
#include "lib/llm/model_internal.h"

struct tfm_session {
    struct tfm_model *model;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    int64_t context, chunk, position, used;
    int32_t *ids, *pos; /* [chunk], bound */
    float *logits;      /* [vocab], bound */
    int have_logits;
};

void tfm_session_defaults(struct tfm_session_options *options)
{
    *options = (struct tfm_session_options){.cache = TFM_DTYPE_F16};
}

static enum tfm_status check_options(const struct tfm_model_config *c,
                                     struct tfm_session_options *o, struct tfm_error *err)
{
    if (o->context == 0)
        o->context = c->context < 4096 ? c->context : 4096;
    if (o->context < 1 || o->context > c->context)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "context of %lld tokens: the model knows 1..%lld positions",
                             (long long)o->context, (long long)c->context);
    if (o->chunk == 0)
        o->chunk = 512;
    if (o->chunk < 1 || o->chunk > 65536)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "chunk of %lld rows: not in 1..65536", (long long)o->chunk);
    if (o->chunk > o->context)
        o->chunk = o->context;
    if (o->cache != TFM_DTYPE_F16 && o->cache != TFM_DTYPE_F32)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "KV cache of %s: it is f16 or f32",
                             tfm_dtype_name(o->cache));
    if (o->position < 0 || o->position > c->context - o->context)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "first position %lld: with a context of %lld it lies in 0..%lld",
                             (long long)o->position, (long long)o->context,
                             (long long)(c->context - o->context));
    return TFM_STATUS_OK;
}

static enum tfm_status compile(struct tfm_session *s, struct tfm_device *const *devices, size_t n,
                               const struct tfm_session_options *o, struct tfm_error *err)
{
    struct tfm_nn_decoder decoder;
    const struct tfm_capacity capacity = {
        .rows = (uint32_t)o->chunk, .sequences = 1, .out_rows = 1};
    struct tfm_model *model = s->model;
    struct tfm_graph *graph = NULL;
    enum tfm_status status = tfm_graph_create(&graph, err);

    if (status != TFM_STATUS_OK)
        return status;
    tfm_model_decoder(model, &decoder);
    decoder.slots = 1;
    decoder.cells = o->context;
    decoder.cache = o->cache;
    tfm_nn_decoder(graph, &decoder);
    status = tfm_graph_check(graph, err);
    if (status == TFM_STATUS_OK) {
        pthread_mutex_lock(&model->loading);
        model->progress = o->progress;
        model->progress_context = o->progress_context;
        status = tfm_plan_compile(graph, model->weights, devices, n, &capacity, &s->plan, err);
        if (status == TFM_STATUS_OK && o->progress)
            o->progress(o->progress_context, model->total, model->total);
        model->progress = NULL;
        pthread_mutex_unlock(&model->loading);
    }
    tfm_graph_destroy(graph);
    return status;
}

static enum tfm_status open_exec(struct tfm_session *s, struct tfm_error *err)
{
    const size_t vocab = (size_t)s->model->config.vocab, chunk = (size_t)s->chunk;
    enum tfm_status status;

    s->ids = calloc(chunk, sizeof *s->ids);
    s->pos = calloc(chunk, sizeof *s->pos);
    s->logits = calloc(vocab, sizeof *s->logits);
    if (!s->ids || !s->pos || !s->logits)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "session: out of memory");
    status = tfm_exec_create(s->plan, &s->exec, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(s->exec, "ids", s->ids, chunk * sizeof *s->ids, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(s->exec, "pos", s->pos, chunk * sizeof *s->pos, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(s->exec, "logits", s->logits, vocab * sizeof *s->logits, err);
    return status;
}

enum tfm_status tfm_session_create(struct tfm_model *model, struct tfm_device *const *devices,
                                   size_t n_devices, const struct tfm_session_options *options,
                                   struct tfm_session **session, struct tfm_error *err)
{
    struct tfm_session_options o;
    enum tfm_status status;

    tfm_error_clear(err);
    tfm_session_defaults(&o);
    if (options)
        o = *options;
    status = check_options(&model->config, &o, err);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_session *s = calloc(1, sizeof *s);
    if (!s)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "session: out of memory");
    s->model = tfm__model_retain(model);
    s->context = o.context;
    s->chunk = o.chunk;
    s->position = o.position;
    status = compile(s, devices, n_devices, &o, err);
    if (status == TFM_STATUS_OK)
        status = open_exec(s, err);
    if (status != TFM_STATUS_OK) {
        tfm_session_destroy(s);
        return status;
    }
    *session = s;
    return TFM_STATUS_OK;
}

void tfm_session_destroy(struct tfm_session *session)
{
    if (!session)
        return;
    tfm_exec_destroy(session->exec);
    tfm_plan_destroy(session->plan);
    free(session->ids);
    free(session->pos);
    free(session->logits);
    tfm_model_close(session->model);
    free(session);
}

/* One run of n <= chunk tokens; the head only if these are the last. */
static enum tfm_status run_chunk(struct tfm_session *s, const int32_t *ids, int64_t n, int last,
                                 struct tfm_error *err)
{
    const int32_t slot = 0, start = 0, past = (int32_t)s->used, out = (int32_t)n - 1;
    const struct tfm_rows rows = {
        .n = (uint32_t)n,
        .n_seq = 1,
        .n_out = last ? 1 : 0,
        .slot = &slot,
        .start = &start,
        .past = &past,
        .out = &out,
    };

    for (int64_t i = 0; i < n; i++) {
        s->ids[i] = ids[i];
        s->pos[i] = (int32_t)(s->position + s->used + i);
    }
    const enum tfm_status status = tfm_exec_run(s->exec, &rows, err);
    if (status == TFM_STATUS_OK)
        s->used += n;
    return status;
}

enum tfm_status tfm_session_feed(struct tfm_session *session, const int32_t *ids, size_t n,
                                 struct tfm_error *err)
{
    const int64_t vocab = session->model->config.vocab;

    tfm_error_clear(err);
    if (n == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "no tokens to feed");
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= vocab)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "token id %d at %zu is not in [0, %lld)", ids[i], i,
                                 (long long)vocab);
    }
    if (n > (size_t)(session->context - session->used))
        return tfm_error_set(
            err, TFM_STATUS_CONTEXT_FULL,
            "context full: %zu tokens more do not fit, %lld of %lld are used; use a "
            "larger context (-c)",
            n, (long long)session->used, (long long)session->context);
    session->have_logits = 0;
    for (size_t at = 0; at < n;) {
        const size_t left = n - at;
        const size_t now = left < (size_t)session->chunk ? left : (size_t)session->chunk;
        const enum tfm_status status = run_chunk(session, ids + at, (int64_t)now, now == left, err);
        if (status != TFM_STATUS_OK)
            return status;
        at += now;
    }
    session->have_logits = 1;
    return TFM_STATUS_OK;
}

const float *tfm_session_logits(const struct tfm_session *session)
{
    return session->have_logits ? session->logits : NULL;
}

int64_t tfm_session_used(const struct tfm_session *session)
{
    return session->used;
}

int64_t tfm_session_context(const struct tfm_session *session)
{
    return session->context;
}

enum tfm_status tfm_session_truncate(struct tfm_session *session, int64_t used,
                                     struct tfm_error *err)
{
    tfm_error_clear(err);
    if (used < 0 || used > session->used)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "cannot keep %lld tokens: the session has %lld", (long long)used,
                             (long long)session->used);
    if (used < session->used)
        session->have_logits = 0;
    session->used = used;
    return TFM_STATUS_OK;
}

const struct tfm_plan *tfm_session_plan(const struct tfm_session *session)
{
    return session->plan;
}
