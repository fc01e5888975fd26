/* SPDX-License-Identifier: MIT
 * `tfm backends`: every backend that was found, also those that cannot be used, with the reason. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"

static const char *device_kind(enum tfm_device_kind kind)
{
    static const char *const kinds[] = {[TFM_DEVICE_CPU] = "cpu",
                                        [TFM_DEVICE_GPU] = "gpu",
                                        [TFM_DEVICE_ACCELERATOR] = "accelerator"};
    return kind <= TFM_DEVICE_ACCELERATOR ? kinds[kind] : "?";
}

/* usable; refused: the file is no backend of this library; unusable: it is one and cannot work here
 */
static const char *state(const struct tfm_backend_row *row)
{
    if (row->status == TFM_STATUS_OK)
        return "usable";
    return row->status == TFM_STATUS_PLUGIN ? "refused" : "unusable";
}

static uint32_t device_count(const struct tfm_backend_row *row)
{
    return row->probe ? row->probe->n_devices : 0;
}

static void put_row(const struct tfm_backend_row *row)
{
    printf("%-12s %-10s %-9s %s\n", *row->name ? row->name : "-",
           *row->version ? row->version : "-", state(row), row->file);
    if (*row->reason)
        printf("             %s\n", row->reason);
    for (uint32_t i = 0; i < device_count(row); i++)
        printf("    %" PRIu32 ": %s (%s%s%s)\n", i, row->probe->devices[i].name,
               device_kind(row->probe->devices[i].kind),
               *row->probe->devices[i].platform ? ", " : "", row->probe->devices[i].platform);
}

static json_t *text(const char *value)
{
    return tfm__json_string(value, strlen(value));
}

static json_t *make_row(const struct tfm_backend_row *row)
{
    json_t *devices = json_array();
    for (uint32_t i = 0; i < device_count(row); i++)
        json_array_append_new(devices, json_pack("{s:I, s:o, s:o, s:s}", "index", (json_int_t)i,
                                                 "name", text(row->probe->devices[i].name),
                                                 "platform", text(row->probe->devices[i].platform),
                                                 "kind", device_kind(row->probe->devices[i].kind)));
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o}", "name", text(row->name), "version",
                     text(row->version), "file", text(row->file), "status", state(row), "reason",
                     text(row->reason), "devices", devices);
}

static int put_json(struct tfm_registry *registry)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tfm_registry_count(registry); i++)
        if (json_array_append_new(list, make_row(tfm_registry_row(registry, i)))) {
            json_decref(list);
            list = NULL;
        }
    return tfm__json_put(list);
}

static void put_syntax(void)
{
    printf("TFM_BACKEND=NAME[:DEVICE][,NAME[:DEVICE]...] | auto | help (or --backend)\n"
           "  NAME    a backend below; several are asked in this order for each node\n"
           "  DEVICE  its number, or a part of its name or platform\n"
           "  auto    the usable one that promises most\n"
           "reference ends every list, unless TFM_STRICT=1 leaves it out.\n\n");
}

int tfm__verb_backends(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    int code = tfm__setup_registry(options, &setup);
    if (code == TFM__EXIT_OK && options->json) {
        code = put_json(setup.registry);
    } else if (code == TFM__EXIT_OK) {
        if (tfm__backend_help_wanted(options))
            put_syntax();
        for (size_t i = 0; i < tfm_registry_count(setup.registry); i++)
            put_row(tfm_registry_row(setup.registry, i));
    }
    tfm__setup_close(&setup);
    return code;
}
