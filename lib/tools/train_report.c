/* SPDX-License-Identifier: MIT
 * Lines, sample texts, metrics and curve of a training. */
#include "lib/tools/train_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/tools/curve.h"
#include "lib/tools/message.h"
#include "lib/tools/output.h"
#include "lib/tools/train_data.h"

enum { SAMPLE_TOKENS = 48 };

static void show(struct tfm__train_report *report)
{
    tfm__progress_show(&report->progress,
                       (size_t)(tfm_trainer_steps(report->trainer) - report->begun),
                       (size_t)(report->steps - report->begun));
}

int tfm__train_report_open(struct tfm__train_report *report)
{
    struct tfm_plan_summary plan;
    struct tfm_error err;
    char *path = tfm__train_path(report->options, "metrics.jsonl");
    enum tfm_status status;

    if (!path)
        return TFM__EXIT_FAILED;
    report->begun = tfm_trainer_steps(report->trainer);
    tfm_trainer_summarize(report->trainer, &plan);
    report->fallback = plan.nodes ? (double)plan.fallbacks / plan.nodes : 0;
    tfm__progress_init(&report->progress);
    tfm__progress_begin(&report->progress, "training");
    status = tfm__metrics_open(path, report->begun, &report->metrics, &err);
    free(path);
    if (status != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    if (report->begun < report->steps)
        show(report);
    return TFM__EXIT_OK;
}

void tfm__train_report_close(struct tfm__train_report *report)
{
    tfm__progress_clear(&report->progress);
    tfm__metrics_close(report->metrics);
}

int tfm__train_report_step(struct tfm__train_report *report, const struct tfm_trainer_report *step,
                           double seconds, double validation)
{
    const double tok_s = seconds > 0 ? (double)step->tokens / seconds : NAN;
    const struct tfm__metrics_line line = {
        .step = step->step,
        .tokens = tfm_trainer_tokens(report->trainer),
        .loss = step->loss,
        .validation = validation,
        .rate = step->rate,
        .norm = step->norm,
        .tok_s = tok_s,
        .ms = 1e3 * seconds,
        .fallback = report->fallback,
        .backend = report->backend,
        .device = report->device,
    };
    struct tfm_error err;

    tfm__progress_clear(&report->progress);
    printf("step %" PRIu64 "/%" PRIu64 "  loss %.4f  rate %.3e  norm %.3f%s  %.0f tok/s  %.0f ms\n",
           step->step, report->steps, step->loss, step->rate, step->norm,
           step->clipped < 1 ? " (clipped)" : "", tok_s, 1e3 * seconds);
    fflush(stdout);
    show(report);
    if (tfm__metrics_add(report->metrics, &line, &err) != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    return TFM__EXIT_OK;
}

void tfm__train_report_validation(struct tfm__train_report *report, double loss, uint64_t tokens)
{
    tfm__progress_clear(&report->progress);
    printf("validation after step %" PRIu64 "  loss %.4f  perplexity %.2f  %" PRIu64 " tokens\n",
           tfm_trainer_steps(report->trainer), loss, exp(loss), tokens);
    fflush(stdout);
    show(report);
}

/* ---- sample text ---- */

struct sample {
    const struct tfm_tokenizer *tokenizer;
    struct tfm_stream stream;
};

static void put(void *context, const char *data, size_t size)
{
    (void)context;
    fwrite(data, 1, size, stdout);
}

static int take(void *context, int32_t id)
{
    struct sample *sample = context;
    struct tfm_text piece;
    struct tfm_error err;

    if (tfm_tokenizer_is_end(sample->tokenizer, id))
        return 1;
    if (!tfm_tokenizer_is_control(sample->tokenizer, id) &&
        tfm_tokenizer_piece(sample->tokenizer, id, &piece, &err) == TFM_STATUS_OK)
        tfm_stream_put(&sample->stream, piece.data, piece.size, put, NULL);
    return 0;
}

int tfm__train_report_sample(struct tfm__train_report *report)
{
    const struct tfm_sampler_options sampling = {
        .temperature = 0.8, .top_p = 1, .seed = tfm_trainer_steps(report->trainer)};
    const int32_t bos = tfm_tokenizer_bos(report->tokenizer);
    const int32_t first = bos >= 0 ? bos : tfm_tokenizer_eos(report->tokenizer);
    struct sample sample = {.tokenizer = report->tokenizer};
    struct tfm_error err;
    enum tfm_status status;

    if (first < 0)
        return TFM__EXIT_OK; /* nothing begins a text */
    tfm__progress_clear(&report->progress);
    printf("sample after step %" PRIu64 ": ", tfm_trainer_steps(report->trainer));
    status = tfm_trainer_sample(report->trainer, &sampling, &first, 1, SAMPLE_TOKENS, take, &sample,
                                &err);
    tfm_stream_flush(&sample.stream, put, NULL);
    putchar('\n');
    fflush(stdout);
    show(report);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}

/* ---- curve ---- */

static enum tfm_status draw(const char *from, const char *to, struct tfm_error *err)
{
    struct tfm__metrics_columns columns;
    enum tfm_status status = tfm__metrics_load(from, &columns, err);

    if (status != TFM_STATUS_OK)
        return status;
    const struct tfm__curve_series series[] = {
        {.name = "training", .x = columns.step, .y = columns.loss, .n = columns.n},
        {.name = "validation",
         .x = columns.validation_step,
         .y = columns.validation,
         .n = columns.n_validation,
         .dashed = 1},
    };
    const struct tfm__curve curve = {.x_label = "steps",
                                     .y_label = "loss (nats a token)",
                                     .series = series,
                                     .n = columns.n_validation ? 2 : 1};
    status = tfm__curve_write(to, &curve, err);
    tfm__metrics_columns_deinit(&columns);
    return status;
}

int tfm__train_report_curve(const struct tfm__train_report *report)
{
    char *from = tfm__train_path(report->options, "metrics.jsonl"),
         *to = tfm__train_path(report->options, "curve.svg");
    struct tfm_error err;
    int code = from && to ? TFM__EXIT_OK : TFM__EXIT_FAILED;

    if (code == TFM__EXIT_OK && draw(from, to, &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    free(from);
    free(to);
    return code;
}
