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

/* One thing measured. */
struct measure {
    const char *label; /* "pp": prompt processing, "tg": text generation, as users know them */
    int64_t n_prompt, n_gen;
    double mean, deviation; /* tokens a second */
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

/* Feeds n tokens to an empty session, `step` at a time. */
static int feed(struct tfm_session *session, const int32_t *ids, int64_t n, int64_t step)
{
    struct tfm_error err;
    if (tfm_session_truncate(session, 0, &err))
        return tfm__failed("%s", err.text);
    for (int64_t at = 0; at < n; at += step)
        if (tfm_session_feed(session, ids + at, (size_t)(n - at < step ? n - at : step), &err))
            return tfm__failed("%s", err.text);
    return TFM__EXIT_OK;
}

static int measure(struct tfm_session *session, const int32_t *ids, int64_t repetitions,
                   struct measure *m)
{
    const int64_t n = m->n_prompt + m->n_gen, step = m->n_prompt ? n : 1;
    double sum = 0, squares = 0;

    /* the warm-up of generation need not be as long as what is measured */
    int code = feed(session, ids, m->n_prompt || n < 4 ? n : 4, step);
    for (int64_t i = 1; i <= repetitions && code == TFM__EXIT_OK; i++) {
        double start = tfm__seconds();
        code = feed(session, ids, n, step);
        double speed = (double)n / (tfm__seconds() - start), before = speed - sum;
        /* running mean and sum of squared differences from it (Welford 1962) */
        sum += before / (double)i;
        squares += before * (speed - sum);
    }
    m->mean = sum;
    m->deviation = repetitions > 1 ? sqrt(squares / (double)(repetitions - 1)) : 0;
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

static int print_markdown(const struct tfm__setup *setup, const struct tfm_plan_summary *plan,
                          const struct measure *measures, size_t n)
{
    printf("| model | backend | device | threads | test | tok/s | fallback | peak memory |\n"
           "|---|---|---|---:|---|---:|---:|---:|\n");
    for (size_t i = 0; i < n; i++)
        printf("| %s | %s | %s | %" PRIu32 " | %s%" PRId64 " | %.2f ± %.2f | %.1f%% | %.1f MB |\n",
               base_name(tfm_model_path(setup->model)), tfm_device_backend(setup->devices[0]),
               tfm_device_name(setup->devices[0]), tfm_threads(), measures[i].label,
               measures[i].n_prompt + measures[i].n_gen, measures[i].mean, measures[i].deviation,
               100 * fallback_share(plan), 1e-6 * (double)tfm__peak_bytes());
    return TFM__EXIT_OK;
}

static int print_json(const struct tfm__setup *setup, const struct tfm_plan_summary *plan,
                      const struct measure *measures, size_t n)
{
    const char *model = base_name(tfm_model_path(setup->model));
    const char *device = tfm_device_name(setup->devices[0]);
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        json_t *row = json_pack(
            "{s:o, s:s, s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "model",
            tfm__json_string(model, strlen(model)), "backend",
            tfm_device_backend(setup->devices[0]), "device",
            tfm__json_string(device, strlen(device)), "threads", (json_int_t)tfm_threads(),
            "n_prompt", (json_int_t)measures[i].n_prompt, "n_gen", (json_int_t)measures[i].n_gen,
            "avg_ts", measures[i].mean, "stddev_ts", measures[i].deviation, "fallback",
            fallback_share(plan), "fallback_nodes", (json_int_t)plan->fallbacks, "nodes",
            (json_int_t)plan->nodes, "model_bytes", (json_int_t)tfm_model_bytes(setup->model),
            "peak_bytes", (json_int_t)tfm__peak_bytes());
        if (!row || json_array_append_new(list, row)) {
            json_decref(list);
            list = NULL;
        }
    }
    return tfm__json_put(list);
}

static int run_all(const struct tfm__options *options, struct tfm__setup *setup)
{
    struct measure measures[] = {{"pp", options->n_prompt, 0, 0, 0},
                                 {"tg", 0, options->n_gen, 0, 0}};
    const size_t most =
        (size_t)(options->n_prompt > options->n_gen ? options->n_prompt : options->n_gen);
    int32_t *ids = calloc(most, sizeof *ids);
    int code = ids ? TFM__EXIT_OK : tfm__failed("out of memory");
    size_t n = 0;

    if (ids)
        fill_ids(ids, most, (size_t)tfm_model_config(setup->model)->vocab);
    for (size_t i = 0; i < 2 && code == TFM__EXIT_OK; i++) {
        if (measures[i].n_prompt + measures[i].n_gen == 0)
            continue;
        measures[n] = measures[i];
        code = measure(setup->session, ids, options->repetitions, &measures[n++]);
    }
    free(ids);
    if (code != TFM__EXIT_OK)
        return code;
    struct tfm_plan_summary plan;
    tfm_plan_summarize(tfm_session_plan(setup->session), &plan);
    return strcmp(options->bench_format, "json") == 0 ? print_json(setup, &plan, measures, n)
                                                      : print_markdown(setup, &plan, measures, n);
}

int tfm__verb_bench(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    int64_t most = options->n_prompt > options->n_gen ? options->n_prompt : options->n_gen;
    if (most == 0)
        return tfm__usage("-p 0 and -n 0: there is nothing left to measure");
    int code = tfm__setup_model(options, &setup);
    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(options, most, &setup);
    if (code == TFM__EXIT_OK)
        code = run_all(options, &setup);
    tfm__setup_close(&setup);
    return code;
}
