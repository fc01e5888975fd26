/* SPDX-License-Identifier: MIT
 * The way to the facts that a backend tells of itself. */
#include <tfm/doctor.h>

#include "lib/core/device.h"
#include "lib/core/host.h"
#include "lib/core/registry.h"

/* NULL when it has none, or one that is too short for the member that ends at `end`. */
static const struct tfm_doctor *find(const struct tfm_backend *table, void *device, size_t end)
{
    const struct tfm_doctor *doctor =
        table->extension ? table->extension(device, TFM_DOCTOR) : NULL;
    return doctor && doctor->struct_size >= end ? doctor : NULL;
}

int tfm_registry_doctor(struct tfm_registry *registry, size_t index,
                        const struct tfm_doctor_sink *sink)
{
    const struct tfm__entry *entry = tfm__registry_entry(registry, index);
    const struct tfm_doctor *doctor =
        entry && entry->accepted ? find(&entry->table, NULL, offsetof(struct tfm_doctor, device))
                                 : NULL;

    if (!doctor || !doctor->machine)
        return 0;
    doctor->machine(tfm__host(), sink);
    return 1;
}

int tfm_device_doctor(const struct tfm_device *device, const struct tfm_doctor_sink *sink)
{
    const struct tfm_doctor *doctor =
        find(tfm__device_table(device), tfm__device_handle(device), sizeof(struct tfm_doctor));

    if (!doctor || !doctor->device)
        return 0;
    doctor->device(tfm__device_handle(device), sink);
    return 1;
}
