/* SPDX-License-Identifier: MIT
 * `tfm run`: a prompt in, text out; everything else goes to standard error. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include <tfm/sampler.h>

#include "lib/tools/clock.h"
#include "lib/tools/interrupt.h"
#include "lib/tools/message.h"
#include "lib/tools/output.h"
#include "lib/tools/prompt.h"
#include "lib/tools/setup.h"

static const char builtin_prompt[] = "Once upon a time";

/* Why the text ended, as the last line tells it. */
static const char ended_text[] = "end of text", ended_limit[] = "-n tokens",
                  ended_length[] = "length (context full)", ended_interrupt[] = "interrupted";

struct run {
    const struct tfm__options *options;
    struct tfm__setup setup;
    struct tfm__prompt prompt;
    struct tfm_sampler *sampler;
    struct tfm_stream stream;
    int output_failed;
    char last; /* byte written */
    int64_t made;
    int64_t decodes; /* runs of one token */
    double prompt_seconds, decode_seconds;
    const char *ended;
};

static void write_text(void *context, const char *data, size_t size)
{
    struct run *run = context;
    if (run->output_failed || !size)
        return;
    run->last = data[size - 1];
    run->output_failed = tfm__output_write(data, size);
}

static int make_sampler(struct run *run)
{
    const struct tfm__options *options = run->options;
    struct tfm_sampler_options sampling = {.temperature = options->temperature,
                                           .top_k = options->top_k,
                                           .top_p = options->top_p,
                                           .seed = options->seed};
    struct tfm_error err;
    if (!options->given.seed && getrandom(&sampling.seed, sizeof sampling.seed, 0) < 0)
        sampling.seed = (uint64_t)(1e9 * tfm__seconds());
    if (tfm__verbose_wanted(options) && options->temperature > 0)
        tfm__message("seed %" PRIu64, sampling.seed);
    size_t vocab = (size_t)tfm_model_config(run->setup.model)->vocab;
    if (tfm_sampler_create(vocab, &sampling, &run->sampler, &err))
        return tfm__failed("%s", err.text);
    return TFM__EXIT_OK;
}

/* An empty prompt starts where the model's texts start. */
static int begin_empty(struct run *run)
{
    int32_t bos = tfm_tokenizer_bos(tfm_model_tokenizer(run->setup.model));
    if (run->prompt.n)
        return TFM__EXIT_OK;
    if (bos < 0)
        return tfm__failed("the prompt is empty, and the model has no token that begins a text: "
                           "give -p TEXT");
    free(run->prompt.ids);
    run->prompt.ids = malloc(sizeof bos);
    if (!run->prompt.ids)
        return tfm__failed("out of memory");
    run->prompt.ids[run->prompt.n++] = bos;
    return TFM__EXIT_OK;
}

static int check_room(const struct run *run)
{
    int64_t context = tfm_session_context(run->setup.session), n = (int64_t)run->prompt.n;
    int64_t least = n + (run->options->predict != 0);
    if (least <= context)
        return TFM__EXIT_OK;
    return tfm__failed("the prompt has %" PRId64 " tokens and the context %" PRId64
                       ": shorten it or give -c %" PRId64
                       " or more (the model was trained for %" PRId64 ")",
                       n, context, least, tfm_model_config(run->setup.model)->context);
}

/* In pieces, so that Ctrl-C need not wait for the end of a long prompt. */
static int feed_prompt(struct run *run)
{
    const size_t chunk = (size_t)run->options->chunk;
    struct tfm_error err;
    double start = tfm__seconds();
    for (size_t at = 0; at < run->prompt.n && !tfm__interrupted(); at += chunk) {
        size_t n = run->prompt.n - at < chunk ? run->prompt.n - at : chunk;
        if (tfm_session_feed(run->setup.session, run->prompt.ids + at, n, &err))
            return tfm__failed("%s", err.text);
    }
    run->prompt_seconds = tfm__seconds() - start;
    return TFM__EXIT_OK;
}

/* NULL while another token may follow. */
static const char *reason_to_end(const struct run *run)
{
    if (tfm__interrupted())
        return ended_interrupt;
    if (run->options->predict >= 0 && run->made >= run->options->predict)
        return ended_limit;
    /* every token of the text has its cell, the last one too */
    if ((int64_t)run->prompt.n + run->made >= tfm_session_context(run->setup.session))
        return ended_length;
    return NULL;
}

static int feed_one(struct run *run, int32_t id)
{
    struct tfm_error err;
    double start = tfm__seconds();
    if (tfm_session_feed(run->setup.session, &id, 1, &err))
        return tfm__failed("%s", err.text);
    run->decode_seconds += tfm__seconds() - start;
    run->decodes++;
    return TFM__EXIT_OK;
}

static int generate(struct run *run)
{
    const struct tfm_tokenizer *tokenizer = tfm_model_tokenizer(run->setup.model);
    struct tfm_error err;
    int32_t id = -1;

    for (;;) {
        run->ended = reason_to_end(run);
        if (run->ended)
            return TFM__EXIT_OK;
        if (run->made && feed_one(run, id))
            return TFM__EXIT_FAILED;
        if (tfm_sampler_next(run->sampler, tfm_session_logits(run->setup.session), &id, &err))
            return tfm__failed("%s", err.text);
        if (tfm_tokenizer_is_end(tokenizer, id)) {
            run->ended = ended_text;
            return TFM__EXIT_OK;
        }
        run->made++;
        if (tfm_tokenizer_is_control(tokenizer, id))
            continue;
        struct tfm_text piece;
        if (tfm_tokenizer_piece(tokenizer, id, &piece, &err))
            return tfm__failed("%s", err.text);
        tfm_stream_put(&run->stream, piece.data, piece.size, write_text, run);
        if (run->output_failed)
            return TFM__EXIT_FAILED;
    }
}

/* Tokens a second; 0 when nothing ran. */
static double rate(double tokens, double seconds)
{
    return seconds > 0 ? tokens / seconds : 0;
}

static void tell_end(const struct run *run)
{
    struct tfm_plan_summary plan;
    const struct tfm_device *device = run->setup.devices[0];
    tfm_plan_summarize(tfm_session_plan(run->setup.session), &plan);
    tfm__message("load %.0f ms | prompt %zu tokens, %.1f tok/s | generation %" PRId64
                 " tokens, %.1f tok/s | KV %" PRId64 "/%" PRId64
                 " | %s: %s | fallback %.1f%% (%u of %u nodes) | ended: %s",
                 1e3 * run->setup.load_seconds, run->prompt.n,
                 rate((double)run->prompt.n, run->prompt_seconds), run->made,
                 rate((double)run->decodes, run->decode_seconds),
                 tfm_session_used(run->setup.session), tfm_session_context(run->setup.session),
                 tfm_device_backend(device), tfm_device_name(device),
                 plan.nodes ? 100.0 * plan.fallbacks / plan.nodes : 0.0, plan.fallbacks, plan.nodes,
                 run->ended);
}

static int write_all(struct run *run)
{
    tfm__interrupt_catch();
    if (!run->options->no_prompt)
        write_text(run, run->prompt.text, run->prompt.size);
    int code = run->output_failed ? TFM__EXIT_FAILED : feed_prompt(run);
    if (code == TFM__EXIT_OK)
        code = generate(run);
    if (!run->output_failed) {
        tfm_stream_flush(&run->stream, write_text, run);
        if (run->last != '\n')
            write_text(run, "\n", 1);
    }
    if (code != TFM__EXIT_OK || run->output_failed)
        return TFM__EXIT_FAILED;
    tell_end(run);
    return run->ended == ended_interrupt ? TFM__EXIT_INTERRUPTED : TFM__EXIT_OK;
}

int tfm__verb_run(const struct tfm__options *options)
{
    struct run run = {.options = options};
    int code = tfm__prompt_check(options, 0);

    if (code == TFM__EXIT_OK)
        code = tfm__setup_model_and_devices(options, &run.setup);
    if (code == TFM__EXIT_OK)
        code = tfm__prompt_read(options, builtin_prompt, &run.prompt);
    if (code == TFM__EXIT_OK)
        code = tfm__prompt_encode(options, tfm_model_tokenizer(run.setup.model), &run.prompt);
    if (code == TFM__EXIT_OK)
        code = begin_empty(&run);
    run.setup.rows = (int64_t)run.prompt.n;
    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(options, 0, &run.setup);
    if (code == TFM__EXIT_OK)
        code = make_sampler(&run);
    if (code == TFM__EXIT_OK)
        code = check_room(&run);
    if (code == TFM__EXIT_OK)
        code = write_all(&run);
    tfm_sampler_destroy(run.sampler);
    tfm__prompt_deinit(&run.prompt);
    tfm__setup_close(&run.setup);
    return code;
}
