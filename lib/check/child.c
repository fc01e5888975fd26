/* SPDX-License-Identifier: MIT
 * The child: finds the backend as any program would, through the registry, and runs the parts of the
 * check. Nothing of the backend is ever loaded in the parent. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "lib/check/check.h"
#include "lib/check/checks.h"
#include "lib/check/drive_host.h"

static struct tfm__report *log_report;

static void log_to_report(enum tfm_log_level level, const char *backend, const char *text)
{
    (void)backend;
    if (level <= TFM_LOG_WARN)
        tfm__report_put(log_report, TFM__RECORD_LOG, &text, 1);
}

TFM_PRINTF(2, 3) static void fail(struct tfm__report *report, const char *format, ...)
{
    char text[1200];
    const char *const field = text;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tfm__report_put(report, TFM__RECORD_ERROR, &field, 1);
}

static int same_file(const char *a, const char *b)
{
    struct stat first, second;

    return strcmp(a, b) == 0 || (stat(a, &first) == 0 && stat(b, &second) == 0 &&
                                 first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

static int is_file(const char *subject)
{
    const size_t n = strlen(subject);
    return strchr(subject, '/') || (n > 3 && strcmp(subject + n - 3, ".so") == 0);
}

/* The row of a file, or of a name of `length` bytes. */
static const struct tfm_backend_row *find_row(struct tfm_registry *registry, const char *subject,
                                              size_t length)
{
    for (size_t i = 0; i < tfm_registry_count(registry); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        if (is_file(subject) ? same_file(row->file, subject)
                             : row->status != TFM_STATUS_PLUGIN && strlen(row->name) == length &&
                                   strncmp(row->name, subject, length) == 0)
            return row;
    }
    return NULL;
}

/* The table of an accepted row, members past its struct_size NULL. The registry has it loaded. */
static int take_table(const struct tfm_backend_row *row, struct tfm_backend *table)
{
    const struct tfm_backend *found = tfm_reference_backend();

    if (strcmp(row->file, "built in") != 0) {
        void *module = dlopen(row->file, RTLD_NOW | RTLD_LOCAL);
        found = module ? dlsym(module, TFM_BACKEND_SYMBOL) : NULL;
    }
    if (!found)
        return 0;
    memset(table, 0, sizeof *table);
    memcpy(table, found,
           found->struct_size < sizeof *table ? found->struct_size / sizeof(void *) * sizeof(void *)
                                              : sizeof *table);
    return 1;
}

/* A number, or a part of a device's or platform's name; -1 = there is none. */
static int choose_device(const struct tfm_probe *probe, const char *text)
{
    char *end;
    const unsigned long number = text ? strtoul(text, &end, 10) : 0;

    if (!text || (*text && !*end))
        return number < probe->n_devices ? (int)number : -1;
    for (uint32_t i = 0; i < probe->n_devices; i++) {
        if (strcasestr(probe->devices[i].name, text) ||
            strcasestr(probe->devices[i].platform, text))
            return (int)i;
    }
    return -1;
}

static void run_ops(struct tfm__report *report, const struct tfm__drive_backend *backend,
                    const struct tfm__drive_backend *reference,
                    const struct tfm__check_options *options)
{
    const char *only = options->op;

    for (int op = 0; op < TFM_OP_LIMIT; op++) {
        if (!tfm__check_op((enum tfm_op)op) ||
            (only && strcmp(only, tfm_op_name((enum tfm_op)op)) != 0))
            continue;
        if (tfm__check_nodes(report, backend, reference, (enum tfm_op)op, options))
            tfm__check_stress(report, backend, reference, (enum tfm_op)op, options);
    }
    tfm__report_note(report, "failing allocations: the host's alloc while a device or a plan is "
                             "opened, and the alloc slot asked for too much; what a backend takes "
                             "elsewhere (malloc, a driver) was not made to fail");
    if (report->failed > 0) {
        tfm__report_note(report, "no times: what is wrong has no speed");
        return;
    }
    for (int op = 0; op < TFM_OP_LIMIT && !options->no_times; op++) {
        if (tfm__check_op((enum tfm_op)op) &&
            (!only || strcmp(only, tfm_op_name((enum tfm_op)op)) == 0))
            tfm__check_performance(report, backend, (enum tfm_op)op);
    }
}

static void run_subject(const struct tfm__check_options *options, struct tfm__report *report,
                        const struct tfm__subject *subject)
{
    const struct tfm_probe host = {.n_devices = 1};
    const int64_t before = tfm__drive_blocks();
    struct tfm__drive_backend backend = {0}, reference = {0};
    struct tfm_error err = {0};

    log_report = report;
    tfm__drive_log(log_to_report);
    if (!tfm__check_device(report, subject))
        return;
    if (tfm__drive_device_open(tfm_reference_backend(), &host, 0, &reference, &err) ==
            TFM_STATUS_OK &&
        tfm__drive_device_open(subject->table, &subject->probe, subject->index, &backend, &err) ==
            TFM_STATUS_OK)
        run_ops(report, &backend, &reference, options);
    else
        fail(report, "%s", err.text);
    tfm__drive_close(&backend);
    tfm__drive_close(&reference);
    err = (struct tfm_error){0};
    if (tfm__report_begin(report, "device", "close gives everything back")) {
        if (tfm__drive_blocks() != before)
            tfm_error_set(&err, TFM_STATUS_INTERNAL,
                          "%lld blocks of the host's alloc are left after all nodes and close",
                          (long long)(tfm__drive_blocks() - before));
        tfm__report_end(report, &err);
    }
}

/* A file that is to be checked comes before all others, so that none of its name takes its place. */
static enum tfm_status make_registry(const struct tfm__check_options *options,
                                     struct tfm_registry **registry, struct tfm_error *err)
{
    const size_t extra = is_file(options->subject) ? 1 : 0, n = options->n_plugins + extra;
    const char **plugins = malloc((n ? n : 1) * sizeof *plugins);

    if (!plugins)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory");
    tfm_plugin_trial_set(TFM_PLUGIN_TRIAL_OFF, 0); /* this process is the trial */
    plugins[0] = options->subject;
    for (size_t i = extra; i < n; i++)
        plugins[i] = options->plugins[i - extra];
    const enum tfm_status status = tfm_registry_create(plugins, n, registry, err);
    free(plugins);
    return status;
}

/* Why a name leads nowhere: the registry knows best what was meant. */
static void fail_name(const struct tfm__check_options *options, struct tfm_registry *registry,
                      struct tfm__report *report)
{
    struct tfm_device *devices[2];
    struct tfm_error err = {0};
    size_t n = 0;

    if (tfm_devices_open(registry, options->subject, 1, devices, 2, &n, &err) != TFM_STATUS_OK)
        fail(report, "%s", err.text);
    else
        fail(report, "one backend at a time can be checked, not '%s'", options->subject);
    while (n > 0)
        tfm_device_release(devices[--n]);
}

/* The first case: begun before anything of the file runs. NULL = there is nothing to check. */
static const struct tfm_backend_row *load(const struct tfm__check_options *options, size_t name,
                                          struct tfm_registry **registry,
                                          struct tfm__report *report)
{
    const int begun = tfm__report_begin(report, "device", "load and probe %s", options->subject);
    struct tfm_error err = {0};

    if (make_registry(options, registry, &err) != TFM_STATUS_OK) {
        fail(report, "%s", err.text);
        return NULL;
    }
    const struct tfm_backend_row *row = find_row(*registry, options->subject, name);
    if (!row && !is_file(options->subject)) {
        fail_name(options, *registry, report);
        return NULL;
    }
    if (!row)
        tfm_error_set(&err, TFM_STATUS_PLUGIN, "there is no such file");
    else if (row->status == TFM_STATUS_PLUGIN)
        tfm_error_set(&err, TFM_STATUS_PLUGIN, "%s", row->reason);
    if (begun)
        tfm__report_end(report, &err);
    if (err.status == TFM_STATUS_OK && row->status != TFM_STATUS_OK)
        fail(report, "%s cannot be used here: %s", row->name, row->reason);
    return err.status == TFM_STATUS_OK && row->status == TFM_STATUS_OK ? row : NULL;
}

void tfm__check_child(const struct tfm__check_options *options, struct tfm__report *report)
{
    const char *colon = is_file(options->subject) ? NULL : strchr(options->subject, ':');
    const size_t name = colon ? (size_t)(colon - options->subject) : strlen(options->subject);
    struct tfm_registry *registry = NULL;
    struct tfm_backend table;
    struct tfm__subject subject = {.table = &table};

    const struct tfm_backend_row *row = load(options, name, &registry, report);
    if (!row)
        goto done;
    subject.probe = *row->probe;
    const int index = choose_device(&subject.probe, colon ? colon + 1 : NULL);
    if (index < 0) {
        fail(report, "%s has no device '%s' (tfm backends lists them)", row->name, colon + 1);
        goto done;
    }
    subject.index = (uint32_t)index;
    tfm__report_put(report, TFM__RECORD_SUBJECT,
                    (const char *const[]){row->name, row->version, row->file,
                                          subject.probe.devices[index].name},
                    4);
    if (take_table(row, &table))
        run_subject(options, report, &subject);
    else
        fail(report, "%s: its table cannot be found again", row->file);
done:
    tfm_registry_destroy(registry);
    tfm__report_put(report, TFM__RECORD_END, NULL, 0);
}
