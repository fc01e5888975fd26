/* SPDX-License-Identifier: MIT
 * Finds and opens the backend under test. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/reference/backend.h"
#include "lib/check/drive_host.h"
#include "tests/ops/drive_backend.h"

static int is_module(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    struct stat info;

    return strncmp(base, name, length) == 0 && strcmp(base + length, ".so") == 0 &&
           stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* NAME.so by the list of folders and files in TFM_PLUGIN_PATH. */
static int find_module(const char *name, char *path, size_t size)
{
    const char *list = getenv("TFM_PLUGIN_PATH");

    while (list && *list) {
        const int length = (int)strcspn(list, ":");
        snprintf(path, size, "%.*s/%s.so", length, list, name);
        if (is_module(path, name))
            return 1;
        snprintf(path, size, "%.*s", length, list);
        if (is_module(path, name))
            return 1;
        list += length + (list[length] == ':');
    }
    return 0;
}

static enum tfm_status load_table(const char *name, const struct tfm_backend **table,
                                  struct tfm_error *err)
{
    char path[4096];

    if (strcmp(name, "reference") == 0) {
        *table = &tfm__backend_reference;
        return TFM_STATUS_OK;
    }
    if (!find_module(name, path, sizeof path))
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                             "no %s.so in TFM_PLUGIN_PATH: the module was not built", name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays: drivers keep threads in it */
    if (!module)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "%s: %s", path, dlerror());
    const struct tfm_backend *found = dlsym(module, TFM_BACKEND_SYMBOL);
    if (!found || found->abi_major != TFM_BACKEND_ABI_MAJOR ||
        found->struct_size < sizeof(struct tfm_backend))
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "%s: no %s of this ABI", path,
                             TFM_BACKEND_SYMBOL);
    *table = found;
    return TFM_STATUS_OK;
}

/* The device that tests run on; -1 = none. */
static int choose_device(const char *name, const struct tfm_probe *probe)
{
    const char *wanted = getenv("TFM_TEST_PLATFORM");
    const int any = strcmp(name, "opencl") != 0;

    wanted = wanted && *wanted ? wanted : "Portable Computing Language";
    for (uint32_t i = 0; i < probe->n_devices && i < TFM_PROBE_DEVICES; i++) {
        if (any || strstr(probe->devices[i].platform, wanted))
            return (int)i;
    }
    return -1;
}

enum tfm_status drive_open(const char *name, struct tfm__drive_backend *backend,
                           struct tfm_error *err)
{
    const struct tfm_backend *table = NULL;
    struct tfm_probe probe = {0};

    enum tfm_status status = load_table(name, &table, err);
    if (status == TFM_STATUS_OK)
        status = table->probe(tfm__drive_host(), NULL, &probe, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (!probe.usable)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "%s is not usable: %s", name, probe.reason);
    const int index = choose_device(name, &probe);
    if (index < 0)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                             "%s has no device of the platform that tests use", name);
    return tfm__drive_device_open(table, &probe, (uint32_t)index, backend, err);
}
