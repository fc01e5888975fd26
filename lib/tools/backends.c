/* SPDX-License-Identifier: MIT
 * `tfm backends`: every backend that was found, also those that cannot be used, with the reason. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/tools/device_text.h"
#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"

static uint32_t device_count(const struct tfm_backend_row *row)
{
    return row->probe ? row->probe->n_devices : 0;
}

static void put_row(const struct tfm_backend_row *row, int verbose)
{
    printf("%-12s %-10s %-9s %s\n", *row->name ? row->name : "-",
           *row->version ? row->version : "-", tfm__backend_state(row), row->file);
    if (*row->reason)
        printf("             %s\n", row->reason);
    if (verbose && row->probe)
        printf("             license %s, ABI %u.%" PRIu32 ", score %" PRId32 "\n", row->license,
               TFM_BACKEND_ABI_MAJOR, row->abi_minor, row->probe->score);
    for (uint32_t i = 0; i < device_count(row); i++)
        printf("    %" PRIu32 ": %s (%s%s%s)\n", i, row->probe->devices[i].name,
               tfm__device_kind(row->probe->devices[i].kind),
               *row->probe->devices[i].platform ? ", " : "", row->probe->devices[i].platform);
}

/* --failed leaves out what can be used. */
static int is_listed(const struct tfm_backend_row *row, const struct tfm__options *options)
{
    return !options->failed || row->status != TFM_STATUS_OK;
}

static int put_json(struct tfm_registry *registry, const struct tfm__options *options)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tfm_registry_count(registry); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        if (is_listed(row, options) && json_array_append_new(list, tfm__backend_json(row))) {
            json_decref(list);
            list = NULL;
        }
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
        code = put_json(setup.registry, options);
    } else if (code == TFM__EXIT_OK) {
        if (tfm__backend_help_wanted(options))
            put_syntax();
        for (size_t i = 0; i < tfm_registry_count(setup.registry); i++) {
            const struct tfm_backend_row *row = tfm_registry_row(setup.registry, i);
            if (is_listed(row, options))
                put_row(row, options->verbose);
        }
    }
    tfm__setup_close(&setup);
    return code;
}
