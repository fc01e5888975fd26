/* SPDX-License-Identifier: MIT
 * The way to a backend's facts, and to the places where backends are looked for. */
#include <tfm/doctor.h>

#include "lib/core/env.h"
#include "lib/core/search.h"
#include "tests/core/runner.h"
#include "tests/plugins/stub.h"

#include <tfm/device.h>

static struct tfm_registry *registry;
static struct tfm_error err;
static struct tfm_doctor doctor;
static char told[400];

static void add(const char *text)
{
    const size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s|", text);
}

static void sink_item(void *context, const char *list)
{
    add(context);
    add(list);
}

static void machine(const struct tfm_host *host, const struct tfm_doctor_sink *sink)
{
    ck_assert_uint_eq(host->struct_size, sizeof *host);
    sink->item(sink->context, "machine");
}

static void opened(void *device, const struct tfm_doctor_sink *sink)
{
    ck_assert_ptr_nonnull(device);
    sink->item(sink->context, "device");
}

static const void *extension(void *device, const char *name)
{
    (void)device;
    return strcmp(name, TFM_DOCTOR) == 0 ? &doctor : NULL;
}

static void setup(void)
{
    unsetenv("TFM_PLUGIN_PATH");
    tfm__search_package_set("");
    told[0] = '\0';
    doctor = (struct tfm_doctor){sizeof doctor, machine, opened};
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &registry, &err), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_registry_destroy(registry);
}

/* Catches: a table that ends before a member which is called all the same; a backend without facts asked for
 * them; facts of another row; a device asked through a handle that is not its own. */
START_TEST(facts_come_from_those_who_have_them)
{
    const struct tfm_doctor_sink sink = {
        .struct_size = sizeof sink, .context = "mine", .item = sink_item};
    struct tfm_backend table = stub_table("talker");
    struct tfm_device *device[1];
    size_t n;

    table.extension = extension;
    ck_assert_int_eq(tfm_registry_add(registry, &table, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_devices_open(registry, "talker", 1, device, 1, &n, &err), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_device_index(device[0]), 0);
    ck_assert_int_eq(tfm_registry_doctor(registry, 0, &sink), 0); /* the reference */
    ck_assert_int_eq(tfm_registry_doctor(registry, 2, &sink), 0);
    ck_assert_int_eq(tfm_registry_doctor(registry, 1, &sink), 1);
    ck_assert_int_eq(tfm_device_doctor(device[0], &sink), 1);
    ck_assert_str_eq(told, "mine|machine|mine|device|");

    doctor.struct_size = offsetof(struct tfm_doctor, device);
    ck_assert_int_eq(tfm_registry_doctor(registry, 1, &sink), 1);
    ck_assert_int_eq(tfm_device_doctor(device[0], &sink), 0);
    doctor.struct_size = sizeof doctor.struct_size;
    ck_assert_int_eq(tfm_registry_doctor(registry, 1, &sink), 0);
    doctor = (struct tfm_doctor){sizeof doctor, NULL, NULL};
    ck_assert_int_eq(tfm_registry_doctor(registry, 1, &sink), 0);
    ck_assert_int_eq(tfm_device_doctor(device[0], &sink), 0);
    ck_assert_str_eq(told, "mine|machine|mine|device|mine|machine|");
    tfm_device_release(device[0]);
}
END_TEST

static void place(void *context, const char *source, const char *path)
{
    (void)context;
    add(source);
    add(path);
}

/* Catches: a place that is searched and not told, or the other way round; the environment under setuid. */
START_TEST(places_are_told_in_their_order)
{
    setenv("TFM_PLUGIN_PATH", ":/a:b::/c:", 1);
    setenv("TFM_PLUGIN_TRIAL_HELPER", "/h", 1);
    tfm__search_package_set("/p");
    ck_assert_int_eq(tfm_registry_places(place, NULL), TFM_STATUS_OK);
    ck_assert_str_eq(
        told, "TFM_PLUGIN_PATH|/a|TFM_PLUGIN_PATH|b|TFM_PLUGIN_PATH|/c|package|/p|helper|/h|");
    told[0] = '\0';
    tfm__env_secure_set(1);
    ck_assert_int_eq(tfm_registry_places(place, NULL), TFM_STATUS_OK);
    tfm__env_secure_set(-1);
    ck_assert_ptr_null(strstr(told, "/a"));
    ck_assert_ptr_null(strstr(told, "|/h|"));
    told[0] = '\0';
    tfm__search_package_set(NULL);
    unsetenv("TFM_PLUGIN_PATH");
    setenv("TFM_PACKAGE_BACKENDS", "/x:/y", 1);
    ck_assert_int_eq(tfm_registry_places(place, NULL), TFM_STATUS_OK);
    ck_assert_str_eq(told, "package|/x|package|/y|helper|/h|");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("doctor");
    TCase *tcase = tests_case(suite, "doctor");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, facts_come_from_those_who_have_them);
    tcase_add_test(tcase, places_are_told_in_their_order);
    return tests_run(suite);
}
