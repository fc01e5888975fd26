/* SPDX-License-Identifier: MIT
 * `tfm doctor`: what this machine offers, what was chosen and why, and what is wrong. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tfm/tfm.h>

#include "lib/tools/device_text.h"
#include "lib/tools/doctor.h"
#include "lib/tools/json_text.h"
#include "lib/tools/kernel_cache.h"
#include "lib/tools/message.h"
#include "lib/tools/place.h"
#include "lib/tools/setup.h"

enum { BACKENDS = 64 };

void tfm__doctor_problem(json_t *report, const char *format, ...)
{
    char line[2000];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    json_array_append_new(json_object_get(report, "problems"), tfm__json_text(line));
}

/* ---- the program and its places ----------------------------------------------------------------- */

static json_t *make_program(void)
{
    cpu_set_t cpus;
    const int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;

    return json_pack("{s:s, s:I, s:I, s:I}", "version", tfm_version(), "cpus", (json_int_t)n,
                     "threads", (json_int_t)tfm_threads(), "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE));
}

static void add_place(void *context, const char *source, const char *path)
{
    struct stat info;
    json_array_append_new(context,
                          json_pack("{s:s, s:o, s:b}", "source", source, "path",
                                    tfm__json_text(path), "exists", stat(path, &info) == 0));
}

static const char *helper_of(const json_t *places)
{
    const json_t *last = json_array_get(places, json_array_size(places) - 1);
    return json_string_value(json_object_get(last, "path"));
}

/* Drivers that crash are why the doctor is called: all modules are tried, unless the user has decided. */
static void choose_trial(json_t *report)
{
    const char *decided = secure_getenv("TFM_PLUGIN_TRIAL");
    const char *helper = helper_of(json_object_get(report, "places"));

    if (!helper || access(helper, X_OK) != 0)
        tfm__doctor_problem(report,
                            "%s cannot be started: plugins from outside are loaded without a trial",
                            helper ? helper : "the helper tfm-probe");
    else if (!decided || !*decided)
        tfm_plugin_trial_set(TFM_PLUGIN_TRIAL_ALL, 0);
}

/* ---- backends ----------------------------------------------------------------------------------- */

static void look_at_drivers(json_t *report, const json_t *facts)
{
    size_t i;
    json_t *driver;

    json_array_foreach(json_object_get(facts, "drivers"), i, driver)
    {
        const char *file = json_string_value(json_object_get(driver, "file"));
        const char *problem = json_string_value(json_object_get(driver, "problem"));
        if (!problem && !json_object_get(driver, "loads"))
            problem = "it ended the process that loaded it: take its .icd file away";
        if (problem)
            tfm__doctor_problem(report, "driver %s: %s",
                                file ? file : json_string_value(json_object_get(driver, "library")),
                                problem);
    }
}

static void look_at_caches(json_t *report, const json_t *facts)
{
    size_t i;
    json_t *cache;

    if (json_array_size(json_object_get(facts, "platforms")) == 0)
        return;
    json_array_foreach(json_object_get(facts, "caches"), i, cache)
    {
        if (!json_is_true(json_object_get(cache, "writable")))
            tfm__doctor_problem(report,
                                "kernels are compiled anew at each start: %s cannot be written",
                                json_string_value(json_object_get(cache, "folder")));
    }
}

/* Before any row is probed here: the child that is asked is a fork. */
static json_t *make_facts(json_t *report, struct tfm_registry *registry, size_t n)
{
    json_t *all = json_array();

    for (size_t i = 0; i < n; i++) {
        char why[200];
        const char *file = tfm_registry_file(registry, i);
        json_t *facts = file && file[0] == '/' ? tfm__doctor_facts(file, why, sizeof why) : NULL;
        if (facts && *why) {
            json_object_set_new(facts, "ended", tfm__json_text(why));
            tfm__doctor_problem(report, "%s: the process that asked it for facts: %s", file, why);
        }
        look_at_drivers(report, facts);
        look_at_caches(report, facts);
        json_array_append_new(all, facts ? facts : json_object());
    }
    return all;
}

static void add_backends(json_t *report, struct tfm_registry *registry, json_t *facts)
{
    json_t *backends = json_array();

    for (size_t i = 0; i < json_array_size(facts); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        json_t *object = tfm__backend_json(row);
        json_object_set(object, "facts", json_array_get(facts, i));
        json_array_append_new(backends, object);
        if (row->status != TFM_STATUS_OK)
            tfm__doctor_problem(report, "backend %s: %s", *row->name ? row->name : row->file,
                                row->reason);
    }
    json_object_set_new(report, "backends", backends);
}

static void add_devices(json_t *report, struct tfm_registry *registry)
{
    json_t *devices = json_array();
    size_t rows[BACKENDS];
    const size_t n = tfm_auto_order(registry, rows, BACKENDS);

    for (size_t k = 0; k < n; k++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, rows[k]);
        for (uint32_t i = 0; i < row->probe->n_devices; i++)
            json_array_append_new(devices, tfm__device_json(row, i));
    }
    json_object_set_new(report, "devices", devices);
}

int tfm__verb_doctor(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    json_t *report = json_object(), *places = json_array();

    json_object_set_new(report, "problems", json_array());
    json_object_set_new(report, "places", places);
    tfm__place_add_plugins();
    if (tfm_registry_places(add_place, places))
        tfm__doctor_problem(report, "out of memory");
    choose_trial(report);
    int code = tfm__setup_registry(options, &setup);
    if (code != TFM__EXIT_OK)
        goto done;
    json_object_set_new(report, "program", make_program());
    if (tfm__kernel_cache_is_private())
        tfm__doctor_problem(report,
                            "HOME cannot be written, so kernels are compiled anew each time: "
                            "set POCL_CACHE_DIR to a folder that can");
    json_t *facts = make_facts(report, setup.registry, tfm_registry_count(setup.registry));
    add_backends(report, setup.registry, facts);
    json_decref(facts);
    add_devices(report, setup.registry);
    code = tfm__doctor_choice(report, options, &setup);
    if (options->json) {
        const int put = tfm__json_put(json_incref(report));
        code = put != TFM__EXIT_OK ? put : code;
    } else
        tfm__doctor_put(report);
    if (code != TFM__EXIT_OK)
        tfm__message("no device can be had: see what is wrong above");
done:
    tfm__setup_close(&setup);
    json_decref(report);
    return code;
}
