/* SPDX-License-Identifier: MIT
 * `tfm check-backend`: the results of a check as TAP or JSON, and its table of times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/op.h>

#include "lib/check/check.h"
#include "lib/tools/json_text.h"
#include "lib/tools/kernel_cache.h"
#include "lib/tools/message.h"
#include "lib/tools/place.h"
#include "lib/tools/setup.h"

/* ---- as TAP ------------------------------------------------------------------------------------- */

struct tap {
    uint64_t n;
    int table; /* its head was printed */
};

static void tap_subject(void *context, const char *name, const char *version, const char *file,
                        const char *device)
{
    (void)context;
    printf("# %s %s, %s\n# device: %s\n", name, version, file, device);
}

/* In TAP a # begins a directive. */
static void tap_text(const char *text)
{
    for (; *text; text++)
        putchar(*text == '#' ? '*' : *text);
}

static void tap_result(void *context, const char *kind, const char *name, int passed,
                       const char *why)
{
    struct tap *tap = context;

    (void)kind;
    printf("%sok %" PRIu64 " - ", passed ? "" : "not ", ++tap->n);
    tap_text(name);
    if (!passed) {
        fputs(": ", stdout);
        tap_text(why);
    }
    putchar('\n');
}

static void tap_skipped(void *context, const char *kind, const char *name, const char *why)
{
    struct tap *tap = context;

    (void)kind;
    printf("ok %" PRIu64 " - ", ++tap->n);
    tap_text(name);
    printf(" # SKIP %s\n", why);
}

static void tap_refused(void *context, const char *op, uint32_t nodes, uint32_t of,
                        const char *reason)
{
    (void)context;
    printf("# %s: refuses %" PRIu32 " of %" PRIu32 " nodes: %s\n", op, nodes, of, reason);
}

static void tap_note(void *context, const char *text)
{
    (void)context;
    printf("# %s\n", text);
}

static void tap_measured(void *context, const char *op, const char *node, uint32_t rows,
                         double nanoseconds, double gigabytes, double gigaflops)
{
    struct tap *tap = context;

    if (!tap->table)
        printf("# %-14s %-44s %5s %12s %9s %9s\n", "op", "node", "rows", "ns", "GB/s", "GFLOP/s");
    tap->table = 1;
    printf("# %-14s %-44s %5" PRIu32 " %12.0f %9.3f %9.3f\n", op, node, rows, nanoseconds,
           gigabytes, gigaflops);
}

static void tap_end(const struct tap *tap, const struct tfm__check_summary *sum)
{
    printf("1..%" PRIu64 "\n# %" PRIu64 " cases of nodes and %" PRIu64 " of the device: %" PRIu64
           " passed, %" PRIu64 " failed",
           tap->n, sum->nodes, sum->device, sum->passed, sum->failed);
    if (sum->skipped > 0)
        printf(", %" PRIu64 " skipped", sum->skipped);
    putchar('\n');
    fflush(stdout); /* before what standard error says */
}

/* ---- as JSON ------------------------------------------------------------------------------------ */

struct lists {
    json_t *subject, *cases, *skipped, *refused, *notes, *performance;
};

static void json_subject(void *context, const char *name, const char *version, const char *file,
                         const char *device)
{
    struct lists *lists = context;

    json_decref(lists->subject);
    lists->subject = json_pack("{s:o, s:o, s:o, s:o}", "name", tfm__json_text(name), "version",
                               tfm__json_text(version), "file", tfm__json_text(file), "device",
                               tfm__json_text(device));
}

static void json_result(void *context, const char *kind, const char *name, int passed,
                        const char *why)
{
    json_array_append_new(((struct lists *)context)->cases,
                          json_pack("{s:s, s:o, s:b, s:o}", "kind", kind, "name",
                                    tfm__json_text(name), "passed", passed, "why",
                                    tfm__json_text(why)));
}

static void json_skipped(void *context, const char *kind, const char *name, const char *why)
{
    json_array_append_new(((struct lists *)context)->skipped,
                          json_pack("{s:s, s:o, s:o}", "kind", kind, "name", tfm__json_text(name),
                                    "why", tfm__json_text(why)));
}

static void json_refused(void *context, const char *op, uint32_t nodes, uint32_t of,
                         const char *reason)
{
    json_array_append_new(((struct lists *)context)->refused,
                          json_pack("{s:s, s:I, s:I, s:o}", "op", op, "nodes", (json_int_t)nodes,
                                    "of", (json_int_t)of, "reason", tfm__json_text(reason)));
}

static void json_note(void *context, const char *note)
{
    json_array_append_new(((struct lists *)context)->notes, tfm__json_text(note));
}

static void json_measured(void *context, const char *op, const char *node, uint32_t rows,
                          double nanoseconds, double gigabytes, double gigaflops)
{
    json_array_append_new(((struct lists *)context)->performance,
                          json_pack("{s:s, s:o, s:I, s:f, s:f, s:f}", "op", op, "node",
                                    tfm__json_text(node), "rows", (json_int_t)rows, "ns",
                                    nanoseconds, "gb_s", gigabytes, "gflop_s", gigaflops));
}

static int json_end(const struct lists *lists, const struct tfm__check_summary *sum)
{
    return tfm__json_put(json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "backend",
        lists->subject ? lists->subject : json_null(), "passed", (json_int_t)sum->passed, "failed",
        (json_int_t)sum->failed, "node_cases", (json_int_t)sum->nodes, "device_cases",
        (json_int_t)sum->device, "cases", lists->cases, "skipped", lists->skipped, "refused",
        lists->refused, "notes", lists->notes, "performance", lists->performance));
}

/* ---- both --------------------------------------------------------------------------------------- */

static int check_op(const char *op)
{
    for (int i = 0; op && i < TFM_OP_LIMIT; i++) {
        if (tfm_op_info((enum tfm_op)i) && strcmp(tfm_op_name((enum tfm_op)i), op) == 0)
            return TFM__EXIT_OK;
    }
    return op ? tfm__usage("--op: there is no op '%s'", op) : TFM__EXIT_OK;
}

/* A case that failed, or none that ran a node: no backend passes by doing nothing. */
static int verdict(const struct tfm__check_summary *sum)
{
    if (sum->failed > 0)
        return tfm__failed("%" PRIu64 " of %" PRIu64 " cases failed", sum->failed,
                           sum->passed + sum->failed);
    if (sum->nodes == 0)
        return tfm__failed("no node was run: the backend takes none");
    return TFM__EXIT_OK;
}

static int check_as_tap(const struct tfm__check_options *check)
{
    struct tap tap = {0, 0};
    const struct tfm__check_sink sink = {&tap,     tap_subject,  tap_result, tap_refused,
                                         tap_note, tap_measured, tap_skipped};
    struct tfm__check_summary sum;
    struct tfm_error err = {0};
    const enum tfm_status status = tfm__check_run(check, &sink, &sum, &err);

    if (tap.n > 0)
        tap_end(&tap, &sum);
    return status != TFM_STATUS_OK ? tfm__failed("%s", err.text) : verdict(&sum);
}

static int check_as_json(const struct tfm__check_options *check)
{
    struct lists lists = {NULL,         json_array(), json_array(),
                          json_array(), json_array(), json_array()};
    const struct tfm__check_sink sink = {&lists,    json_subject,  json_result, json_refused,
                                         json_note, json_measured, json_skipped};
    struct tfm__check_summary sum;
    struct tfm_error err = {0};
    const enum tfm_status status = tfm__check_run(check, &sink, &sum, &err);
    const int code = json_end(&lists, &sum);

    if (status != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    return code != TFM__EXIT_OK ? code : verdict(&sum);
}

int tfm__verb_check_backend(const struct tfm__options *options)
{
    const struct tfm__check_options check = {.subject = options->subject,
                                             .op = options->op,
                                             .plugins = options->plugins.items,
                                             .n_plugins = options->plugins.n,
                                             .seconds = (int)options->case_seconds,
                                             .nodes = (uint32_t)options->nodes,
                                             .rows = (uint32_t)options->case_rows,
                                             .one_thread = options->one_thread,
                                             .no_times = options->no_times};

    if (check_op(options->op) != TFM__EXIT_OK)
        return TFM__EXIT_USAGE;
    /* A backend may round activations by itself where it is fast at that (docs/kernels.md); what is
     * checked here are the formulas. Who sets the variable wants to see the difference. */
    (void)setenv("TFM_ACT", "f32", 0);
    tfm__place_add_plugins();
    tfm__kernel_cache_init();
    const int result = options->json ? check_as_json(&check) : check_as_tap(&check);
    tfm__kernel_cache_deinit();
    return result;
}
