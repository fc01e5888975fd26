/* SPDX-License-Identifier: MIT
 * The check of a backend's table: every hole is found before anything is called through it. */
#include <string.h>

#include "lib/core/plugin.h"
#include "tests/core/runner.h"
#include "tests/plugins/stub.h"

static struct tfm_backend complete(void)
{
    struct tfm_backend table = stub_table("whole");
    table.map = stub_map;
    table.unmap = stub_unmap;
    table.compile = stub_compile;
    table.release = stub_release;
    table.exec_open = stub_exec_open;
    table.exec_run = stub_exec_run;
    table.exec_close = stub_exec_close;
    return table;
}

/* What happens when one member of a table that has everything is NULL. */
static const struct hole {
    const char *member;
    size_t offset;
    const char *reason; /* part of it; NULL = accepted */
} holes[] = {
#define HOLE(member, reason)                                  \
    {                                                         \
#member, offsetof(struct tfm_backend, member), reason \
    }
    HOLE(name, "\"name\" is NULL"),
    HOLE(version, "\"version\" is NULL"),
    HOLE(license, "\"license\" is NULL"),
    HOLE(probe, "\"probe\" is NULL"),
    HOLE(open, "\"open\" is NULL"),
    HOLE(close, "\"close\" is NULL"),
    HOLE(caps, "\"caps\" is NULL"),
    HOLE(alloc, "\"alloc\" is NULL"),
    HOLE(free, "\"free\" is NULL"),
    HOLE(upload, "\"upload\" is NULL"),
    HOLE(download, "\"download\" is NULL"),
    HOLE(supports, "\"supports\" is NULL"),
    HOLE(map, "\"map\" is NULL: map and unmap come together"),
    HOLE(unmap, "\"unmap\" is NULL: map and unmap come together"),
    HOLE(compile, "\"compile\" is NULL: compile, release"),
    HOLE(release, "\"release\" is NULL: compile, release"),
    HOLE(exec_open, "\"exec_open\" is NULL: compile, release"),
    HOLE(exec_run, "\"exec_run\" is NULL: compile, release"),
    HOLE(exec_close, "\"exec_close\" is NULL: compile, release"),
    HOLE(run_node, NULL),
    HOLE(copy, NULL),
    HOLE(sync, NULL),
    HOLE(extension, NULL),
};

/* Catches: a member that is called although it may be NULL; an optional one that is demanded; a reason
 * that names another. */
START_TEST(a_hole_is_found_and_named)
{
    const struct hole *hole = &holes[_i];
    struct tfm_backend table = complete(), copy;
    struct tfm_error err = {0};

    memset((unsigned char *)&table + hole->offset, 0, sizeof(void *));
    const enum tfm_status status = tfm__plugin_check(&table, &copy, &err);
    if (!hole->reason) {
        ck_assert_msg(status == TFM_STATUS_OK, "%s: %s", hole->member, err.text);
        ck_assert_mem_eq(&copy, &table, sizeof table);
        return;
    }
    ck_assert_msg(status == TFM_STATUS_PLUGIN, "%s: accepted", hole->member);
    ck_assert_msg(strstr(err.text, hole->reason) != NULL, "%s: %s", hole->member, err.text);
    ck_assert(copy.probe == NULL);
}
END_TEST

/* Catches: a backend that can run nothing; the simple way alone not accepted. */
START_TEST(one_of_the_two_ways_is_enough_and_needed)
{
    struct tfm_backend simple = stub_table("simple"), copy;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm__plugin_check(&simple, &copy, &err), TFM_STATUS_OK);
    simple.run_node = NULL;
    ck_assert_int_eq(tfm__plugin_check(&simple, &copy, &err), TFM_STATUS_PLUGIN);
    ck_assert_ptr_nonnull(strstr(err.text, "neither \"run_node\" nor \"compile\""));
}
END_TEST

/* Catches: a member read although the plugin's table ends before it (here it is garbage), a half pointer
 * taken for one, a table of a younger minor refused or copied past its known end. */
START_TEST(members_past_struct_size_are_null)
{
    const size_t run_node_end = offsetof(struct tfm_backend, compile);
    struct {
        struct tfm_backend table;
        unsigned char younger[64];
    } plugin;
    struct tfm_backend copy;
    struct tfm_error err = {0};

    memset(&plugin, 0xAA, sizeof plugin);
    ck_assert_uint_eq(plugin.younger[0], 0xAA);
    struct tfm_backend simple = stub_table("old");
    memcpy(&plugin.table, &simple, run_node_end);
    for (size_t cut = 0; cut < sizeof(void *); cut++) {
        plugin.table.struct_size = run_node_end + cut;
        ck_assert_msg(tfm__plugin_check(&plugin.table, &copy, &err) == TFM_STATUS_OK, "%s",
                      err.text);
        ck_assert(copy.run_node == stub_run_node);
        ck_assert_msg(copy.compile == NULL && copy.release == NULL && copy.extension == NULL,
                      "cut %zu", cut);
    }
    plugin.table.struct_size = run_node_end - 1;
    ck_assert_int_eq(tfm__plugin_check(&plugin.table, &copy, &err), TFM_STATUS_PLUGIN);
    ck_assert_ptr_nonnull(strstr(err.text, "struct_size is"));

    plugin.table = complete();
    plugin.table.abi_minor = TFM_BACKEND_ABI_MINOR + 5;
    plugin.table.struct_size = sizeof plugin;
    tfm_error_clear(&err);
    ck_assert_msg(tfm__plugin_check(&plugin.table, &copy, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(copy.abi_minor, TFM_BACKEND_ABI_MINOR + 5);
}
END_TEST

/* Catches: anything but the first three members believed of another major: the rest is garbage here. */
START_TEST(another_major_is_refused_unread)
{
    struct tfm_backend table, copy;
    const uint32_t majors[] = {0, TFM_BACKEND_ABI_MAJOR + 1, 0xffffffffu};
    struct tfm_error err = {0};

    for (size_t i = 0; i < sizeof majors / sizeof *majors; i++) {
        memset(&table, 0xAA, sizeof table);
        table.abi_major = majors[i];
        tfm_error_clear(&err);
        ck_assert_int_eq(tfm__plugin_check(&table, &copy, &err), TFM_STATUS_PLUGIN);
        ck_assert_ptr_nonnull(strstr(err.text, "this library has 1"));
        ck_assert_ptr_null(copy.name);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plugin");
    TCase *tcase = tests_case(suite, "table");
    tcase_add_loop_test(tcase, a_hole_is_found_and_named, 0, (int)(sizeof holes / sizeof *holes));
    tcase_add_test(tcase, one_of_the_two_ways_is_enough_and_needed);
    tcase_add_test(tcase, members_past_struct_size_are_null);
    tcase_add_test(tcase, another_major_is_refused_unread);
    return tests_run(suite);
}
