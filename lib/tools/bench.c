/* SPDX-License-Identifier: MIT
 * `tfm bench`: tokens a second of reading a prompt and of generating, each by itself. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tools/clock.h"
#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"

/* One thing measured. Speeds are tokens a second of all sequences together. */
struct measure {
    const char *label; /* "pp": prompt processing, "tg": text generation, as users know them */
    int64_t n_prompt, n_gen;
    double *speeds; /* [repetitions], ascending in the end */
    double mean, deviation, median;
};

struct bench {
    const struct tfm__options *options;
    struct tfm__setup setup;
    int32_t *ids; /* of every sequence */
    struct tfm_session_part *parts;
    struct measure measures[2];
    size_t n_measures;
};

/* The text does not matter for the time, so any ids do; the same ones every time. */
static void fill_ids(int32_t *ids, size_t n, size_t vocab)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (int32_t)((state >> 8) % vocab);
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* n tokens to each sequence, one after the other, in runs of the session's chunk. */
static int feed_prompts(struct bench *b, int64_t n)
{
    struct tfm_error err;
    for (int64_t s = 0; s < b->options->sequences; s++)
        for (int64_t at = 0; at < n; at += b->options->chunk) {
            const int64_t left = n - at, now = left < b->options->chunk ? left : b->options->chunk;
            const struct tfm_session_part part = {
                .sequence = s, .ids = b->ids + at, .n = (size_t)now, .n_logits = now == left};
            if (tfm_session_run(b->setup.session, &part, 1, &err))
                return tfm__failed("%s", err.text);
        }
    return TFM__EXIT_OK;
}

/* n tokens to all sequences together, a token of each in a run. */
static int generate(struct bench *b, int64_t n)
{
    const size_t sequences = (size_t)b->options->sequences;
    struct tfm_error err;
    for (int64_t i = 0; i < n; i++) {
        for (size_t s = 0; s < sequences; s++)
            b->parts[s] = (struct tfm_session_part){
                .sequence = (int64_t)s, .ids = b->ids + i, .n = 1, .n_logits = 1};
        if (tfm_session_run(b->setup.session, b->parts, sequences, &err))
            return tfm__failed("%s", err.text);
    }
    return TFM__EXIT_OK;
}

/* Back to what stands before the measured tokens. */
static int forget(struct bench *b, int64_t used)
{
    struct tfm_error err;
    for (int64_t s = 0; s < b->options->sequences; s++)
        if (tfm_session_truncate_one(b->setup.session, s, used, &err))
            return tfm__failed("%s", err.text);
    return TFM__EXIT_OK;
}

static int work(struct bench *b, const struct measure *m, int64_t n)
{
    int code = forget(b, b->options->depth);
    if (code == TFM__EXIT_OK)
        code = m->n_prompt ? feed_prompts(b, n) : generate(b, n);
    return code;
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void summarize(struct measure *m, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += m->speeds[i];
    m->mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (m->speeds[i] - m->mean) * (m->speeds[i] - m->mean);
    m->deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    qsort(m->speeds, n, sizeof *m->speeds, ascending);
    m->median = 0.5 * (m->speeds[(n - 1) / 2] + m->speeds[n / 2]);
}

static int measure(struct bench *b, struct measure *m)
{
    const int64_t n = m->n_prompt + m->n_gen, repetitions = b->options->repetitions;

    /* the warm-up of generation need not be as long as what is measured */
    int code = work(b, m, m->n_prompt || n < 4 ? n : 4);
    for (int64_t i = 0; i < repetitions && code == TFM__EXIT_OK; i++) {
        double start = tfm__seconds();
        code = work(b, m, n);
        m->speeds[i] = (double)(n * b->options->sequences) / (tfm__seconds() - start);
    }
    if (code == TFM__EXIT_OK)
        summarize(m, (size_t)repetitions);
    return code;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static double fallback_share(const struct tfm_plan_summary *plan)
{
    return plan->nodes ? (double)plan->fallbacks / plan->nodes : 0;
}

/* "tg32 @ d4096 x 8" */
static void test_name(const struct bench *b, const struct measure *m, char name[96])
{
    int n = snprintf(name, 96, "%s%" PRId64, m->label, m->n_prompt + m->n_gen);
    if (b->options->depth)
        n += snprintf(name + n, 96 - (size_t)n, " @ d%" PRId64, b->options->depth);
    if (b->options->sequences > 1)
        snprintf(name + n, 96 - (size_t)n, " x %" PRId64, b->options->sequences);
}

static int print_markdown(const struct bench *b, const struct tfm_plan_summary *plan)
{
    const struct tfm_device *device = b->setup.devices[0];
    const size_t last = (size_t)b->options->repetitions - 1;

    printf(
        "| model | backend | device | threads | test | tok/s | median | least .. most | fallback "
        "| peak memory |\n|---|---|---|---:|---|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < b->n_measures; i++) {
        const struct measure *m = &b->measures[i];
        char test[96];
        test_name(b, m, test);
        printf("| %s | %s | %s | %" PRIu32
               " | %s | %.2f ± %.2f | %.2f | %.2f .. %.2f | %.1f%% | %.1f MB |\n",
               base_name(tfm_model_path(b->setup.model)), tfm_device_backend(device),
               tfm_device_name(device), tfm_threads(), test, m->mean, m->deviation, m->median,
               m->speeds[0], m->speeds[last], 100 * fallback_share(plan),
               1e-6 * (double)tfm__peak_bytes());
    }
    return TFM__EXIT_OK;
}

static json_t *samples(const struct measure *m, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_real(m->speeds[i]))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *json_row(const struct bench *b, const struct measure *m,
                        const struct tfm_plan_summary *plan)
{
    const char *model = base_name(tfm_model_path(b->setup.model));
    const char *device = tfm_device_name(b->setup.devices[0]);
    const size_t n = (size_t)b->options->repetitions;

    return json_pack(
        "{s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:I, s:I, "
        "s:I, s:I}",
        "model", tfm__json_string(model, strlen(model)), "backend",
        tfm_device_backend(b->setup.devices[0]), "device", tfm__json_string(device, strlen(device)),
        "threads", (json_int_t)tfm_threads(), "n_prompt", (json_int_t)m->n_prompt, "n_gen",
        (json_int_t)m->n_gen, "n_depth", (json_int_t)b->options->depth, "n_sequences",
        (json_int_t)b->options->sequences, "avg_ts", m->mean, "stddev_ts", m->deviation,
        "median_ts", m->median, "min_ts", m->speeds[0], "max_ts", m->speeds[n - 1], "samples_ts",
        samples(m, n), "fallback", fallback_share(plan), "fallback_nodes",
        (json_int_t)plan->fallbacks, "nodes", (json_int_t)plan->nodes, "model_bytes",
        (json_int_t)tfm_model_bytes(b->setup.model), "peak_bytes", (json_int_t)tfm__peak_bytes());
}

static int print_json(const struct bench *b, const struct tfm_plan_summary *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < b->n_measures; i++)
        if (json_array_append_new(list, json_row(b, &b->measures[i], plan))) {
            json_decref(list);
            list = NULL;
        }
    return tfm__json_put(list);
}

static int print(const struct bench *b)
{
    struct tfm_plan_summary plan;
    tfm_plan_summarize(tfm_session_plan(b->setup.session), &plan);
    return b->options->json || strcmp(b->options->bench_format, "json") == 0
               ? print_json(b, &plan)
               : print_markdown(b, &plan);
}

/* ---- the verb ---- */

static int prepare(struct bench *b)
{
    const struct tfm__options *o = b->options;
    const size_t most = (size_t)larger(o->depth, larger(o->n_prompt, o->n_gen));
    const struct measure all[] = {{.label = "pp", .n_prompt = o->n_prompt},
                                  {.label = "tg", .n_gen = o->n_gen}};

    b->ids = calloc(most, sizeof *b->ids);
    b->parts = calloc((size_t)o->sequences, sizeof *b->parts);
    if (!b->ids || !b->parts)
        return tfm__failed("out of memory");
    fill_ids(b->ids, most, (size_t)tfm_model_config(b->setup.model)->vocab);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].n_prompt + all[i].n_gen == 0)
            continue;
        struct measure *m = &b->measures[b->n_measures++];
        *m = all[i];
        m->speeds = calloc((size_t)o->repetitions, sizeof *m->speeds);
        if (!m->speeds)
            return tfm__failed("out of memory");
    }
    return TFM__EXIT_OK;
}

/* Without a number of its own a prompt fits the model. */
static void fit_prompt(const struct tfm_model *model, struct tfm__options *options)
{
    const int64_t room = tfm_model_config(model)->context - options->depth;
    if (!options->given.n_prompt && room >= 1 && options->n_prompt > room)
        options->n_prompt = room;
}

int tfm__verb_bench(const struct tfm__options *given)
{
    struct tfm__options fitted = *given;
    const struct tfm__options *options = &fitted;
    struct bench b = {.options = options};
    if (larger(options->n_prompt, options->n_gen) == 0)
        return tfm__usage("-p 0 and -n 0: there is nothing left to measure");

    b.setup.sequences = options->sequences;
    int code = tfm__setup_model(options, &b.setup);
    if (code == TFM__EXIT_OK)
        fit_prompt(b.setup.model, &fitted);
    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(
            options, options->depth + larger(options->n_prompt, options->n_gen), &b.setup);
    if (code == TFM__EXIT_OK)
        code = prepare(&b);
    if (code == TFM__EXIT_OK)
        code = feed_prompts(&b, options->depth);
    for (size_t i = 0; i < b.n_measures && code == TFM__EXIT_OK; i++)
        code = measure(&b, &b.measures[i]);
    if (code == TFM__EXIT_OK)
        code = print(&b);
    for (size_t i = 0; i < b.n_measures; i++)
        free(b.measures[i].speeds);
    free(b.parts);
    free(b.ids);
    tfm__setup_close(&b.setup);
    return code;
}
