/* SPDX-License-Identifier: MIT
 * The registry's search path and what it says about files: each bad one is a row with its reason,
 * and the reference works beside all of them. */
#include <dlfcn.h>
#include <link.h>

#include <tfm/device.h>

#include "lib/core/env.h"
#include "tests/core/runner.h"
#include "tests/core/scene.h"
#include "tests/plugins/fake.h"
#include "tests/skip.h"

static struct tfm_registry *registry;
static char warned[8000]; /* what was said at WARN or above, one line each */

static void sink(void *context, enum tfm_log_level level, const char *backend, const char *text)
{
    (void)context;
    const size_t used = strlen(warned);
    if (level <= TFM_LOG_WARN)
        snprintf(warned + used, sizeof warned - used, "%s: %s\n", backend, text);
}

static void create(const char *const *plugins, size_t n)
{
    struct tfm_error err;
    ck_assert_msg(tfm_registry_create(plugins, n, &registry, &err) == TFM_STATUS_OK, "%s",
                  err.text);
}

static void setup(void)
{
    scene_open();
    warned[0] = '\0';
    tfm_log_set(sink, NULL);
    registry = NULL;
}

static void teardown(void)
{
    tfm_registry_destroy(registry);
    scene_close();
}

/* The row of that name or, for "", of that file; NULL when there is none. */
static const struct tfm_backend_row *find(const char *name, const char *file)
{
    for (size_t i = 0; i < tfm_registry_count(registry); i++) {
        const struct tfm_backend_row *row = tfm_registry_row(registry, i);
        if (strcmp(row->name, name) == 0 && (!file || strcmp(row->file, file) == 0))
            return row;
    }
    return NULL;
}

static void expect_reference_works(void)
{
    struct tfm_device *device;
    struct tfm_error err;
    size_t n = 0;
    ck_assert_msg(tfm_devices_open(registry, "reference", 0, &device, 1, &n, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(tfm_device_backend(device), "reference");
    tfm_device_release(device);
}

static void expect_contains(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" does not contain \"%s\"", text, part);
}

/* ---- bad files ----------------------------------------------------------------------------------
 */

/* A half-copied module: dlopen would die of SIGBUS. */
static void make_truncated(const char *name)
{
    size_t size;
    char *bytes = module_bytes("fake", &size);
    scene_file(name, bytes, 4096 < size ? 4096 : size / 2);
    free(bytes);
}

/* A module that needs a library which is on no machine. */
static void make_dependent(const char *name)
{
    size_t size, hits = 0;
    char *bytes = module_bytes("fake", &size);
    for (size_t i = 0; i + 9 < size; i++) {
        if (memcmp(bytes + i, "libm.so.6", 10) == 0) {
            memcpy(bytes + i, "libQ.so.6", 10);
            hits++;
        }
    }
    ck_assert_uint_ge(hits, 1);
    scene_file(name, bytes, size);
    free(bytes);
}

static void make_short_text(const char *name)
{
    scene_file(name, "no library\n", 11);
}

static void make_text(const char *name)
{
    char text[5000];
    memset(text, 'x', sizeof text);
    scene_file(name, text, sizeof text);
}

static void make_empty(const char *name)
{
    scene_file(name, "", 0);
}

/* A library that is no backend, wherever this system keeps it. */
static void make_libm(const char *name)
{
    struct link_map *map = NULL;
    void *libm = dlopen("libm.so.6", RTLD_NOW);
    ck_assert_ptr_nonnull(libm);
    ck_assert_int_eq(dlinfo(libm, RTLD_DI_LINKMAP, &map), 0);
    ck_assert_int_eq(symlink(map->l_name, scene_path(name)), 0);
    dlclose(libm);
}

static void make_folder(const char *name)
{
    scene_folder(name);
}

static void make_fifo(const char *name)
{
    ck_assert_int_eq(mkfifo(scene_path(name), 0600), 0);
}

static void make_dangling(const char *name)
{
    ck_assert_int_eq(symlink("nothing", scene_path(name)), 0);
}

static const struct bad {
    const char *what;
    const char *module; /* of the build tree, or NULL: */
    void (*make)(const char *name);
    enum tfm_status status;
    const char *name;   /* of the row */
    const char *reason; /* part of it */
} bad[] = {
    {"text", NULL, make_text, TFM_STATUS_PLUGIN, "", "invalid ELF header"},
    {"short_text", NULL, make_short_text, TFM_STATUS_PLUGIN, "", "file too short"},
    {"empty", NULL, make_empty, TFM_STATUS_PLUGIN, "", "file too short"},
    {"folder", NULL, make_folder, TFM_STATUS_PLUGIN, "", "not a regular file"},
    {"fifo", NULL, make_fifo, TFM_STATUS_PLUGIN, "", "not a regular file"},
    {"dangling", NULL, make_dangling, TFM_STATUS_PLUGIN, "", "No such file"},
    {"libm", NULL, make_libm, TFM_STATUS_PLUGIN, "", "no symbol tfm_backend_v1"},
    {"truncated", NULL, make_truncated, TFM_STATUS_PLUGIN, "", "truncated: 4096 bytes long"},
    {"dependent", NULL, make_dependent, TFM_STATUS_PLUGIN, "", "libQ.so.6"},
    {"undefined", "undefined", NULL, TFM_STATUS_PLUGIN, "", "tests_plugins_nowhere"},
    {"no_symbol", "no_symbol", NULL, TFM_STATUS_PLUGIN, "", "no symbol tfm_backend_v1"},
    {"wrong_major", "wrong_major", NULL, TFM_STATUS_PLUGIN, "",
     "built for backend ABI 7, this library has 1"},
    {"short_table", "short_table", NULL, TFM_STATUS_PLUGIN, "", "struct_size is 24"},
    {"cut_pointer", "cut_pointer", NULL, TFM_STATUS_PLUGIN, "bad", "neither \"run_node\" nor"},
    {"no_supports", "no_supports", NULL, TFM_STATUS_PLUGIN, "bad", "\"supports\" is NULL"},
    {"no_run", "no_run", NULL, TFM_STATUS_PLUGIN, "bad", "neither \"run_node\" nor \"compile\""},
    {"half_group", "half_group", NULL, TFM_STATUS_PLUGIN, "bad", "\"release\" is NULL"},
    {"bad_name", "bad_name", NULL, TFM_STATUS_PLUGIN, "", "invalid name \"Not,a:name\""},
    {"probe_says_no", "probe_says_no", NULL, TFM_STATUS_BACKEND, "probe_says_no",
     "the moon is in the wrong place"},
    {"probe_fails", "probe_fails", NULL, TFM_STATUS_BACKEND, "probe_fails",
     "driver call 42 failed and left two lines"},
};

enum { N_BAD = sizeof bad / sizeof *bad };

static void make_bad(const struct bad *item, char *name, size_t size)
{
    snprintf(name, size, "%s.so", item->what);
    if (item->module)
        scene_module(name, item->module);
    else
        item->make(name);
}

/* Catches: a crash, a hang, a file passed over without a reason, a reason that names another fault,
 * a bad file that takes the reference with it. Each file is found in a folder, as plugins mostly
 * are. */
START_TEST(a_bad_file_is_a_row_with_its_reason)
{
    const struct bad *item = &bad[_i];
    char name[64];

    make_bad(item, name, sizeof name);
    setenv("TFM_PLUGIN_PATH", scene, 1);
    create(NULL, 0);
    ck_assert_uint_eq(tfm_registry_count(registry), 2);
    const struct tfm_backend_row *row = tfm_registry_row(registry, 1);
    ck_assert_msg(row->status == item->status, "%s: status %s", row->reason,
                  tfm_status_name(row->status));
    expect_contains(row->reason, item->reason);
    ck_assert_ptr_null(strchr(row->reason, '\n'));
    ck_assert_str_eq(row->name, item->name);
    ck_assert_str_eq(row->file, scene_path(name));
    ck_assert_int_eq(row->probe != NULL, row->status != TFM_STATUS_PLUGIN);
    expect_reference_works();
}
END_TEST

/* Catches (A34): a file that the user pointed at, skipped without a word, or with one at each call. */
START_TEST(a_skipped_file_is_told_once)
{
    char line[3 * PATH_MAX];

    make_text("text.so");
    setenv("TFM_PLUGIN_PATH", scene, 1);
    create(NULL, 0);
    ck_assert_str_eq(warned, "");
    expect_reference_works();
    expect_reference_works();
    snprintf(line, sizeof line, "registry: skipped %s: dlopen: invalid ELF header\n",
             scene_path("text.so"));
    ck_assert_str_eq(warned, line);
}
END_TEST

/* Catches: a backend asked for by name that is quietly replaced, or an error that does not say why
 * (the file is named like the backend when it has no name to give). */
START_TEST(a_bad_file_asked_for_by_name_is_an_error_with_its_reason)
{
    const struct bad *item = &bad[_i];
    struct tfm_device *device = NULL;
    struct tfm_error err;
    char name[64];
    size_t n = 77;

    make_bad(item, name, sizeof name);
    setenv("TFM_PLUGIN_PATH", scene, 1);
    setenv("TFM_BACKEND", item->name[0] ? item->name : item->what, 1);
    create(NULL, 0);
    const enum tfm_status status = tfm_devices_open(registry, NULL, 0, &device, 1, &n, &err);
    ck_assert_msg(status == item->status, "%s: %s", tfm_status_name(status), err.text);
    ck_assert_int_eq(err.status, status);
    expect_contains(err.text, "TFM_BACKEND");
    expect_contains(err.text, item->reason);
    ck_assert_ptr_null(device);
    ck_assert_uint_eq(n, 77);
    ck_assert_str_eq(warned, ""); /* the error says it all */
}
END_TEST

/* Catches: caps that promise a slot which is not there, found only when it is called. */
START_TEST(false_caps_are_an_error_at_open)
{
    struct tfm_device *devices[2];
    struct tfm_error err;
    size_t n;

    setenv("TFM_PLUGIN_PATH", module_path("false_caps"), 1);
    create(NULL, 0);
    ck_assert_int_eq(tfm_devices_open(registry, "false_caps", 0, devices, 2, &n, &err),
                     TFM_STATUS_BACKEND);
    expect_contains(err.text, "its table has no compile");
}
END_TEST

/* Catches: all bad ones at once, one of them ending the search before the good one is reached. */
START_TEST(a_good_one_is_found_among_all_the_bad_ones)
{
    char name[64];

    for (size_t i = 0; i < N_BAD; i++)
        make_bad(&bad[i], name, sizeof name);
    scene_module("zzz.so", "fake");
    setenv("TFM_PLUGIN_PATH", scene, 1);
    create(NULL, 0);
    ck_assert_uint_eq(tfm_registry_count(registry), N_BAD + 2);
    const struct tfm_backend_row *row = find("fake", NULL);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->status, TFM_STATUS_OK);
    ck_assert_str_eq(row->version, "1.0");
    ck_assert_str_eq(row->reason, "");
    ck_assert_uint_eq(row->probe->n_devices, 1);
    ck_assert_str_eq(row->probe->devices[0].name, "fake device");
    expect_reference_works();
}
END_TEST

/* ---- search -------------------------------------------------------------------------------------
 */

/* Catches: other files of a folder loaded, an order that depends on the file system. */
START_TEST(of_a_folder_the_so_files_count_sorted_by_name)
{
    static const char *const others[] = {"README", "old.so.1", "x.so.bak", "so", ".hidden.so"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        make_text(others[i]);
    make_text("b.so");
    make_text("a.so");
    make_text("C.so");
    setenv("TFM_PLUGIN_PATH", scene, 1);
    create(NULL, 0);
    ck_assert_uint_eq(tfm_registry_count(registry), 4);
    ck_assert_str_eq(tfm_registry_row(registry, 0)->file, "built in");
    ck_assert_str_eq(tfm_registry_row(registry, 1)->file, scene_path("C.so"));
    ck_assert_str_eq(tfm_registry_row(registry, 2)->file, scene_path("a.so"));
    ck_assert_str_eq(tfm_registry_row(registry, 3)->file, scene_path("b.so"));
    ck_assert_ptr_null(tfm_registry_row(registry, 4));
}
END_TEST

/* Catches: a folder without plugins, an empty list or no list taken for a fault. */
START_TEST(nothing_to_find_is_no_fault)
{
    char around[PATH_MAX + 2];
    snprintf(around, sizeof around, ":%s:", scene);
    const char *const lists[] = {NULL, "", ":", "::", scene, around};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        unsetenv("TFM_PLUGIN_PATH");
        if (lists[i])
            setenv("TFM_PLUGIN_PATH", lists[i], 1);
        create(NULL, 0);
        ck_assert_uint_eq(tfm_registry_count(registry), 1);
        expect_reference_works();
        tfm_registry_destroy(registry);
        registry = NULL;
    }
}
END_TEST

/* Catches: a misspelt path passed over in silence. */
START_TEST(a_path_to_nothing_is_a_row)
{
    const char *const plugins[] = {"", "no/such/file.so"};

    setenv("TFM_PLUGIN_PATH", scene_path("nothing"), 1);
    create(plugins, 2);
    ck_assert_uint_eq(tfm_registry_count(registry), 4);
    for (size_t i = 1; i < 4; i++) {
        ck_assert_int_eq(tfm_registry_row(registry, i)->status, TFM_STATUS_PLUGIN);
        expect_contains(tfm_registry_row(registry, i)->reason, "No such file");
    }
    ck_assert_str_eq(tfm_registry_row(registry, 2)->file, "no/such/file.so");
    ck_assert_str_eq(tfm_registry_row(registry, 3)->file, scene_path("nothing"));
}
END_TEST

/* Catches: a later file that takes the name of an earlier one, or vanishes without a word; an order
 * other than argument, TFM_PLUGIN_PATH. */
START_TEST(the_first_of_a_name_wins_and_the_other_is_listed)
{
    char first[PATH_MAX];
    snprintf(first, sizeof first, "%s", module_path("fake_again"));
    const char *const plugins[] = {first};

    scene_module("fake.so", "fake");
    setenv("TFM_PLUGIN_PATH", scene, 1);
    create(plugins, 1);
    ck_assert_uint_eq(tfm_registry_count(registry), 3);
    ck_assert_int_eq(tfm_registry_row(registry, 1)->status, TFM_STATUS_OK);
    ck_assert_str_eq(tfm_registry_row(registry, 1)->file, first);
    const struct tfm_backend_row *second = tfm_registry_row(registry, 2);
    ck_assert_int_eq(second->status, TFM_STATUS_PLUGIN);
    ck_assert_str_eq(second->name, "fake");
    ck_assert_str_eq(second->file, scene_path("fake.so"));
    expect_contains(second->reason, "already taken by");
    expect_contains(second->reason, first);
    ck_assert_str_eq(second->shadowed_by, first);
    ck_assert_ptr_null(tfm_registry_row(registry, 1)->shadowed_by);
    ck_assert_str_eq(tfm_registry_row(registry, 1)->license, "MIT");
    ck_assert_uint_eq(tfm_registry_row(registry, 1)->abi_minor, TFM_BACKEND_ABI_MINOR);
}
END_TEST

/* Catches: one file listed twice because its folder and the file itself were named, or a link. */
START_TEST(a_file_found_by_two_ways_is_listed_once)
{
    char list[4 * PATH_MAX];

    scene_module("fake.so", "fake");
    ck_assert_int_eq(symlink("fake.so", scene_path("link.so")), 0);
    snprintf(list, sizeof list, "%s:%s/fake.so:%s", scene, scene, scene);
    setenv("TFM_PLUGIN_PATH", list, 1);
    create(NULL, 0);
    ck_assert_uint_eq(tfm_registry_count(registry), 2);
}
END_TEST

/* Catches (A35): an installed backend that is not found, is found before the user's own, or has to do with
 * the environment. */
START_TEST(the_package_folder_comes_last)
{
    scene_folder("own");
    scene_folder("package");
    scene_module("own/a.so", "fake");
    scene_module("package/b.so", "fake");
    scene_module("package/c.so", "false_caps");
    tfm__search_package_set(scene_path("package"));
    setenv("TFM_PLUGIN_PATH", scene_path("own"), 1);
    create(NULL, 0);
    ck_assert_uint_eq(tfm_registry_count(registry), 4);
    ck_assert_str_eq(find("fake", NULL)->file, scene_path("own/a.so"));
    ck_assert_int_eq(find("fake", scene_path("package/b.so"))->status, TFM_STATUS_PLUGIN);
    ck_assert_int_eq(find("false_caps", NULL)->status, TFM_STATUS_OK);
    tfm_registry_destroy(registry);

    tfm__env_secure_set(1);
    create(NULL, 0);
    ck_assert_uint_eq(tfm_registry_count(registry), 3);
    ck_assert_str_eq(find("fake", NULL)->file, scene_path("package/b.so"));
}
END_TEST

/* Catches (A35): an installation that works only where it was configured for. The library is loaded from a
 * folder of its own, as after `make install DESTDIR=`. */
START_TEST(the_folder_beside_a_moved_library_is_found)
{
    enum tfm_status (*registry_create)(const char *const *, size_t, struct tfm_registry **,
                                       struct tfm_error *);
    const struct tfm_backend_row *(*registry_row)(struct tfm_registry *, size_t);
    void (*registry_destroy)(struct tfm_registry *);
    const char *top = getenv("TFM_TEST_BUILDDIR");
    struct tfm_registry *moved;
    char library[PATH_MAX];
    size_t size;

    snprintf(library, sizeof library, "%s/.libs/libtfm.so", top && *top ? top : ".");
    char *bytes = file_bytes(library, &size);
    scene_folder("lib");
    scene_folder("lib/tfm");
    scene_folder("lib/tfm/backends-1");
    scene_file("lib/libtfm.so", bytes, size);
    free(bytes);
    scene_module("lib/tfm/backends-1/fake.so", "fake");

    void *handle = dlopen(scene_path("lib/libtfm.so"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    *(void **)&registry_create = dlsym(handle, "tfm_registry_create");
    *(void **)&registry_row = dlsym(handle, "tfm_registry_row");
    *(void **)&registry_destroy = dlsym(handle, "tfm_registry_destroy");
    ck_assert(registry_create && registry_row && registry_destroy);
    ck_assert_int_eq(registry_create(NULL, 0, &moved, NULL), TFM_STATUS_OK);
    const struct tfm_backend_row *row = registry_row(moved, 1);
    ck_assert_ptr_nonnull(row);
    ck_assert_str_eq(row->name, "fake");
    ck_assert_str_eq(row->file, scene_path("lib/tfm/backends-1/fake.so"));
    registry_destroy(moved);
}
END_TEST

/* Catches (A35): a path that moves with the current folder after the registry was made. */
START_TEST(a_relative_entry_is_resolved_once)
{
    struct tfm_device *device;
    struct tfm_error err;
    size_t n;

    scene_folder("sub");
    scene_module("sub/fake.so", "fake");
    ck_assert_int_eq(chdir(scene), 0);
    setenv("TFM_PLUGIN_PATH", "sub", 1);
    create(NULL, 0);
    ck_assert_int_eq(chdir("/"), 0);
    const struct tfm_backend_row *row = find("fake", NULL);
    ck_assert_ptr_nonnull(row);
    ck_assert_str_eq(row->file, scene_path("sub/fake.so"));
    ck_assert_msg(tfm_devices_open(registry, "fake", 1, &device, 1, &n, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    tfm_device_release(device);
}
END_TEST

/* Catches (A35, CWD decoy): a library in the current folder that is loaded because it lies there; a
 * bare name that dlopen looks for in the system's folders. */
START_TEST(the_current_folder_is_never_searched)
{
    static const char *const lists[] = {NULL, "", ":"};
    const char *const plugins[] = {"libm.so.6"};

    scene_module("fake.so", "fake");
    scene_module("opencl.so", "fake");
    ck_assert_int_eq(chdir(scene), 0);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        unsetenv("TFM_PLUGIN_PATH");
        if (lists[i])
            setenv("TFM_PLUGIN_PATH", lists[i], 1);
        create(NULL, 0);
        ck_assert_ptr_null(find("fake", NULL));
        tfm_registry_destroy(registry);
        registry = NULL;
    }
    unsetenv("TFM_PLUGIN_PATH");
    create(plugins, 1);
    ck_assert_uint_eq(tfm_registry_count(registry), 2);
    expect_contains(tfm_registry_row(registry, 1)->reason, "cannot be opened: No such file");
}
END_TEST

/* Catches: an environment that somebody with fewer rights has set, obeyed under setuid. */
START_TEST(the_environment_is_ignored_under_setuid)
{
    struct tfm_device *devices[2];
    struct tfm_error err;
    size_t n;

    setenv("TFM_PLUGIN_PATH", module_path("fake"), 1);
    setenv("TFM_BACKEND", "nobody", 1);
    setenv("TFM_STRICT", "1", 1);
    tfm__env_secure_set(1);
    create(NULL, 0);
    ck_assert_ptr_null(find("fake", NULL));
    ck_assert_msg(tfm_devices_open(registry, NULL, -1, devices, 2, &n, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_uint_eq(n, 1);
    tfm_device_release(devices[0]);
    tfm_registry_destroy(registry);

    /* The same environment counts for everybody else. */
    tfm__env_secure_set(0);
    create(NULL, 0);
    ck_assert_ptr_nonnull(find("fake", NULL));
    ck_assert_int_eq(tfm_devices_open(registry, NULL, -1, devices, 2, &n, &err),
                     TFM_STATUS_NOT_FOUND);
}
END_TEST

/* Catches (A44): a module or a table that goes with the registry while a device is open. */
START_TEST(an_open_device_outlives_its_registry)
{
    struct tfm_device *devices[2];
    struct tfm_error err;
    size_t n;

    setenv("TFM_PLUGIN_PATH", module_path("fake"), 1);
    create(NULL, 0);
    ck_assert_msg(tfm_devices_open(registry, "fake", 0, devices, 2, &n, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    tfm_registry_destroy(registry);
    registry = NULL;
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(tfm_device_backend(devices[0]), "fake");
    ck_assert_str_eq(tfm_device_name(devices[0]), "fake device");
    ck_assert_str_eq(tfm_device_backend(devices[1]), "reference");
    const struct fake_counters *counters = tfm_device_extension(devices[0], FAKE_COUNTERS);
    ck_assert_ptr_nonnull(counters);
    ck_assert_uint_eq(counters->nodes, 0);
    ck_assert_ptr_null(tfm_device_extension(devices[0], "fake.counters-2"));
    for (size_t i = 0; i < n; i++)
        tfm_device_release(devices[i]);
}
END_TEST

int main(void)
{
    if (!have_modules())
        return tests_skip("the test modules are not built (--disable-shared)");

    Suite *suite = suite_create("registry");
    TCase *tcase = tests_case(suite, "files");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_bad_file_is_a_row_with_its_reason, 0, N_BAD);
    tcase_add_loop_test(tcase, a_bad_file_asked_for_by_name_is_an_error_with_its_reason, 0, N_BAD);
    tcase_add_test(tcase, a_skipped_file_is_told_once);
    tcase_add_test(tcase, false_caps_are_an_error_at_open);
    tcase_add_test(tcase, a_good_one_is_found_among_all_the_bad_ones);
    tcase_add_test(tcase, of_a_folder_the_so_files_count_sorted_by_name);
    tcase_add_test(tcase, nothing_to_find_is_no_fault);
    tcase_add_test(tcase, a_path_to_nothing_is_a_row);
    tcase_add_test(tcase, the_first_of_a_name_wins_and_the_other_is_listed);
    tcase_add_test(tcase, a_file_found_by_two_ways_is_listed_once);
    tcase_add_test(tcase, the_package_folder_comes_last);
    tcase_add_test(tcase, the_folder_beside_a_moved_library_is_found);
    tcase_add_test(tcase, a_relative_entry_is_resolved_once);
    tcase_add_test(tcase, the_current_folder_is_never_searched);
    tcase_add_test(tcase, the_environment_is_ignored_under_setuid);
    tcase_add_test(tcase, an_open_device_outlives_its_registry);
    return tests_run(suite);
}
