/* SPDX-License-Identifier: MIT
 * What `tfm tune` times, and what its results are compared with. */
#include "lib/tools/tune_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tools/bench_time.h"
#include "lib/tools/clock.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"
#include "lib/tools/tune_check.h"

/* Tokens before those that are timed; tokens of a repetition, and before the first. */
enum { SHORT = 16, LONG = 1024, TOKENS = 8, WARM = 4 };

/* ---- linear layers ---- */

static void add_shape(struct tfm__tune_work *w, const struct tfm_node *node)
{
    const struct tfm_tensor *weight = node->inputs[1];

    if (node->op != TFM_OP_LINEAR || node->outputs[0]->extent != TFM_EXTENT_ROWS)
        return;
    for (size_t i = 0; i < w->n_shapes; i++) {
        struct tfm__tune_shape *s = &w->shapes[i];
        if (s->weight == weight->dtype && s->in == weight->shape[1] && s->out == weight->shape[0]) {
            s->count++;
            return;
        }
    }
    if (w->n_shapes == TFM__TUNE_SHAPES)
        return; /* the first of them stand for the rest */
    w->shapes[w->n_shapes++] = (struct tfm__tune_shape){
        .weight = weight->dtype, .in = weight->shape[1], .out = weight->shape[0], .count = 1};
}

void tfm__tune_add_shapes(struct tfm__tune_work *w, const struct tfm_graph *graph)
{
    for (uint32_t i = 0; i < tfm_graph_node_count(graph); i++)
        add_shape(w, tfm_graph_node(graph, i));
}

int tfm__tune_want(struct tfm__tune_work *w)
{
    struct tfm__setup setup = {0};
    struct tfm_error err;
    int code = tfm__setup_registry(w->options, &setup);

    if (code == TFM__EXIT_OK && tfm_devices_open(setup.registry, "reference", -1, setup.devices,
                                                 TFM__SETUP_DEVICES, &setup.n_devices, &err))
        code = tfm__failed("%s", err.text);
    for (size_t i = 0; i < w->n_shapes && code == TFM__EXIT_OK; i++) {
        struct tfm__tune_shape *s = &w->shapes[i];
        s->want = calloc((size_t)s->out * w->rows, sizeof *s->want);
        if (!s->want)
            code = tfm__failed("out of memory");
        else if (tfm__tune_compute(setup.devices[0], s->weight, s->in, s->out, w->rows, s->want,
                                   &err))
            code = tfm__failed("%s", err.text);
    }
    tfm__setup_close(&setup);
    return code;
}

void tfm__tune_work_deinit(struct tfm__tune_work *w)
{
    for (size_t i = 0; i < w->n_shapes; i++)
        free(w->shapes[i].want);
    for (size_t i = 0; i < TFM__TUNE_WORKS; i++)
        free(w->want[i]);
}

static void compare(const struct tfm__tune_work *w, struct tfm_device *device,
                    const struct tfm__tune_shape *s, char why[256])
{
    struct tfm_error err;
    float *have = calloc((size_t)s->out * w->rows, sizeof *have);

    if (!have)
        snprintf(why, 256, "out of memory");
    else if (tfm__tune_compute(device, s->weight, s->in, s->out, w->rows, have, &err))
        snprintf(why, 256, "%.200s", err.text);
    else if (!tfm__tune_agree(have, s->want, (size_t)s->out * w->rows))
        snprintf(why, 256, "it computes wrong values");
    free(have);
}

static double time_of(const struct tfm__tune_work *w, struct tfm_device *device,
                      const struct tfm__tune_shape *s, char why[256])
{
    const struct tfm__bench_case c = {.op = TFM_OP_LINEAR,
                                      .dtype = TFM_DTYPE_F32,
                                      .weight = s->weight,
                                      .rows = w->rows,
                                      .d1 = s->in,
                                      .d2 = s->out,
                                      .note = ""};
    struct tfm_error err;
    double seconds = 0;

    if (tfm__bench_time(device, &c, w->options->repetitions, &seconds, &err))
        snprintf(why, 256, "%.200s", err.text);
    else if (seconds <= 0)
        snprintf(why, 256, "its time is lost in the noise");
    return seconds;
}

static int time_linears(struct tfm__tune_work *w, double *seconds, char why[256])
{
    struct tfm__setup setup = {0};
    struct tfm_error err;
    int code = tfm__setup_registry(w->options, &setup);

    *seconds = 0;
    if (code == TFM__EXIT_OK &&
        tfm_devices_open(setup.registry, w->options->backend, -1, setup.devices, TFM__SETUP_DEVICES,
                         &setup.n_devices, &err))
        code = tfm__failed("%s", err.text);
    for (size_t i = 0; i < w->n_shapes && code == TFM__EXIT_OK && !why[0]; i++) {
        const struct tfm__tune_shape *s = &w->shapes[i];
        compare(w, setup.devices[0], s, why);
        if (!why[0])
            *seconds += s->count * time_of(w, setup.devices[0], s, why);
    }
    tfm__setup_close(&setup);
    return code;
}

/* ---- tokens ---- */

/* Tokens before the timed ones: what the context has room for. */
static int64_t depth_of(const struct tfm__tune_work *w, uint32_t kind)
{
    const int64_t depth = kind == TFM_TUNE_CONTEXT ? LONG : SHORT, room = w->context - TOKENS;

    return depth < room ? depth : room > 0 ? room : 0;
}

/* Any ids will do; the same ones every time. */
static enum tfm_status feed(struct tfm__setup *setup, int64_t n, struct tfm_error *err)
{
    const int32_t vocab = (int32_t)tfm_model_config(setup->model)->vocab;
    const int64_t used = tfm_session_used(setup->session);
    enum tfm_status status = TFM_STATUS_OK;
    int32_t ids[256];

    for (int64_t at = 0; at < n && status == TFM_STATUS_OK;) {
        const int64_t now = n - at < 256 ? n - at : 256;
        for (int64_t i = 0; i < now; i++)
            ids[i] = (int32_t)((uint32_t)(used + at + i) * 2654435761u % (uint32_t)vocab);
        status = tfm_session_feed(setup->session, ids, (size_t)now, err);
        at += now;
    }
    return status;
}

/* Seconds of a token, the least of the repetitions. Ends behind `depth` + n tokens. */
static enum tfm_status time_tokens(const struct tfm__tune_work *w, struct tfm__setup *setup,
                                   int64_t depth, double *seconds, struct tfm_error *err)
{
    const int64_t room = tfm_session_context(setup->session) - depth;
    const int64_t most = room < TOKENS ? room : TOKENS;
    enum tfm_status status = feed(setup, depth, err);

    for (int64_t r = -1; r < w->options->repetitions && status == TFM_STATUS_OK; r++) {
        const int64_t n = r < 0 && most > WARM ? WARM : most;
        status = tfm_session_truncate(setup->session, depth, err);
        const double begin = tfm__seconds();
        for (int64_t i = 0; i < n && status == TFM_STATUS_OK; i++)
            status = feed(setup, 1, err);
        const double each = (tfm__seconds() - begin) / (double)n;
        if (r <= 0 || each < *seconds) /* -1 is the warm-up */
            *seconds = each;
    }
    return status;
}

/* The logits behind them agree with those of the first candidate, or become them. */
static void compare_logits(struct tfm__tune_work *w, uint32_t kind, const struct tfm__setup *setup,
                           char why[256])
{
    const size_t vocab = (size_t)tfm_model_config(setup->model)->vocab;
    const float *have = tfm_session_logits(setup->session);

    if (!have) {
        snprintf(why, 256, "there are no logits");
    } else if (w->want[kind]) {
        if (!tfm__tune_agree(have, w->want[kind], vocab))
            snprintf(why, 256, "it computes wrong values");
    } else {
        w->want[kind] = malloc(vocab * sizeof *w->want[kind]);
        if (w->want[kind])
            memcpy(w->want[kind], have, vocab * sizeof *have);
        else
            snprintf(why, 256, "out of memory");
    }
}

static int time_token(struct tfm__tune_work *w, uint32_t kind, double *seconds, char why[256])
{
    struct tfm__setup setup = {0};
    struct tfm_error err;
    int code = tfm__setup_model(w->options, &setup);

    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(w->options, 0, &setup);
    if (code == TFM__EXIT_OK) {
        if (time_tokens(w, &setup, depth_of(w, kind), seconds, &err))
            snprintf(why, 256, "%.200s", err.text);
        else
            compare_logits(w, kind, &setup, why);
    }
    tfm__setup_close(&setup);
    return code;
}

/* ---- either ---- */

void tfm__tune_describe(const struct tfm__tune_work *w, uint32_t kind, char text[160])
{
    if (kind == TFM_TUNE_LINEAR)
        snprintf(text, 160, "the %zu shapes of linear layers, %" PRIu32 " rows, all of them once",
                 w->n_shapes, w->rows);
    else
        snprintf(text, 160, "a token behind %" PRId64 " of context", depth_of(w, kind));
}

int tfm__tune_time(struct tfm__tune_work *w, uint32_t kind, double *seconds, char why[256])
{
    why[0] = 0;
    return kind == TFM_TUNE_LINEAR ? time_linears(w, seconds, why)
                                   : time_token(w, kind, seconds, why);
}
