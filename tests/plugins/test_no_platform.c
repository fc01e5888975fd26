/* SPDX-License-Identifier: MIT
 * A machine with the opencl module and no OpenCL platform (case A42): no crash, the reference works, and
 * who asks for opencl by name learns why there is none. */
#include <strings.h>

#include <tfm/device.h>

#include "tests/core/runner.h"
#include "tests/core/scene.h"
#include "tests/skip.h"

static struct tfm_registry *registry;
static unsigned warnings;
static struct tfm_error err;

static const char *opencl_path(void)
{
    static char path[PATH_MAX];
    const char *top = getenv("TFM_TEST_BUILDDIR");
    snprintf(path, sizeof path, "%s/backends/opencl/.libs/opencl.so", top && *top ? top : ".");
    return path;
}

static void sink(void *context, enum tfm_log_level level, const char *backend, const char *text)
{
    (void)context, (void)text;
    warnings += level <= TFM_LOG_WARN && strcmp(backend, "opencl") == 0;
}

static void setup(void)
{
    scene_open();
    /* The ICD loader reads it when it is first asked for platforms, which is after this. */
    setenv("OCL_ICD_VENDORS", scene_path("nonexistent"), 1);
    setenv("TFM_PLUGIN_PATH", opencl_path(), 1);
    warnings = 0;
    tfm_log_set(sink, NULL);
    ck_assert_msg(tfm_registry_create(NULL, 0, &registry, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void teardown(void)
{
    tfm_registry_destroy(registry);
    scene_close();
}

static void expect_reference(const char *spec)
{
    struct tfm_device *devices[2];
    size_t n;

    ck_assert_msg(tfm_devices_open(registry, spec, 0, devices, 2, &n, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(tfm_device_backend(devices[0]), "reference");
    tfm_device_release(devices[0]);
}

static int names_platform(const char *text)
{
    for (; *text; text++) {
        if (strncasecmp(text, "platform", 8) == 0)
            return 1;
    }
    return 0;
}

/* Catches: "no platform" treated as fatal, a fall to the reference in silence. */
START_TEST(auto_and_unset_take_the_reference)
{
    expect_reference("auto");
    expect_reference(NULL);
    ck_assert_uint_eq(warnings, 1);
}
END_TEST

/* Catches: OpenCL looked for although nobody asked. */
START_TEST(the_reference_works_without_a_word)
{
    expect_reference("reference");
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* Catches: another device in its place, or an error that does not say what is missing. */
START_TEST(opencl_by_name_is_an_error_that_says_why)
{
    struct tfm_device *device = NULL;
    size_t n;

    ck_assert_int_eq(tfm_devices_open(registry, "opencl", 0, &device, 1, &n, &err),
                     TFM_STATUS_BACKEND);
    ck_assert_msg(names_platform(err.text), "%s", err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    ck_assert_ptr_null(device);
    const struct tfm_backend_row *row = tfm_registry_row(registry, 1);
    ck_assert_str_eq(row->name, "opencl");
    ck_assert_int_eq(row->status, TFM_STATUS_BACKEND);
    ck_assert_msg(names_platform(row->reason), "%s", row->reason);
}
END_TEST

int main(void)
{
    if (access(opencl_path(), R_OK) != 0)
        return tests_skip("the opencl module is not built (--without-opencl)");

    Suite *suite = suite_create("no_platform");
    TCase *tcase = tests_case(suite, "opencl");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, auto_and_unset_take_the_reference);
    tcase_add_test(tcase, the_reference_works_without_a_word);
    tcase_add_test(tcase, opencl_by_name_is_an_error_that_says_why);
    return tests_run(suite);
}
