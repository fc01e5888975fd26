/* SPDX-License-Identifier: MIT
 * How backends and devices are written. */
#include "lib/tools/device_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/tools/json_text.h"

const char *tfm__device_kind(enum tfm_device_kind kind)
{
    static const char *const kinds[] = {[TFM_DEVICE_CPU] = "cpu",
                                        [TFM_DEVICE_GPU] = "gpu",
                                        [TFM_DEVICE_ACCELERATOR] = "accelerator"};
    return kind <= TFM_DEVICE_ACCELERATOR ? kinds[kind] : "?";
}

void tfm__device_spec(const struct tfm_backend_row *row, uint32_t index,
                      char spec[TFM__DEVICE_SPEC])
{
    snprintf(spec, TFM__DEVICE_SPEC, "%s:%" PRIu32, row->name, index);
}

const char *tfm__backend_state(const struct tfm_backend_row *row)
{
    if (row->status == TFM_STATUS_OK)
        return "usable";
    if (row->shadowed_by)
        return "shadowed";
    return row->status == TFM_STATUS_PLUGIN ? "refused" : "unusable";
}

json_t *tfm__backend_json(const struct tfm_backend_row *row)
{
    const uint32_t n = row->probe ? row->probe->n_devices : 0;
    json_t *devices = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(devices,
                              json_pack("{s:I, s:o, s:o, s:s}", "index", (json_int_t)i, "name",
                                        tfm__json_text(row->probe->devices[i].name), "platform",
                                        tfm__json_text(row->probe->devices[i].platform), "kind",
                                        tfm__device_kind(row->probe->devices[i].kind)));
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:o, s:o}", "name", tfm__json_text(row->name),
        "version", tfm__json_text(row->version), "file", tfm__json_text(row->file), "status",
        tfm__backend_state(row), "reason", tfm__json_text(row->reason), "license",
        tfm__json_text(row->license), "abi_minor", (json_int_t)row->abi_minor, "score",
        (json_int_t)(row->probe ? row->probe->score : 0), "shadowed_by",
        row->shadowed_by ? tfm__json_text(row->shadowed_by) : json_null(), "devices", devices);
}

json_t *tfm__device_json(const struct tfm_backend_row *row, uint32_t i)
{
    char spec[TFM__DEVICE_SPEC];

    tfm__device_spec(row, i, spec);
    return json_pack(
        "{s:o, s:s, s:I, s:o, s:o, s:s, s:I}", "device", tfm__json_text(spec), "backend", row->name,
        "index", (json_int_t)i, "name", tfm__json_text(row->probe->devices[i].name), "platform",
        tfm__json_text(row->probe->devices[i].platform), "kind",
        tfm__device_kind(row->probe->devices[i].kind), "score", (json_int_t)row->probe->score);
}
