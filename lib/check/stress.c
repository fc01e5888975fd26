/* SPDX-License-Identifier: MIT
 * One node of an op under less than fine conditions: the host's allocations fail in turn, and two
 * threads use the device at once. */
#include <pthread.h>
#include <stdio.h>

#include "lib/check/checks.h"
#include "lib/check/drive_host.h"

enum { CALLS = 500, RUNS = 12, TIMES = 5 };

/* Opens, runs, compares, closes. */
static enum tfm_status once(const struct tfm__drive_backend *backend,
                            const struct tfm__drive_backend *reference, enum tfm_op op,
                            struct tfm__sample *sample, int is_short, int64_t failing,
                            struct tfm_error *err)
{
    struct tfm__pair pair = {NULL, NULL};
    struct tfm__check_rows run;

    tfm__check_prepare(op, sample, is_short, &run);
    enum tfm_status status = tfm__drive_plan_open(reference, sample->graph, sample->data,
                                                  &sample->capacity, 0, &pair.reference, err);
    tfm__drive_fail(failing);
    if (status == TFM_STATUS_OK)
        status = tfm__drive_plan_open(backend, sample->graph, sample->data, &sample->capacity, 0,
                                      &pair.plan, err);
    tfm__drive_fail(-1);
    if (status == TFM_STATUS_OK)
        status = tfm__pair_run(&pair, sample, &run.rows, err);
    tfm__pair_close(&pair);
    return status;
}

/* Each call of the host's alloc fails once while a plan is opened: an error with a text, or right values
 * all the same; nothing is lost; the next try works. Returns how many calls failed. */
static int64_t without_memory(const struct tfm__drive_backend *backend,
                              const struct tfm__drive_backend *reference, enum tfm_op op,
                              struct tfm__sample *sample, int is_short, struct tfm_error *err)
{
    int64_t calls = 0;

    /* what a device keeps for later (programs) comes with the first */
    if (once(backend, reference, op, sample, is_short, -1, err) != TFM_STATUS_OK)
        return 0;
    for (; calls < CALLS; calls++) {
        const int64_t before = tfm__drive_blocks();
        struct tfm_error why = {0};
        const enum tfm_status status = once(backend, reference, op, sample, is_short, calls, &why);
        const int failed = tfm__drive_failed();
        if (status != TFM_STATUS_OK && (!failed || status == TFM_STATUS_INTERNAL)) {
            tfm_error_set(err, status, "call %lld of alloc fails: %s", (long long)calls, why.text);
            return calls;
        }
        if (status != TFM_STATUS_OK && !why.text[0]) {
            tfm_error_set(err, status, "call %lld of alloc fails: a status without a text",
                          (long long)calls);
            return calls;
        }
        if (tfm__drive_blocks() != before) {
            tfm_error_set(err, TFM_STATUS_INTERNAL,
                          "call %lld of alloc fails: %lld blocks were not given back",
                          (long long)calls, (long long)(tfm__drive_blocks() - before));
            return calls;
        }
        if (!failed)
            break;
    }
    if (once(backend, reference, op, sample, is_short, -1, err) != TFM_STATUS_OK)
        tfm_error_prefix(err, "after all failures");
    return calls;
}

/* The first may leave with the device what serves all later ones, those must leave nothing. */
static enum tfm_status gives_back(const struct tfm__drive_backend *backend,
                                  const struct tfm__drive_backend *reference, enum tfm_op op,
                                  struct tfm__sample *sample, int is_short, struct tfm_error *err)
{
    int64_t first = 0;

    for (int i = 0; i < TIMES; i++) {
        if (once(backend, reference, op, sample, is_short, -1, err) != TFM_STATUS_OK)
            return err->status;
        if (i == 0)
            first = tfm__drive_blocks();
    }
    if (tfm__drive_blocks() == first)
        return TFM_STATUS_OK;
    return tfm_error_set(err, TFM_STATUS_INTERNAL,
                         "%lld blocks of the host's alloc were not given back when %d plans and "
                         "their buffers were",
                         (long long)(tfm__drive_blocks() - first), TIMES - 1);
}

/* ---- two threads ---- */

struct worker {
    struct tfm__pair pair;
    struct tfm__sample sample;
    struct tfm__check_rows run;
    struct tfm_error err;
    pthread_t thread;
};

static void *work(void *argument)
{
    struct worker *w = argument;

    for (int i = 0; i < RUNS && w->err.status == TFM_STATUS_OK; i++)
        tfm__pair_run(&w->pair, &w->sample, &w->run.rows, &w->err);
    return NULL;
}

static enum tfm_status open_worker(struct worker *w, const struct tfm__drive_backend *backend,
                                   const struct tfm__drive_backend *reference, enum tfm_op op,
                                   int is_short, int number)
{
    if (!tfm__check_find(backend, op, &w->sample))
        return tfm_error_set(&w->err, TFM_STATUS_INTERNAL, "supports() has changed its mind");
    tfm__check_prepare(op, &w->sample, is_short, &w->run);
    if (w->sample.special) /* values of its own */
        tfm__sample_fill(&w->sample, w->sample.special, 100 + (uint64_t)number, 0,
                         tfm__sample_count(&w->sample, w->sample.special), 1);
    return tfm__pair_open(&w->pair, backend, reference, &w->sample, 0, 0, &w->err);
}

/* Both own a plan on one device; each must get its own values. */
static enum tfm_status two_threads(const struct tfm__drive_backend *backend,
                                   const struct tfm__drive_backend *reference, enum tfm_op op,
                                   int is_short, struct tfm_error *err)
{
    struct worker workers[2] = {0};
    int started = 0;

    for (int i = 0; i < 2 && err->status == TFM_STATUS_OK; i++) {
        if (open_worker(&workers[i], backend, reference, op, is_short, i) != TFM_STATUS_OK)
            *err = workers[i].err;
    }
    for (int i = 0; i < 2 && err->status == TFM_STATUS_OK; i++) {
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            tfm_error_set(err, TFM_STATUS_NOMEM, "no thread could be started");
        else
            started++;
    }
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < 2; i++) {
        if (err->status == TFM_STATUS_OK && workers[i].err.status != TFM_STATUS_OK) {
            *err = workers[i].err;
            tfm_error_prefix(err, "thread %d", i);
        }
        tfm__pair_close(&workers[i].pair);
        tfm__sample_end(&workers[i].sample);
    }
    return err->status;
}

void tfm__check_stress(struct tfm__report *report, const struct tfm__drive_backend *backend,
                       const struct tfm__drive_backend *reference, enum tfm_op op,
                       const struct tfm__check_options *options)
{
    struct tfm__sample sample;
    struct tfm_error err = {0};

    if (!tfm__check_find(backend, op, &sample))
        return;
    if (tfm__report_begin(report, "node", "%s %s: gives back what it took", tfm_op_name(op),
                          sample.what)) {
        gives_back(backend, reference, op, &sample, options->rows > 0, &err);
        tfm__report_end(report, &err);
    }
    err = (struct tfm_error){0};
    if (tfm__report_begin(report, "node", "%s %s: allocations fail", tfm_op_name(op),
                          sample.what)) {
        const int64_t calls =
            without_memory(backend, reference, op, &sample, options->rows > 0, &err);
        tfm__report_end(report, &err);
        tfm__report_note(report, "%s: each of %lld calls of the host's alloc failed once",
                         tfm_op_name(op), (long long)calls);
    }
    err = (struct tfm_error){0};
    if (options->one_thread) {
        tfm__report_skip(report, "one thread was asked for", "node", "%s %s: two threads",
                         tfm_op_name(op), sample.what);
    } else if (tfm__report_begin(report, "node", "%s %s: two threads", tfm_op_name(op),
                                 sample.what)) {
        two_threads(backend, reference, op, options->rows > 0, &err);
        tfm__report_end(report, &err);
    }
    tfm__sample_end(&sample);
}
