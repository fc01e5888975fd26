/* SPDX-License-Identifier: MIT
 * A session: one plan, one exec with its KV cache, and how many tokens each sequence has. */
#include <stdlib.h>

#include <tfm/session.h>

#include "lib/core/checked.h"
#include "lib/llm/model_internal.h"

struct tfm_session {
    struct tfm_model *model;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    int64_t context, chunk, position, sequences, outputs;
    int64_t *used;                /* [sequences] */
    int32_t *slot, *start, *past; /* [sequences], of a run */
    int32_t *out;                 /* [outputs], of a run */
    int32_t *ids, *pos;           /* [chunk], bound */
    float *logits;                /* [outputs, vocab], bound */
    size_t logits_rows;           /* 0 = there are none */
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
    if (o->cache != TFM_DTYPE_F16 && o->cache != TFM_DTYPE_F32)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "KV cache of %s: it is f16 or f32",
                             tfm_dtype_name(o->cache));
    if (o->position < 0 || o->position > c->context - o->context)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "first position %lld: with a context of %lld it lies in 0..%lld",
                             (long long)o->position, (long long)o->context,
                             (long long)(c->context - o->context));
    if (o->sequences == 0)
        o->sequences = 1;
    if (o->sequences < 1 || o->sequences > 65536)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "%lld sequences: not in 1..65536",
                             (long long)o->sequences);
    if (o->chunk > o->context * o->sequences)
        o->chunk = o->context * o->sequences;
    /* a run that appends one token to each must be possible */
    if (o->chunk < o->sequences)
        o->chunk = o->sequences;
    if (o->outputs == 0)
        o->outputs = o->sequences;
    if (o->outputs < 1 || o->outputs > o->chunk)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "logits of %lld tokens in a run of %lld rows: not in 1..%lld",
                             (long long)o->outputs, (long long)o->chunk, (long long)o->chunk);
    return TFM_STATUS_OK;
}

static enum tfm_status compile(struct tfm_session *s, struct tfm_device *const *devices, size_t n,
                               const struct tfm_session_options *o, struct tfm_error *err)
{
    struct tfm_nn_decoder decoder;
    const struct tfm_capacity capacity = {.rows = (uint32_t)o->chunk,
                                          .sequences = (uint32_t)o->sequences,
                                          .out_rows = (uint32_t)o->outputs};
    struct tfm_model *model = s->model;
    struct tfm_graph *graph = NULL;
    enum tfm_status status = tfm_graph_create(&graph, err);

    if (status != TFM_STATUS_OK)
        return status;
    tfm_model_decoder(model, &decoder);
    if (decoder.bidirectional) {
        tfm_graph_destroy(graph);
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "%s: the decoder is bidirectional: a token depends on those behind "
                             "it, so it cannot be run token by token",
                             tfm_model_path(model));
    }
    decoder.slots = o->sequences;
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

static enum tfm_status allocate(struct tfm_session *s, struct tfm_error *err)
{
    const size_t chunk = (size_t)s->chunk, sequences = (size_t)s->sequences;
    size_t values;

    s->used = calloc(sequences, sizeof *s->used);
    s->slot = calloc(sequences, sizeof *s->slot);
    s->start = calloc(sequences, sizeof *s->start);
    s->past = calloc(sequences, sizeof *s->past);
    s->out = calloc((size_t)s->outputs, sizeof *s->out);
    s->ids = calloc(chunk, sizeof *s->ids);
    s->pos = calloc(chunk, sizeof *s->pos);
    if (!tfm__mul_size((size_t)s->outputs, (size_t)s->model->config.vocab, &values))
        s->logits = calloc(values, sizeof *s->logits);
    if (!s->used || !s->slot || !s->start || !s->past || !s->out || !s->ids || !s->pos ||
        !s->logits)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "session: out of memory");
    return TFM_STATUS_OK;
}

static enum tfm_status open_exec(struct tfm_session *s, struct tfm_error *err)
{
    const size_t chunk = (size_t)s->chunk;
    const size_t values = (size_t)s->outputs * (size_t)s->model->config.vocab;
    enum tfm_status status = allocate(s, err);

    if (status == TFM_STATUS_OK)
        status = tfm_exec_create(s->plan, &s->exec, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(s->exec, "ids", s->ids, chunk * sizeof *s->ids, err);
    /* relative positions and none need no numbers */
    if (status == TFM_STATUS_OK && tfm_graph_find(tfm_plan_graph(s->plan), "pos"))
        status = tfm_exec_bind(s->exec, "pos", s->pos, chunk * sizeof *s->pos, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(s->exec, "logits", s->logits, values * sizeof *s->logits, err);
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
    s->sequences = o.sequences;
    s->outputs = o.outputs;
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
    free(session->used);
    free(session->slot);
    free(session->start);
    free(session->past);
    free(session->out);
    free(session->ids);
    free(session->pos);
    free(session->logits);
    tfm_model_close(session->model);
    free(session);
}

/* ---- running ---- */

static enum tfm_status check_tokens(const struct tfm_session *s,
                                    const struct tfm_session_part *part, struct tfm_error *err)
{
    const int64_t vocab = s->model->config.vocab, used = s->used[part->sequence];

    if (part->n == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "no tokens to feed");
    for (size_t i = 0; i < part->n; i++) {
        if (part->ids[i] < 0 || part->ids[i] >= vocab)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "token id %d at %zu is not in [0, %lld)", part->ids[i], i,
                                 (long long)vocab);
    }
    if (part->n > (size_t)(s->context - used))
        return tfm_error_set(
            err, TFM_STATUS_CONTEXT_FULL,
            "context full: %zu tokens more do not fit, %lld of %lld are used; use a "
            "larger context (-c)",
            part->n, (long long)used, (long long)s->context);
    return TFM_STATUS_OK;
}

/* One run of parts that have been checked. */
static enum tfm_status run_parts(struct tfm_session *s, const struct tfm_session_part *parts,
                                 size_t n_parts, struct tfm_error *err)
{
    struct tfm_rows rows = {.n_seq = (uint32_t)n_parts,
                            .slot = s->slot,
                            .start = s->start,
                            .past = s->past,
                            .out = s->out};

    s->logits_rows = 0;
    for (size_t k = 0; k < n_parts; k++) {
        const struct tfm_session_part *part = &parts[k];
        const int64_t used = s->used[part->sequence];
        s->slot[k] = (int32_t)part->sequence;
        s->start[k] = (int32_t)rows.n;
        s->past[k] = (int32_t)used;
        for (size_t i = 0; i < part->n; i++, rows.n++) {
            s->ids[rows.n] = part->ids[i];
            s->pos[rows.n] = (int32_t)(s->position + used + (int64_t)i);
            if (i + part->n_logits >= part->n)
                s->out[rows.n_out++] = (int32_t)rows.n;
        }
    }
    const enum tfm_status status = tfm_exec_run(s->exec, &rows, err);
    if (status != TFM_STATUS_OK)
        return status;
    for (size_t k = 0; k < n_parts; k++)
        s->used[parts[k].sequence] += (int64_t)parts[k].n;
    s->logits_rows = rows.n_out;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_session_feed(struct tfm_session *session, const int32_t *ids, size_t n,
                                 struct tfm_error *err)
{
    const struct tfm_session_part all = {.ids = ids, .n = n};

    tfm_error_clear(err);
    enum tfm_status status = check_tokens(session, &all, err);
    for (size_t at = 0; at < n && status == TFM_STATUS_OK;) {
        const size_t left = n - at;
        const size_t now = left < (size_t)session->chunk ? left : (size_t)session->chunk;
        /* the head only for the last one */
        const struct tfm_session_part part = {.ids = ids + at, .n = now, .n_logits = now == left};
        status = run_parts(session, &part, 1, err);
        at += now;
    }
    return status;
}

static enum tfm_status check_parts(const struct tfm_session *s,
                                   const struct tfm_session_part *parts, size_t n_parts,
                                   struct tfm_error *err)
{
    size_t rows = 0, logits = 0;

    if (n_parts == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "no tokens to feed");
    for (size_t k = 0; k < n_parts; k++) {
        const struct tfm_session_part *part = &parts[k];
        if (part->sequence < 0 || part->sequence >= s->sequences)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "part %zu: there is no sequence %lld, the session has %lld", k,
                                 (long long)part->sequence, (long long)s->sequences);
        for (size_t i = 0; i < k; i++)
            if (parts[i].sequence == part->sequence)
                return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                     "parts %zu and %zu are both of sequence %lld", i, k,
                                     (long long)part->sequence);
        const enum tfm_status status = check_tokens(s, part, err);
        if (status != TFM_STATUS_OK)
            return status;
        if (part->n_logits > part->n)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "part %zu: logits of %zu of its %zu tokens", k, part->n_logits,
                                 part->n);
        if (tfm__add_size(rows, part->n, &rows) || rows > (size_t)s->chunk)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "more than the %lld tokens of one run: feed them in several",
                                 (long long)s->chunk);
        logits += part->n_logits; /* cannot wrap: at most rows */
    }
    if (logits > (size_t)s->outputs)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "logits of %zu tokens: the session has room for %lld", logits,
                             (long long)s->outputs);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_session_run(struct tfm_session *session, const struct tfm_session_part *parts,
                                size_t n_parts, struct tfm_error *err)
{
    tfm_error_clear(err);
    const enum tfm_status status = check_parts(session, parts, n_parts, err);
    return status == TFM_STATUS_OK ? run_parts(session, parts, n_parts, err) : status;
}

/* ---- what there is ---- */

const float *tfm_session_logits(const struct tfm_session *session)
{
    return session->logits_rows ? session->logits : NULL;
}

size_t tfm_session_logits_rows(const struct tfm_session *session)
{
    return session->logits_rows;
}

int64_t tfm_session_used(const struct tfm_session *session)
{
    return session->used[0];
}

int64_t tfm_session_used_by(const struct tfm_session *session, int64_t sequence)
{
    return sequence >= 0 && sequence < session->sequences ? session->used[sequence] : -1;
}

int64_t tfm_session_context(const struct tfm_session *session)
{
    return session->context;
}

enum tfm_status tfm_session_truncate(struct tfm_session *session, int64_t used,
                                     struct tfm_error *err)
{
    return tfm_session_truncate_one(session, 0, used, err);
}

enum tfm_status tfm_session_truncate_one(struct tfm_session *session, int64_t sequence,
                                         int64_t used, struct tfm_error *err)
{
    const int64_t now = tfm_session_used_by(session, sequence);

    tfm_error_clear(err);
    if (now < 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "there is no sequence %lld, the session has %lld", (long long)sequence,
                             (long long)session->sequences);
    if (used < 0 || used > now)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "cannot keep %lld tokens: the session has %lld", (long long)used,
                             (long long)now);
    if (used < now)
        session->logits_rows = 0;
    session->used[sequence] = used;
    return TFM_STATUS_OK;
}

const struct tfm_plan *tfm_session_plan(const struct tfm_session *session)
{
    return session->plan;
}
