/* SPDX-License-Identifier: MIT
 * What OpenCL leaves in the file system: the loader's library, the .icd files that name drivers, the folders
 * in which drivers keep compiled kernels. */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS /* clGetExtensionFunctionAddress: for the loader itself */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/opencl/doctor.h"

#define VENDORS "/etc/OpenCL/vendors" /* cl_khr_icd */

static void tell(const struct tfm_doctor_sink *sink, const char *key, const char *value)
{
    sink->text(sink->context, key, value);
}

/* ---- the loader --------------------------------------------------------------------------------- */

/* The function and its values are those of ocl-icd's ocl_icd.h (extension cl_ocl_icd); Khronos' loader has
 * them too. */
typedef cl_int (*loader_info)(cl_uint what, size_t size, void *value, size_t *size_ret);
enum { LOADER_OPENCL = 1, LOADER_VERSION = 2, LOADER_NAME = 3 };

/* The loader may be the system's own library, or one driver in its place, which has no such function. */
static void tell_loader(const struct tfm_doctor_sink *sink, const char *place, const char *named_by)
{
    static const struct {
        const char *key;
        cl_uint what;
    } facts[] = {{"name", LOADER_NAME}, {"version", LOADER_VERSION}, {"opencl", LOADER_OPENCL}};
    union {
        void *object;
        cl_int (*platforms)(cl_uint, cl_platform_id *, cl_uint *);
        loader_info info;
    } from = {.platforms = clGetPlatformIDs};
    Dl_info where;
    char text[256], path[PATH_MAX];

    sink->item(sink->context, "loader");
    if (dladdr(from.object, &where) && where.dli_fname)
        tell(sink, "library", realpath(where.dli_fname, path) ? path : where.dli_fname);
    else
        tell(sink, "library", "not told");
    tell(sink, "drivers_from", place);
    tell(sink, "drivers_named_by", named_by);
    from.object = clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        text[0] = 0;
        if (!from.object || from.info(facts[i].what, sizeof text, text, NULL) != CL_SUCCESS)
            snprintf(text, sizeof text, "not told");
        text[sizeof text - 1] = 0;
        tell(sink, facts[i].key, text);
    }
}

/* ---- drivers ------------------------------------------------------------------------------------ */

/* The library of a driver: does the system find it? It was loaded by the loader already if it works. */
static void tell_library(const struct tfm_doctor_sink *sink, const char *library)
{
    tell(sink, "library", library);
    void *loaded = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    sink->flag(sink->context, "loads", loaded != NULL);
    if (loaded)
        dlclose(loaded);
    else {
        const char *why = dlerror();
        tell(sink, "problem", why ? why : "the loader gives no reason");
    }
}

/* A text file whose first line is the driver's library. */
static void tell_icd(const struct tfm_doctor_sink *sink, const char *path)
{
    char line[PATH_MAX];
    FILE *file = fopen(path, "r");

    sink->item(sink->context, "drivers");
    tell(sink, "file", path);
    if (!file || !fgets(line, sizeof line, file)) {
        sink->flag(sink->context, "loads", 0);
        tell(sink, "problem", file ? "it is empty" : strerror(errno));
    } else {
        line[strcspn(line, "\r\n")] = 0;
        tell_library(sink, line);
    }
    if (file)
        fclose(file);
}

static int is_icd(const struct dirent *item)
{
    const size_t length = strlen(item->d_name);
    return length > 4 && strcmp(item->d_name + length - 4, ".icd") == 0;
}

static void tell_folder(const struct tfm_doctor_sink *sink, const char *folder)
{
    struct dirent **items = NULL;
    char path[2 * PATH_MAX];
    const int n = scandir(folder, &items, is_icd, alphasort);

    if (n <= 0) {
        sink->item(sink->context, "drivers");
        tell(sink, "file", folder);
        sink->flag(sink->context, "loads", 0);
        tell(sink, "problem", n < 0 ? strerror(errno) : "no .icd file is in it");
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, items[i]->d_name);
        tell_icd(sink, path);
        free(items[i]);
    }
    if (n >= 0)
        free(items);
}

void tfm__cl_doctor_drivers(const struct tfm_doctor_sink *sink)
{
    const char *named = getenv("OCL_ICD_VENDORS");
    const char *place = named && *named ? named : VENDORS;
    const size_t length = strlen(place);
    struct stat info;

    if (stat(place, &info) == 0 && S_ISDIR(info.st_mode))
        tell_folder(sink, place);
    else if (length > 4 && strcmp(place + length - 4, ".icd") == 0)
        tell_icd(sink, place);
    else if (place == named && stat(place, &info) == 0) {
        sink->item(sink->context, "drivers");
        tell_library(sink, place);
    } else
        tell_folder(sink, place);
    /* last: its version is asked through the drivers */
    tell_loader(sink, place, place == named ? "OCL_ICD_VENDORS" : "the system");
}

/* ---- caches ------------------------------------------------------------------------------------- */

/* Who keeps kernels where: a variable that names the folder, else a folder below XDG_CACHE_HOME or ~/.cache, or
 * (with a slash in front) below the home itself. From the implementations' manuals. */
static const struct cache {
    const char *owner, *variable, *folder;
} caches[] = {
    {"PoCL", "POCL_CACHE_DIR", "pocl/kcache"},
    {"Mesa", "MESA_SHADER_CACHE_DIR", "mesa_shader_cache"},
    {"Intel compute runtime", "NEO_CACHE_DIR", "neo_compiler_cache"},
    {"NVIDIA", "CUDA_CACHE_PATH", "/.nv/ComputeCache"},
};

/* 0 when there is neither the variable nor a home. *named: the variable says it. */
static int find_cache(const struct cache *cache, char path[PATH_MAX], int *named)
{
    const char *value = getenv(cache->variable), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int n = -1;

    *named = value && *value;
    if (*named)
        n = snprintf(path, PATH_MAX, "%s", value);
    else if (cache->folder[0] == '/')
        n = home ? snprintf(path, PATH_MAX, "%s%s", home, cache->folder) : -1;
    else if (xdg && *xdg)
        n = snprintf(path, PATH_MAX, "%s/%s", xdg, cache->folder);
    else if (home)
        n = snprintf(path, PATH_MAX, "%s/.cache/%s", home, cache->folder);
    return n > 0 && n < PATH_MAX;
}

/* nftw takes no context. */
static _Thread_local uint64_t walked_bytes, walked_files;

static int count_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)path, (void)walk;
    if (type == FTW_F) {
        walked_bytes += (uint64_t)info->st_size;
        walked_files++;
    }
    return 0;
}

/* The nearest folder of the path that is there decides whether it could be made. */
static int can_be_written(const char *folder)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", folder);
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return 0;
        slash[slash == path] = 0;
    }
    return access(path, W_OK | X_OK) == 0;
}

void tfm__cl_doctor_caches(const struct tfm_doctor_sink *sink)
{
    char path[PATH_MAX];
    struct stat info;
    int named;

    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        if (!find_cache(&caches[i], path, &named))
            continue;
        const int there = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        if (!there && !named && i > 0) /* the first is told in any case: it is what CPUs use */
            continue;
        walked_bytes = walked_files = 0;
        if (there)
            nftw(path, count_file, 16, FTW_PHYS);
        sink->item(sink->context, "caches");
        tell(sink, "owner", caches[i].owner);
        tell(sink, "folder", path);
        tell(sink, "named_by", named ? caches[i].variable : "its default");
        sink->flag(sink->context, "exists", there);
        sink->flag(sink->context, "writable", can_be_written(path));
        sink->number(sink->context, "files", walked_files, TFM_DOCTOR_COUNT);
        sink->number(sink->context, "size", walked_bytes, TFM_DOCTOR_BYTES);
    }
}
