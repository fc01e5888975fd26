/* SPDX-License-Identifier: MIT
 * What would run here, and why: opened as any other verb would do it, and asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tools/device_text.h"
#include "lib/tools/doctor.h"
#include "lib/tools/json_text.h"
#include "lib/tools/message.h"

enum { WHOLE_DEVICE = 50 /* score of a CPU device that runs whole models */ };

static const char *asked(const struct tfm__options *options, const char **by)
{
    const char *variable = secure_getenv("TFM_BACKEND");

    *by = options->backend ? "--backend" : variable && *variable ? "TFM_BACKEND" : "nobody";
    return options->backend ? options->backend : variable && *variable ? variable : "auto";
}

/* ---- warnings ----------------------------------------------------------------------------------- */

/* [backend, line] each. Nothing of the registry may be called from here: a backend may be in the middle of
 * being opened. */
static void keep_warning(void *context, enum tfm_log_level level, const char *backend,
                         const char *line)
{
    if (level <= TFM_LOG_WARN)
        json_array_append_new(context,
                              json_pack("[o, o]", tfm__json_text(backend), tfm__json_text(line)));
}

/* 1 if what is wrong with that backend stands in the report already. */
static int is_told(struct tfm_registry *registry, const char *backend)
{
    if (strcmp(backend, "registry") == 0) /* a module that was refused */
        return 1;
    for (size_t i = 0; i < tfm_registry_count(registry); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        if (strcmp(row->name, backend) == 0 && row->status != TFM_STATUS_OK)
            return 1;
    }
    return 0;
}

/* Returns how many were new. */
static size_t tell_warnings(json_t *report, struct tfm_registry *registry, const json_t *warnings)
{
    json_t *warning;
    size_t i, n = 0;

    json_array_foreach(warnings, i, warning)
    {
        const char *backend = json_string_value(json_array_get(warning, 0));
        if (is_told(registry, backend))
            continue;
        n++;
        tfm__doctor_problem(report, "%s: %s", backend,
                            json_string_value(json_array_get(warning, 1)));
    }
    return n;
}

/* ---- the device --------------------------------------------------------------------------------- */

static int32_t score_of(struct tfm_registry *registry, const char *backend)
{
    for (size_t i = 0; i < tfm_registry_count(registry); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        if (row->status == TFM_STATUS_OK && strcmp(row->name, backend) == 0)
            return row->probe->score;
    }
    return 0;
}

static void tell_device(json_t *report, json_t *choice, struct tfm_registry *registry,
                        const struct tfm_device *device, int is_auto, int some_failed)
{
    struct tfm__doctor_tree tree = {choice, NULL};
    const struct tfm_doctor_sink sink = tfm__doctor_sink(&tree);
    const char *backend = tfm_device_backend(device);
    const int32_t score = score_of(registry, backend);
    char line[200] = "it was named";

    if (is_auto)
        snprintf(line, sizeof line, "it has the highest score, %" PRId32 "%s", score,
                 some_failed ? ", of those that open" : "");
    json_object_set_new(choice, "why", tfm__json_text(line));
    snprintf(line, sizeof line, "%s:%" PRIu32, backend, tfm_device_index(device));
    json_object_set_new(choice, "device", tfm__json_text(line));
    json_object_set_new(choice, "name", tfm__json_text(tfm_device_name(device)));
    if (is_auto && score < WHOLE_DEVICE)
        tfm__doctor_problem(report, "%s is slow for whole models; opencl is the fast backend",
                            backend);
    tfm_device_doctor(device, &sink);
}

int tfm__doctor_choice(json_t *report, const struct tfm__options *options, struct tfm__setup *setup)
{
    const char *by, *spec = asked(options, &by);
    json_t *warnings = json_array(),
           *choice = json_pack("{s:o, s:s}", "asked", tfm__json_text(spec), "asked_by", by);
    const int is_auto = strcmp(spec, "auto") == 0;
    struct tfm_error err;

    json_object_set_new(report, "choice", choice);
    tfm_log_set(keep_warning, warnings);
    const enum tfm_status status =
        tfm_devices_open(setup->registry, options->backend, -1, setup->devices, TFM__SETUP_DEVICES,
                         &setup->n_devices, &err);
    tfm_log_set(NULL, NULL);
    const size_t failed = tell_warnings(report, setup->registry, warnings);
    json_decref(warnings);
    if (status != TFM_STATUS_OK) {
        json_object_set_new(choice, "error", tfm__json_text(err.text));
        tfm__doctor_problem(report, "%s", err.text);
        return TFM__EXIT_FAILED;
    }
    tell_device(report, choice, setup->registry, setup->devices[0], is_auto, failed > 0);
    return TFM__EXIT_OK;
}
