/* SPDX-License-Identifier: MIT
 * Runs a text through a session, window by window, and scores its tokens. */
#include "lib/tools/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/tools/message.h"
#include "lib/tools/progress.h"

size_t tfm__score_windows(size_t n, size_t window, int all)
{
    if (n < window)
        return 0;
    return all ? 1 + (n - window + window / 2 - 1) / (window / 2) : n / window;
}

struct tfm__score_window tfm__score_window(const struct tfm__score_text *text, size_t w)
{
    const size_t half = text->window / 2;
    struct tfm__score_window at = {w * text->window, half + 1};

    if (text->all) {
        const size_t last = text->n - text->window, wanted = w * half;
        at.begin = wanted < last ? wanted : last;
        /* only the last window is moved back, so the one before it began where it should */
        at.scored = w ? wanted - half + text->window - at.begin : 1;
    }
    return at;
}

double tfm__score_token(const float *logits, size_t vocab, int32_t id)
{
    float most = logits[0];
    for (size_t i = 1; i < vocab; i++)
        most = logits[i] > most ? logits[i] : most;
    double sum = (double)expf(logits[0] - most);
    for (size_t i = 1; i < vocab; i++)
        sum += (double)expf(logits[i] - most);
    return log(sum) + (double)most - (double)logits[id];
}

struct tfm__score_mean tfm__score_average(const double *values, size_t n)
{
    struct tfm__score_mean m = {0, 0};
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        m.mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - m.mean) * (values[i] - m.mean);
    if (n > 1)
        m.error = sqrt(squares / (double)(n - 1) / (double)n);
    return m;
}

/* The last token of a window predicts nothing in it, so it is not fed. */
static int score_window(struct tfm__setup *setup, const struct tfm__score_text *text, size_t scored,
                        size_t chunk, int32_t *ids, size_t vocab, double *scores)
{
    const size_t fed = text->window - 1, predicting = scored - 1; /* from this one on */
    struct tfm_error err;

    if (text->first >= 0)
        ids[0] = text->first;
    if (tfm_session_truncate(setup->session, 0, &err))
        return tfm__failed("%s", err.text);
    for (size_t at = 0; at < fed; at += chunk) {
        const size_t n = fed - at < chunk ? fed - at : chunk;
        const size_t silent = predicting > at ? predicting - at : 0;
        const struct tfm_session_part part = {
            .ids = ids + at, .n = n, .n_logits = silent < n ? n - silent : 0};
        if (tfm_session_run(setup->session, &part, 1, &err))
            return tfm__failed("%s", err.text);
        const float *logits = tfm_session_logits(setup->session);
        for (size_t i = 0; i < part.n_logits; i++)
            *scores++ = tfm__score_token(logits + i * vocab, vocab, ids[at + silent + i + 1]);
    }
    return TFM__EXIT_OK;
}

static int score_all(const struct tfm__options *options, struct tfm__setup *setup,
                     const struct tfm__score_text *text, const char *label, double *scores)
{
    const size_t vocab = (size_t)tfm_model_config(setup->model)->vocab;
    int32_t *ids = calloc(text->window, sizeof *ids);
    struct tfm__progress progress;
    int code = ids ? TFM__EXIT_OK : tfm__failed("out of memory");

    tfm__progress_init(&progress);
    tfm__progress_begin(&progress, label);
    for (size_t w = 0; w < text->windows && code == TFM__EXIT_OK; w++) {
        const struct tfm__score_window at = tfm__score_window(text, w);
        for (size_t i = 0; i < text->window; i++)
            ids[i] = text->ids[at.begin + i];
        code = score_window(setup, text, at.scored, (size_t)options->chunk, ids, vocab, scores);
        scores += text->window - at.scored;
        tfm__progress_show(&progress, w + 1, text->windows);
    }
    tfm__progress_clear(&progress);
    free(ids);
    return code;
}

int tfm__score(const struct tfm__options *options, const struct tfm__score_text *text,
               const char *label, double *scores, char device[256])
{
    const int64_t most = (int64_t)(text->window - tfm__score_window(text, 0).scored);
    struct tfm__setup setup = {.outputs = most < options->chunk ? most : options->chunk};
    int code = tfm__setup_model(options, &setup);

    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(options, (int64_t)text->window - 1, &setup);
    if (code == TFM__EXIT_OK) {
        snprintf(device, 256, "%s: %.200s", tfm_device_backend(setup.devices[0]),
                 tfm_device_name(setup.devices[0]));
        code = score_all(options, &setup, text, label, scores);
    }
    tfm__setup_close(&setup);
    return code;
}
