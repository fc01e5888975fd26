/* SPDX-License-Identifier: MIT
 * `tfm devices`: every device that can be chosen, written as TFM_BACKEND takes it, in the order in which
 * `auto` tries them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/tools/device_text.h"
#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"

enum { BACKENDS = 64 };

static void put_device(const struct tfm_backend_row *row, uint32_t i)
{
    char spec[TFM__DEVICE_SPEC];

    tfm__device_spec(row, i, spec);
    printf("%-13s %s", spec, row->probe->devices[i].name);
    if (*row->probe->devices[i].platform)
        printf(" (%s)", row->probe->devices[i].platform);
    printf(", %s\n", tfm__device_kind(row->probe->devices[i].kind));
}

/* What is not in the list, on standard error: a device that is missed is missed for a reason. */
static void tell_missing(struct tfm_registry *registry)
{
    for (size_t i = 0; i < tfm_registry_count(registry); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        if (row->status == TFM_STATUS_OK)
            continue;
        const char *name = *row->name ? row->name : row->file;
        tfm__message("%s has no device here: %s", name, row->reason);
    }
}

int tfm__verb_devices(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    json_t *list = json_array();
    size_t rows[BACKENDS];
    int code = tfm__setup_registry(options, &setup);
    const size_t n = code == TFM__EXIT_OK ? tfm_auto_order(setup.registry, rows, BACKENDS) : 0;

    for (size_t k = 0; k < n; k++) {
        const struct tfm_backend_row *row = tfm_registry_row(setup.registry, rows[k]);
        for (uint32_t i = 0; i < row->probe->n_devices; i++) {
            if (!options->json)
                put_device(row, i);
            else if (list && json_array_append_new(list, tfm__device_json(row, i))) {
                json_decref(list);
                list = NULL;
            }
        }
    }
    if (code == TFM__EXIT_OK && options->json)
        code = tfm__json_put(list);
    else
        json_decref(list);
    if (code == TFM__EXIT_OK)
        tell_missing(setup.registry);
    tfm__setup_close(&setup);
    return code;
}
