/* SPDX-License-Identifier: MIT
 * The time of a node: two plans, one unit and several, run in turn; what differs is the units. */
#include "lib/tools/bench_time.h"

#include <stdlib.h>
#include <string.h>

#include <tfm/grad.h>
#include <tfm/plan.h>

#include "lib/tools/clock.h"

/* The longer plan: as many units as touch this many bytes, so that no cache holds them all, at most MOST_UNITS,
 * and fewer if that takes longer than `plan_seconds`. */
static const double least_bytes = 128e6, plan_seconds = 0.2, sample_seconds = 2e-3;
enum { MOST_UNITS = 64, VALUES = 4096 };

/* ---- one plan ---- */

struct track {
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    int32_t *ids, *gather, *out;
    float *hyper;
    void *y;
    uint32_t n_out;
};

static void close_track(struct track *t)
{
    tfm_exec_destroy(t->exec);
    tfm_plan_destroy(t->plan);
    tfm_weights_release(t->weights);
    tfm_graph_destroy(t->graph);
    free(t->ids);
    free(t->gather);
    free(t->hyper);
    free(t->out);
    free(t->y);
    memset(t, 0, sizeof *t);
}

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory");
}

/* The values do not matter for the time, as long as they are ordinary numbers: [0.5, 1.5). */
static enum tfm_status give(struct track *t, const struct tfm_tensor *tensor, struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    const size_t n = (size_t)tfm_tensor_elements(tensor);
    const size_t bytes = n / info->block * info->bytes;
    float values[VALUES];
    uint32_t state = 1;
    char *data = malloc(bytes);
    enum tfm_status status = data ? TFM_STATUS_OK : no_memory(err);

    for (size_t i = 0; i < VALUES; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = 0.5f + (float)(state >> 8) * 0x1p-24f;
    }
    for (size_t at = 0; data && at < n; at += VALUES)
        tfm_dtype_from_f32(tensor->dtype, values, data, at, n - at < VALUES ? n - at : VALUES);
    if (data)
        status = tfm_weights_set(t->weights, tensor->name, tensor->dtype, tensor->rank,
                                 tensor->shape, data, bytes, err);
    free(data);
    return status;
}

static enum tfm_status give_all(struct track *t, struct tfm_error *err)
{
    enum tfm_status status = tfm_weights_create(&t->weights, err);

    for (uint32_t i = 0; status == TFM_STATUS_OK && i < tfm_graph_tensor_count(t->graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(t->graph, i);
        if (!tensor->view_of &&
            (tensor->kind == TFM_TENSOR_PARAMETER || tensor->kind == TFM_TENSOR_BUFFER))
            status = give(t, tensor, err);
    }
    return status;
}

static enum tfm_status bind(struct track *t, const struct tfm__bench_case *c, struct tfm_error *err)
{
    const struct tfm_tensor *y = tfm_graph_find(t->graph, "y");
    const struct tfm_tensor *gather = tfm_graph_find(t->graph, "gather");
    const size_t n = c->rows,
                 bytes = (size_t)tfm_tensor_row_elements(y) * tfm_dtype_info(y->dtype)->bytes;
    const struct tfm_tensor *hyper = tfm_graph_find(t->graph, "hyper");
    /* betas so near 1 that moments never become so small that arithmetic is slower */
    static const float settings[TFM_ADAMW_HYPERS] = {1e-4f, 0.9999f, 0.9999f, 1e-8f,
                                                     1e-5f, 1,       1,       1};
    enum tfm_status status;

    t->ids = calloc(n, sizeof *t->ids);
    t->gather = calloc(n, sizeof *t->gather);
    t->out = calloc(t->n_out, sizeof *t->out);
    t->y = calloc(t->n_out, bytes);
    t->hyper = calloc(n, sizeof settings);
    if (!t->ids || !t->gather || !t->out || !t->y || !t->hyper)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        memcpy(t->hyper + i * TFM_ADAMW_HYPERS, settings, sizeof settings);
    for (size_t i = 0; i < n; i++) {
        t->ids[i] = (int32_t)(i % 4);
        t->gather[i] = (int32_t)(i * 7919 % 32768);
    }
    for (uint32_t i = 0; i < t->n_out; i++)
        t->out[i] = (int32_t)i;
    status = tfm_exec_bind(t->exec, "ids", t->ids, n * sizeof *t->ids, err);
    if (status == TFM_STATUS_OK && gather)
        status = tfm_exec_bind(t->exec, "gather", t->gather, n * sizeof *t->gather, err);
    if (status == TFM_STATUS_OK && hyper)
        status = tfm_exec_bind(t->exec, "hyper", t->hyper, n * sizeof settings, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_bind(t->exec, "y", t->y, t->n_out * bytes, err);
    return status;
}

static enum tfm_status open_track(struct track *t, struct tfm_device *device,
                                  const struct tfm__bench_case *c, unsigned units,
                                  struct tfm_error *err)
{
    struct tfm_capacity capacity = {c->rows, 1, 1};
    enum tfm_status status;

    memset(t, 0, sizeof *t);
    t->n_out = capacity.out_rows =
        c->op == TFM_OP_TAKE_ROWS || c->op == TFM_OP_TAKE_ROWS_GRAD ? c->rows : 1;
    t->graph = tfm__bench_graph(c, units, err);
    if (!t->graph)
        return err->status;
    status = give_all(t, err);
    if (status == TFM_STATUS_OK)
        status = tfm_plan_compile(t->graph, t->weights, &device, 1, &capacity, &t->plan, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_create(t->plan, &t->exec, err);
    if (status == TFM_STATUS_OK)
        status = bind(t, c, err);
    if (status != TFM_STATUS_OK)
        close_track(t);
    return status;
}

/* Seconds of `count` runs. */
static enum tfm_status run(struct track *t, const struct tfm__bench_case *c, int64_t count,
                           double *seconds, struct tfm_error *err)
{
    const int32_t slot = 0, start = 0, past = c->past;
    const struct tfm_rows rows = {c->rows, 1, t->n_out, &slot, &start, &past, t->out};
    const double begin = tfm__seconds();
    enum tfm_status status = TFM_STATUS_OK;

    for (int64_t i = 0; i < count && status == TFM_STATUS_OK; i++)
        status = tfm_exec_run(t->exec, &rows, err);
    *seconds = tfm__seconds() - begin;
    return status;
}

/* ---- one case ---- */

/* The least time of a run of each of two plans, measured in turn. */
static enum tfm_status compare(struct track tracks[2], const struct tfm__bench_case *c,
                               int64_t repetitions, double least[2], struct tfm_error *err)
{
    int64_t count[2] = {1, 1};
    enum tfm_status status = TFM_STATUS_OK;
    double seconds;

    for (int64_t r = -1; r < repetitions && status == TFM_STATUS_OK; r++) {
        for (int k = 0; k < 2 && status == TFM_STATUS_OK; k++) {
            status = run(&tracks[k], c, count[k], &seconds, err);
            seconds /= (double)count[k];
            if (r < 0 || seconds < least[k])
                least[k] = seconds;
            if (r < 0 && seconds < sample_seconds) /* the first one is the warm-up */
                count[k] = 1 + (int64_t)(sample_seconds / (seconds > 1e-7 ? seconds : 1e-7));
        }
    }
    return status;
}

/* How many units the longer plan has beyond the shorter one's one. */
static unsigned more_units(const struct tfm__bench_work *work, double seconds)
{
    double units = least_bytes / work->bytes;

    units = units > MOST_UNITS ? MOST_UNITS : units;
    if (units > plan_seconds / seconds)
        units = plan_seconds / seconds;
    return units < 2 ? 2 : (unsigned)units;
}

enum tfm_status tfm__bench_time(struct tfm_device *device, const struct tfm__bench_case *c,
                                int64_t repetitions, double *seconds, struct tfm_error *err)
{
    struct track tracks[2] = {{0}};
    struct tfm__bench_work work;
    double least[2] = {0, 0}, one = 0;
    unsigned more = 0;

    tfm__bench_measure_of(c, &work);
    enum tfm_status status = open_track(&tracks[0], device, c, 1, err);
    for (int warm = 0; warm < 2 && status == TFM_STATUS_OK; warm++)
        status = run(&tracks[0], c, 1, &one, err);
    if (status == TFM_STATUS_OK) {
        more = more_units(&work, one);
        status = open_track(&tracks[1], device, c, 1 + more, err);
    }
    if (status == TFM_STATUS_OK)
        status = compare(tracks, c, repetitions, least, err);
    close_track(&tracks[0]);
    close_track(&tracks[1]);
    if (status == TFM_STATUS_OK)
        *seconds = (least[1] - least[0]) / (more * work.nodes);
    return status;
}
