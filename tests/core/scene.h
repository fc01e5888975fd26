/* SPDX-License-Identifier: MIT
 * A folder of its own for each test of the search path, and the modules that lie in the build tree.
 */
#ifndef TESTS_CORE_SCENE_H
#define TESTS_CORE_SCENE_H

#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/search.h"

static char scene[PATH_MAX]; /* absolute */

static inline void scene_open(void)
{
    const char *where = getenv("TMPDIR");
    char pattern[PATH_MAX];
    snprintf(pattern, sizeof pattern, "%s/tfm-scene.XXXXXX", where && *where ? where : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(pattern));
    ck_assert_ptr_nonnull(realpath(pattern, scene));
    unsetenv("TFM_PLUGIN_PATH");
    unsetenv("TFM_BACKEND");
    unsetenv("TFM_STRICT");
    tfm__search_package_set(""); /* what is installed here is no part of a test */
}

static inline int scene_remove(const char *path, const struct stat *info, int flag, struct FTW *ftw)
{
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}

static inline void scene_close(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    nftw(scene, scene_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Path of `name` in the scene; valid until the eighth call after this one. */
static inline const char *scene_path(const char *name)
{
    static char paths[8][2 * PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof *paths, "%s/%s", scene, name);
    return path;
}

static inline void scene_folder(const char *name)
{
    ck_assert_int_eq(mkdir(scene_path(name), 0755), 0);
}

static inline void scene_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(scene_path(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Where libtool has put the test module `name` ("fake"). */
static inline const char *module_path(const char *name)
{
    static char path[PATH_MAX];
    const char *top = getenv("TFM_TEST_BUILDDIR");
    snprintf(path, sizeof path, "%s/tests/plugins/.libs/%s.so", top && *top ? top : ".", name);
    return path;
}

/* 1 if the modules were built (they are not with --disable-shared). */
static inline int have_modules(void)
{
    return access(module_path("fake"), R_OK) == 0;
}

/* All bytes of a file; free() them. */
static inline char *file_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    ck_assert_msg(file != NULL, "%s is not there", path);
    ck_assert_int_eq(fstat(fileno(file), &info), 0);
    *size = (size_t)info.st_size;
    char *bytes = malloc(*size);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline char *module_bytes(const char *name, size_t *size)
{
    return file_bytes(module_path(name), size);
}

/* Puts a copy of the module under a name in the scene. */
static inline void scene_module(const char *name, const char *module)
{
    size_t size;
    char *bytes = module_bytes(module, &size);
    scene_file(name, bytes, size);
    free(bytes);
}

#endif
