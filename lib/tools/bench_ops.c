/* SPDX-License-Identifier: MIT
 * `tfm bench-ops`: time, bytes and operations a second of each op on each backend, beside what the machine
 * can do at most. A node's time is the difference of two plans, one unit and several, so that copying in and
 * out, the start of a run and its end do not count. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tools/bench_time.h"
#include "lib/tools/json_text.h"
#include "lib/tools/limits.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"

struct measured {
    const struct tfm__bench_case *c;
    const char *backend;
    double ns, bytes, operations; /* of one node */
    char refusal[200];            /* "" = it was measured */
};

struct bench {
    struct tfm_device *device;
    int64_t repetitions;
    struct measured *rows;
    size_t n;
};

static enum tfm_status measure(const struct bench *b, const struct tfm__bench_case *c,
                               struct measured *m, struct tfm_error *err)
{
    struct tfm__bench_work work;
    double seconds = 0;
    const enum tfm_status status = tfm__bench_time(b->device, c, b->repetitions, &seconds, err);
    const int refused = status == TFM_STATUS_UNSUPPORTED || status == TFM_STATUS_STRICT;

    tfm__bench_measure_of(c, &work);
    *m = (struct measured){.c = c,
                           .backend = tfm_device_backend(b->device),
                           .ns = 1e9 * seconds,
                           .bytes = work.bytes / work.nodes,
                           .operations = work.operations / work.nodes};
    if (refused)
        snprintf(m->refusal, sizeof m->refusal, "%.199s", err->text);
    else if (seconds <= 0)
        snprintf(m->refusal, sizeof m->refusal, "the time of a node is lost in the noise");
    return refused ? TFM_STATUS_OK : status;
}

static int measure_all(struct bench *b, const char *op)
{
    const struct tfm__bench_case *c;

    for (size_t i = 0; (c = tfm__bench_case(i)); i++) {
        struct tfm_error err = {0};
        if (op && strcmp(op, tfm_op_name(c->op)) != 0)
            continue;
        if (measure(b, c, &b->rows[b->n], &err) != TFM_STATUS_OK)
            return tfm__failed("%s on %s: %s", tfm_op_name(c->op), tfm_device_backend(b->device),
                               err.text);
        b->n++;
    }
    return TFM__EXIT_OK;
}

/* ---- printing ---- */

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static int print_markdown(const struct tfm__limits *limits, const struct measured *rows, size_t n)
{
    printf("Limits of this machine, %" PRIu32 " threads: %.1f GB/s read from memory (%zu MB), "
           "%.1f GFLOP/s f32 multiply-add (%s).\n\n",
           limits->threads, 1e-9 * limits->read, limits->read_bytes >> 20, 1e-9 * limits->fma,
           limits->fma_kind);
    printf("| op | dtype | weight | shape | backend | ns | GB/s | of read | GFLOP/s | of FMA |\n"
           "|---|---|---|---|---|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < n; i++) {
        const struct measured *m = &rows[i];
        struct tfm__bench_text text = {"", ""};
        tfm__bench_describe(m->c, &text);
        printf("| %s | %s | %s | %s | %s | ", text.op, tfm_dtype_name(m->c->dtype),
               tfm_dtype_name(m->c->weight), text.shape, m->backend);
        if (m->refusal[0])
            printf("- | - | - | - | - |\n");
        else
            printf("%.0f | %.2f | %.0f%% | %.2f | %.0f%% |\n", m->ns, m->bytes / m->ns,
                   100 * share(1e9 * m->bytes / m->ns, limits->read), m->operations / m->ns,
                   100 * share(1e9 * m->operations / m->ns, limits->fma));
    }
    for (size_t i = 0; i < n; i++) {
        struct tfm__bench_text text = {"", ""};
        tfm__bench_describe(rows[i].c, &text);
        if (rows[i].refusal[0])
            printf("\n%s %s on %s: %s\n", text.op, text.shape, rows[i].backend, rows[i].refusal);
    }
    return TFM__EXIT_OK;
}

static json_t *make_row(const struct tfm__limits *limits, const struct measured *m)
{
    struct tfm__bench_text text = {"", ""};
    tfm__bench_describe(m->c, &text);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "op", text.op, "dtype",
                  tfm_dtype_name(m->c->dtype), "weight", tfm_dtype_name(m->c->weight), "shape",
                  text.shape, "rows", (json_int_t)m->c->rows, "backend", m->backend);
    json_t *rest =
        m->refusal[0]
            ? json_pack("{s:o}", "not_measured", tfm__json_string(m->refusal, strlen(m->refusal)))
            : json_pack("{s:f, s:f, s:f, s:f, s:f}", "ns", m->ns, "gb_s", m->bytes / m->ns,
                        "of_read", share(1e9 * m->bytes / m->ns, limits->read), "gflop_s",
                        m->operations / m->ns, "of_fma",
                        share(1e9 * m->operations / m->ns, limits->fma));

    if (!row || !rest || json_object_update(row, rest)) {
        json_decref(row);
        row = NULL;
    }
    json_decref(rest);
    return row;
}

static int print_json(const struct tfm__limits *limits, const struct measured *rows, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < n; i++) {
        if (json_array_append_new(list, make_row(limits, &rows[i]))) {
            json_decref(list);
            list = NULL;
        }
    }
    return tfm__json_put(json_pack("{s:{s:I, s:f, s:I, s:f, s:s}, s:o}", "limits", "threads",
                                   (json_int_t)limits->threads, "read_gb_s", 1e-9 * limits->read,
                                   "read_bytes", (json_int_t)limits->read_bytes, "fma_gflop_s",
                                   1e-9 * limits->fma, "fma_kind", limits->fma_kind, "ops", list));
}

/* ---- devices ---- */

static int bench_device(const struct tfm__options *options, struct tfm__setup *setup,
                        const char *spec, struct bench *b)
{
    struct tfm_error err;

    if (tfm_devices_open(setup->registry, spec, 1, setup->devices, TFM__SETUP_DEVICES,
                         &setup->n_devices, &err))
        return tfm__failed("%s", err.text);
    b->device = setup->devices[0];
    const int code = measure_all(b, options->bench_op);
    for (size_t i = 0; i < setup->n_devices; i++)
        tfm_device_release(setup->devices[i]);
    setup->n_devices = 0;
    return code;
}

/* The one that was named, or each that can be used. */
static int bench_devices(const struct tfm__options *options, struct tfm__setup *setup,
                         struct bench *b)
{
    const char *variable = secure_getenv("TFM_BACKEND");
    const char *named = options->backend        ? options->backend
                        : variable && *variable ? variable
                                                : NULL;
    int code = TFM__EXIT_OK;

    if (named)
        return bench_device(options, setup, named, b);
    for (size_t i = 0; i < tfm_registry_count(setup->registry) && code == TFM__EXIT_OK; i++) {
        const struct tfm_backend_row *row = tfm_registry_row(setup->registry, i);
        if (row->status == TFM_STATUS_OK)
            code = bench_device(options, setup, row->name, b);
    }
    return code;
}

/* Before and after the ops, the better of both: another process may have disturbed one. */
static int measure_limits(struct tfm__limits *limits)
{
    struct tfm__limits now;

    if (tfm__limits_measure(tfm_threads(), &now))
        return tfm__failed("the limits of the machine: out of memory or threads");
    now.read = now.read > limits->read ? now.read : limits->read;
    now.fma = now.fma > limits->fma ? now.fma : limits->fma;
    *limits = now;
    return TFM__EXIT_OK;
}

static size_t case_count(const char *op)
{
    size_t n = 0;

    for (size_t i = 0; tfm__bench_case(i); i++)
        n += !op || strcmp(op, tfm_op_name(tfm__bench_case(i)->op)) == 0;
    return n;
}

int tfm__verb_bench_ops(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    struct tfm__limits limits = {0};
    struct bench b = {.repetitions = options->repetitions};
    const size_t cases = case_count(options->bench_op);

    if (cases == 0)
        return tfm__usage("--op %s: there is no op of that name", options->bench_op);
    int code = tfm__setup_registry(options, &setup);
    if (code == TFM__EXIT_OK) {
        b.rows = calloc(cases * (tfm_registry_count(setup.registry) + 1), sizeof *b.rows);
        if (!b.rows)
            code = tfm__failed("out of memory");
    }
    if (code == TFM__EXIT_OK)
        code = measure_limits(&limits);
    if (code == TFM__EXIT_OK)
        code = bench_devices(options, &setup, &b);
    if (code == TFM__EXIT_OK)
        code = measure_limits(&limits);
    if (code == TFM__EXIT_OK)
        code = strcmp(options->bench_format, "json") == 0 ? print_json(&limits, b.rows, b.n)
                                                          : print_markdown(&limits, b.rows, b.n);
    free(b.rows);
    tfm__setup_close(&setup);
    return code;
}
