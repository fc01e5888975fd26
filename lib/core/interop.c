/* SPDX-License-Identifier: MIT
 * Devices made of objects that the program has already. */
#include "lib/core/interop.h"

#include <tfm/device.h>

#include "lib/core/device.h"
#include "lib/core/host.h"
#include "lib/core/match.h"
#include "lib/core/registry.h"

const struct tfm_interop *tfm__interop(const struct tfm_backend *table, void *device,
                                       const char *extension)
{
    const struct tfm_interop *interop =
        table->extension ? table->extension(device, extension) : NULL;
    return interop && interop->struct_size >= sizeof *interop ? interop : NULL;
}

enum tfm_status tfm_device_wrap(struct tfm_registry *registry, const char *backend,
                                const char *extension, const void *objects,
                                struct tfm_device **device, struct tfm_error *err)
{
    struct tfm__entry *entry = NULL;
    char name[TFM__DEVICE_NAME] = "";
    void *handle = NULL;

    tfm_error_clear(err);
    enum tfm_status status = tfm__match_backend(registry, "wrap", backend, &entry, err);
    if (status != TFM_STATUS_OK)
        return status;
    const struct tfm_interop *interop = tfm__interop(&entry->table, NULL, extension);
    if (!interop)
        return tfm_error_set(
            err, TFM_STATUS_UNSUPPORTED,
            "wrap: backend \"%s\" %s (%s) has no \"%s\"; use one that has: a newer "
            "file, or another backend",
            entry->name, entry->version, entry->file, extension);
    status = interop->wrap(tfm__host(), objects, &handle, name, sizeof name, err);
    if (status == TFM_STATUS_OK)
        status = tfm__device_adopt(entry, handle, name, device, err);
    else
        tfm_error_set(err, status, "%s: wrap failed: %s", entry->name, tfm_status_text(status));
    return status;
}

enum tfm_status tfm_device_objects(const struct tfm_device *device, const char *extension,
                                   void *objects, struct tfm_error *err)
{
    void *handle = tfm__device_handle(device);
    const struct tfm_interop *interop = tfm__interop(tfm__device_table(device), handle, extension);

    tfm_error_clear(err);
    if (!interop)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "a device of backend \"%s\" has no \"%s\"", tfm_device_backend(device),
                             extension);
    return interop->objects(handle, objects, err);
}
