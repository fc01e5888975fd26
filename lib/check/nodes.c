/* SPDX-License-Identifier: MIT
 * Every node that a backend takes, in every way, against the reference. */
#include <stdio.h>
#include <string.h>

#include <tfm/device.h>

#include "lib/check/checks.h"
#include "lib/check/drive_host.h"

static const struct tfm_node *node_of(const struct tfm__sample *sample)
{
    return tfm_graph_node(sample->graph, tfm_graph_node_count(sample->graph) - 1);
}

int tfm__check_asks(const struct tfm__drive_backend *backend, const struct tfm__sample *sample,
                    char *reason, size_t size)
{
    char unused[256] = "";

    if (sample->err.status != TFM_STATUS_OK ||
        !tfm_node_is_known(backend->table->abi_minor, node_of(sample), reason ? reason : unused,
                           reason ? size : sizeof unused))
        return 0;
    return backend->table->supports(backend->device, node_of(sample), &sample->capacity,
                                    reason ? reason : unused, reason ? size : sizeof unused) != 0;
}

/* ---- plans ---- */

static enum tfm_status open_plan(const struct tfm__drive_backend *backend,
                                 const struct tfm__sample *sample, uint32_t capacity,
                                 unsigned flags, struct tfm__drive_plan **plan,
                                 struct tfm_error *err)
{
    struct tfm_capacity most = sample->capacity;

    if (capacity)
        most.rows = most.out_rows = capacity;
    return tfm__drive_plan_open(backend, sample->graph, sample->data, &most, flags, plan, err);
}

enum tfm_status tfm__pair_open(struct tfm__pair *pair, const struct tfm__drive_backend *backend,
                               const struct tfm__drive_backend *reference,
                               const struct tfm__sample *sample, uint32_t capacity, unsigned flags,
                               struct tfm_error *err)
{
    *pair = (struct tfm__pair){NULL, NULL};
    enum tfm_status status = open_plan(reference, sample, 0, 0, &pair->reference, err);
    if (status == TFM_STATUS_OK)
        status = open_plan(backend, sample, capacity, flags, &pair->plan, err);
    if (status != TFM_STATUS_OK)
        tfm__pair_close(pair);
    return status;
}

void tfm__pair_close(struct tfm__pair *pair)
{
    tfm__drive_plan_close(pair->plan);
    tfm__drive_plan_close(pair->reference);
    *pair = (struct tfm__pair){NULL, NULL};
}

enum tfm_status tfm__pair_run(const struct tfm__pair *pair, struct tfm__sample *sample,
                              const struct tfm_rows *rows, struct tfm_error *err)
{
    void *data[TFM__SAMPLE_TENSORS];

    memcpy(data, sample->data, sizeof data);
    for (uint32_t id = 0; id < tfm_graph_tensor_count(sample->graph); id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(sample->graph, id);
        if (tfm__drive_is_variable(tensor))
            memcpy(sample->want[id], sample->data[id], tfm__drive_bytes(tensor, tensor->shape[0]));
        if (tfm__drive_is_variable(tensor) || tensor->kind == TFM_TENSOR_OUTPUT)
            data[id] = sample->want[id];
    }
    enum tfm_status status = tfm__drive_plan_run(pair->reference, data, rows, err);
    if (status != TFM_STATUS_OK) {
        tfm_error_prefix(err, "the reference fails");
        return status;
    }
    status = tfm__drive_plan_run(pair->plan, sample->data, rows, err);
    if (status == TFM_STATUS_OK)
        status = tfm__sample_compare(sample, rows, err);
    return status;
}

/* ---- questions ---- */

enum { REASONS = 8, REASON = 200, FENCE = '#' };

struct refusals {
    uint32_t n, count[REASONS]; /* the last place gathers what finds no room */
    char reason[REASONS][REASON];
};

static void note_refusal(struct refusals *refusals, const char *reason)
{
    uint32_t i = 0;

    while (i < refusals->n && strcmp(refusals->reason[i], reason) != 0)
        i++;
    if (i == REASONS)
        i--;
    if (i == refusals->n) {
        refusals->n++;
        snprintf(refusals->reason[i], REASON, "%s", reason);
    }
    refusals->count[i]++;
}

static int is_known(const struct tfm__drive_backend *backend, const struct tfm__sample *sample)
{
    char reason[REASON];
    return tfm_node_is_known(backend->table->abi_minor, node_of(sample), reason, sizeof reason);
}

/* A no has a reason that keeps to its size; the answer does not change; a yes holds for fewer rows. */
static enum tfm_status question(const struct tfm__drive_backend *backend,
                                const struct tfm__sample *sample, struct tfm_error *err)
{
    const struct tfm_backend *table = backend->table;
    const struct tfm_capacity one = {1, 1, 1};
    char reason[REASON];

    memset(reason, FENCE, sizeof reason);
    const int yes = tfm__check_asks(backend, sample, reason, sizeof reason);
    if (tfm__check_asks(backend, sample, NULL, 0) != yes)
        return tfm_error_set(err, TFM_STATUS_INTERNAL, "%s: yes and no to the same question",
                             sample->what);
    if (yes && !table->supports(backend->device, node_of(sample), &one, reason, sizeof reason))
        return tfm_error_set(err, TFM_STATUS_INTERNAL,
                             "%s: yes for %u rows and no for 1: a yes holds for every N up to the "
                             "capacity",
                             sample->what, sample->capacity.rows);
    if (yes)
        return TFM_STATUS_OK;
    if (!memchr(reason, '\0', sizeof reason) || !reason[0])
        return tfm_error_set(err, TFM_STATUS_INTERNAL, "%s: no without a reason", sample->what);
    memset(reason, FENCE, sizeof reason);
    tfm__check_asks(backend, sample, reason, 8);
    for (size_t i = 8; i < sizeof reason; i++) {
        if (reason[i] != FENCE)
            return tfm_error_set(err, TFM_STATUS_INTERNAL,
                                 "%s: the reason passes the 8 bytes that it was given",
                                 sample->what);
    }
    return TFM_STATUS_OK;
}

/* Asks about every sample and tells the refusals. Returns how many it takes. */
static uint32_t ask_all(struct tfm__report *report, const struct tfm__drive_backend *backend,
                        enum tfm_op op)
{
    const struct tfm__check_op *generator = tfm__check_op(op);
    struct refusals refusals = {0};
    struct tfm_error err = {0};
    uint32_t taken = 0;

    const int run =
        tfm__report_begin(report, "device", "%s: questions to supports()", tfm_op_name(op));
    for (uint32_t i = 0; i < generator->samples; i++) {
        struct tfm__sample sample;
        char reason[REASON] = "";
        generator->build(&sample, i);
        if (run && sample.err.status == TFM_STATUS_OK && err.status == TFM_STATUS_OK &&
            is_known(backend, &sample))
            question(backend, &sample, &err);
        if (tfm__check_asks(backend, &sample, reason, sizeof reason))
            taken++;
        else if (sample.err.status == TFM_STATUS_OK)
            note_refusal(&refusals, reason);
        tfm__sample_end(&sample);
    }
    if (!run)
        return taken;
    tfm__report_end(report, &err);
    for (uint32_t i = 0; i < refusals.n; i++) {
        char count[16], all[16];
        snprintf(count, sizeof count, "%u", refusals.count[i]);
        snprintf(all, sizeof all, "%u", generator->samples);
        tfm__report_put(report, TFM__RECORD_REFUSED,
                        (const char *const[]){tfm_op_name(op), count, all, refusals.reason[i]}, 4);
    }
    return taken;
}

int tfm__check_find(const struct tfm__drive_backend *backend, enum tfm_op op,
                    struct tfm__sample *sample)
{
    const struct tfm__check_op *generator = tfm__check_op(op);

    for (uint32_t i = generator->samples; i-- > 0;) {
        generator->build(sample, i);
        if (tfm__check_asks(backend, sample, NULL, 0))
            return 1;
        tfm__sample_end(sample);
    }
    return 0;
}

/* ---- cases ---- */

static int applies(const struct tfm__check_way *way, const struct tfm__sample *sample)
{
    return !way->applies || way->applies(sample);
}

/* A way must be prepared to tell its rows. */
static int is_within(const struct tfm__check_way *way, struct tfm__sample *sample, uint32_t most)
{
    struct tfm__check_rows run;

    if (most == 0)
        return 1;
    way->prepare(sample, &run, way->argument);
    return run.rows.n <= most;
}

void tfm__check_prepare(enum tfm_op op, struct tfm__sample *sample, int is_short,
                        struct tfm__check_rows *run)
{
    const struct tfm__check_op *generator = tfm__check_op(op);
    const struct tfm__check_way *chosen = NULL;
    uint32_t fewest = 0;

    for (uint32_t w = 0; w < generator->n_ways && (is_short || !chosen); w++) {
        const struct tfm__check_way *way = &generator->ways[w];
        if (!applies(way, sample))
            continue;
        way->prepare(sample, run, way->argument);
        if (!chosen || (run->rows.n > 0 && run->rows.n < fewest)) {
            chosen = way;
            fewest = run->rows.n;
        }
    }
    chosen->prepare(sample, run, chosen->argument);
}

/* What the plans that are open were made for. */
struct session {
    struct tfm__pair pair;
    uint32_t capacity;
    unsigned flags;
    int is_open;
};

static enum tfm_status run_way(struct session *session, const struct tfm__drive_backend *backend,
                               const struct tfm__drive_backend *reference,
                               struct tfm__sample *sample, const struct tfm__check_way *way,
                               struct tfm_error *err)
{
    struct tfm__check_rows run;
    enum tfm_status status = TFM_STATUS_OK;

    way->prepare(sample, &run, way->argument);
    if (session->is_open && (session->capacity != way->capacity || session->flags != way->flags)) {
        tfm__pair_close(&session->pair);
        session->is_open = 0;
    }
    if (!session->is_open) {
        status = tfm__pair_open(&session->pair, backend, reference, sample, way->capacity,
                                way->flags, err);
        session->is_open = status == TFM_STATUS_OK;
        session->capacity = way->capacity;
        session->flags = way->flags;
    }
    if (status == TFM_STATUS_OK)
        status = tfm__pair_run(&session->pair, sample, &run.rows, err);
    if (status == TFM_STATUS_OK)
        status = sample->err.status;
    if (sample->err.status != TFM_STATUS_OK)
        *err = sample->err;
    return status;
}

/* Returns how many ways have more rows than `most` and were left out. */
static uint32_t run_sample(struct tfm__report *report, const struct tfm__drive_backend *backend,
                           const struct tfm__drive_backend *reference, enum tfm_op op,
                           struct tfm__sample *sample, uint32_t most)
{
    const struct tfm__check_op *generator = tfm__check_op(op);
    struct session session = {.is_open = 0};
    uint32_t left_out = 0;

    for (uint32_t w = 0; w < generator->n_ways; w++) {
        const struct tfm__check_way *way = &generator->ways[w];
        struct tfm_error err = {0};
        if (!applies(way, sample))
            continue;
        if (!is_within(way, sample, most)) {
            left_out++;
            continue;
        }
        if (!tfm__report_begin(report, "node", "%s %s: %s", tfm_op_name(op), sample->what,
                               way->name))
            continue;
        run_way(&session, backend, reference, sample, way, &err);
        tfm__report_end(report, &err);
    }
    if (session.is_open)
        tfm__pair_close(&session.pair);
    return left_out;
}

/* `most` of `taken` nodes at even distances; 0 = all. */
static int is_chosen(uint32_t number, uint32_t taken, uint32_t most)
{
    return most == 0 || most >= taken ||
           ((uint64_t)number + 1) * most / taken > (uint64_t)number * most / taken;
}

uint32_t tfm__check_nodes(struct tfm__report *report, const struct tfm__drive_backend *backend,
                          const struct tfm__drive_backend *reference, enum tfm_op op,
                          const struct tfm__check_options *options)
{
    const struct tfm__check_op *generator = tfm__check_op(op);
    const uint32_t taken = ask_all(report, backend, op);
    const uint32_t most = options->nodes;
    uint32_t number = 0; /* of those that it takes */
    uint32_t left_out = 0;

    for (uint32_t i = 0; i < generator->samples && taken; i++) {
        struct tfm__sample sample;
        generator->build(&sample, i);
        if (sample.err.status !=
            TFM_STATUS_OK) { /* the generator's fault, never to be passed over */
            if (tfm__report_begin(report, "node", "%s %s", tfm_op_name(op), sample.what))
                tfm__report_end(report, &sample.err);
        } else if (tfm__check_asks(backend, &sample, NULL, 0)) {
            if (is_chosen(number++, taken, most))
                left_out += run_sample(report, backend, reference, op, &sample, options->rows);
        }
        tfm__sample_end(&sample);
    }
    if (most && most < taken)
        tfm__report_note(report, "%s: %u of the %u nodes that it takes were run", tfm_op_name(op),
                         most, taken);
    if (left_out)
        tfm__report_note(report, "%s: %u cases of more than %u rows were left out", tfm_op_name(op),
                         left_out, options->rows);
    return taken;
}
