/* SPDX-License-Identifier: MIT
 * tfm_devices_open over backends in memory: which devices a spec means, what happens when they cannot be
 * had, who is asked and when, and that an open device is shared. */
#include <pthread.h>
#include <stdlib.h>

#include <tfm/device.h>

#include "lib/core/device.h"
#include "lib/core/nearest.h"
#include "lib/core/search.h"
#include "tests/core/mock.h"
#include "tests/core/runner.h"

MOCK(fast) = {
    "fast", 1, 70, 3, {{"Alpha One", "Acme"}, {"Alpha Two", "Acme"}, {"alpha", "Other 4090"}},
    0,      0, 0,  0, 0};
MOCK(slow) = {"slow", 1, 20, 1, {{"turtle", "pond"}}, 0, 0, 0, 0, 0};
MOCK(broken) = {"broken", 1, 90, 1, {{"glass", ""}}, TFM_STATUS_DEVICE_LOST, 0, 0, 0, 0};
MOCK(shy) = {"shy", 1, -1, 1, {{"mouse", ""}}, 0, 0, 0, 0, 0};
MOCK(even) = {"even", 1, 0, 1, {{"mirror", ""}}, 0, 0, 0, 0, 0};
MOCK(absent) = {"absent", 0, 100, 0, {{NULL}}, 0, 0, 0, 0, 0};
MOCK(empty) = {"empty", 1, 95, 0, {{NULL}}, 0, 0, 0, 0, 0};

MOCK(half) = {.name = "half",
              .usable = 1,
              .score = 60,
              .n_devices = 3,
              .devices = {{"bare", ""}, {"plain", ""}, {"whole", ""}},
              .first = 2};

static struct tfm_registry *registry;
static char logged[4000]; /* what was said at WARN or above, one line each */

static void sink(void *context, enum tfm_log_level level, const char *backend, const char *text)
{
    (void)context;
    const size_t used = strlen(logged);
    if (level <= TFM_LOG_WARN)
        snprintf(logged + used, sizeof logged - used, "%s: %s\n", backend, text);
}

static void forget(struct mock *mock)
{
    mock->probed = mock->opened = mock->closed = 0;
}

static void setup(void)
{
    struct tfm_error err;
    forget(&fast);
    forget(&slow);
    forget(&broken);
    forget(&absent);
    forget(&empty);
    forget(&half);
    unsetenv("TFM_PLUGIN_PATH");
    unsetenv("TFM_BACKEND");
    unsetenv("TFM_STRICT");
    tfm__search_package_set("");
    logged[0] = '\0';
    tfm_log_set(sink, NULL);
    ck_assert_msg(tfm_registry_create(NULL, 0, &registry, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void teardown(void)
{
    tfm_registry_destroy(registry);
    tfm_log_set(NULL, NULL);
}

static void add(const struct tfm_backend *table)
{
    struct tfm_error err;
    ck_assert_msg(tfm_registry_add(registry, table, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void add_all(void)
{
    add(MOCK_TABLE(slow));
    add(MOCK_TABLE(fast));
    add(MOCK_TABLE(broken));
    add(MOCK_TABLE(absent));
    add(MOCK_TABLE(empty));
}

static void expect_contains(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" does not contain \"%s\"", text, part);
}

/* Opens, renders the list as "backend/device, ..." and closes again; for an error it checks that nothing
 * was handed out. */
static enum tfm_status open_list(const char *spec, int strict, char *list, size_t size,
                                 struct tfm_error *err)
{
    struct tfm_device *devices[8] = {NULL};
    size_t n = 99;
    const enum tfm_status status = tfm_devices_open(registry, spec, strict, devices, 8, &n, err);

    list[0] = '\0';
    ck_assert_int_eq(err->status, status);
    if (status != TFM_STATUS_OK) {
        ck_assert_uint_eq(n, 99);
        ck_assert_ptr_null(devices[0]);
        ck_assert_str_ne(err->text, "");
        ck_assert_ptr_null(strchr(err->text, '\n'));
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(list);
        const int is_reference = strcmp(tfm_device_backend(devices[i]), "reference") == 0;
        snprintf(list + used, size - used, "%s%s%s%s", i ? ", " : "",
                 tfm_device_backend(devices[i]), is_reference ? "" : "/",
                 is_reference ? "" : tfm_device_name(devices[i]));
        tfm_device_release(devices[i]);
    }
    return status;
}

/* ---- specs -------------------------------------------------------------------------------------- */

static const struct spec {
    const char *spec;
    int strict;
    enum tfm_status status;
    const char *expected; /* the list, or a part of the error */
} specs[] = {
    /* reference ends the list, strict takes it away, a place that the user gave it stays */
    {"slow", 0, TFM_STATUS_OK, "slow/turtle, reference"},
    {"slow", 1, TFM_STATUS_OK, "slow/turtle"},
    {"reference", 0, TFM_STATUS_OK, "reference"},
    {"reference", 1, TFM_STATUS_OK, "reference"},
    {"reference,slow", 0, TFM_STATUS_OK, "reference, slow/turtle"},
    {"slow,reference", 1, TFM_STATUS_OK, "slow/turtle, reference"},
    {" slow , fast ", 0, TFM_STATUS_OK, "slow/turtle, fast/Alpha One, reference"},
    {"slow,slow", 0, TFM_STATUS_OK, "slow/turtle, reference"},
    /* devices: index, part of a name in any case, a whole name before parts */
    {"fast", 0, TFM_STATUS_OK, "fast/Alpha One, reference"},
    {"fast:1", 0, TFM_STATUS_OK, "fast/Alpha Two, reference"},
    {"fast:two", 0, TFM_STATUS_OK, "fast/Alpha Two, reference"},
    {"fast:ALPHA", 0, TFM_STATUS_OK, "fast/alpha, reference"},
    {"fast:other", 0, TFM_STATUS_OK, "fast/alpha, reference"},
    {"fast:4090", 0, TFM_STATUS_OK, "fast/alpha, reference"},
    {"fast:2,fast:0,slow:pond", 1, TFM_STATUS_OK, "fast/alpha, fast/Alpha One, slow/turtle"},
    {"fast:acme", 0, TFM_STATUS_INVALID_ARGUMENT,
     "fits 2 devices of backend \"fast\": 0 = Alpha One (Acme), 1 = Alpha Two (Acme); give the"},
    {"fast:3", 0, TFM_STATUS_NOT_FOUND, "no device \"3\" (there are: 0 = Alpha One (Acme), 1 ="},
    {"fast:beta", 0, TFM_STATUS_NOT_FOUND, "2 = alpha (Other 4090))"},
    {"reference:1", 0, TFM_STATUS_NOT_FOUND, "backend \"reference\" has no device \"1\""},
    {"slow:-1", 0, TFM_STATUS_NOT_FOUND, "no device \"-1\""},
    {"slow:99999999999999999999999", 0, TFM_STATUS_NOT_FOUND, "no device \"9999"},
    /* a name that is there and cannot be used is never replaced, and nobody behind it is opened */
    {"absent", 0, TFM_STATUS_BACKEND, "\"absent\" cannot be used here: no absent in this machine"},
    {"absent,slow", 0, TFM_STATUS_BACKEND, "no absent in this machine"},
    {"empty", 0, TFM_STATUS_BACKEND, "the probe found no device"},
    {"broken", 0, TFM_STATUS_DEVICE_LOST, "backend: broken: device 0 (glass): broken is broken"},
    {"slow,broken", 0, TFM_STATUS_DEVICE_LOST, "broken is broken"},
    /* names that are not there */
    {"fats", 0, TFM_STATUS_NOT_FOUND, "no backend \"fats\"; did you mean \"fast\"?"},
    {"Slow", 0, TFM_STATUS_NOT_FOUND, "did you mean \"slow\"?"},
    {"referense", 0, TFM_STATUS_NOT_FOUND, "did you mean \"reference\"?"},
    {"aoto", 0, TFM_STATUS_NOT_FOUND, "did you mean \"auto\"?"},
    {"cuda", 0, TFM_STATUS_NOT_FOUND,
     "no backend \"cuda\" (there are: reference, slow, fast, broken, absent, empty, auto;"},
    {"help", 0, TFM_STATUS_NOT_FOUND, "(there are: reference, slow,"},
    /* malformed */
    {"", 0, TFM_STATUS_INVALID_ARGUMENT, "empty name"},
    {"slow,", 0, TFM_STATUS_INVALID_ARGUMENT, "empty name"},
    {",slow", 0, TFM_STATUS_INVALID_ARGUMENT, "empty name"},
    {"slow:", 0, TFM_STATUS_INVALID_ARGUMENT, "empty device"},
    {":0", 0, TFM_STATUS_INVALID_ARGUMENT, "empty name"},
    {"auto,slow", 0, TFM_STATUS_INVALID_ARGUMENT, "auto stands alone"},
    {"auto:0", 0, TFM_STATUS_INVALID_ARGUMENT, "auto stands alone"},
};

/* Catches: another device than the one that was named, a missing or misplaced reference, an error that
 * does not list the choices, a device left open after an error. */
START_TEST(a_spec_means_these_devices)
{
    const struct spec *item = &specs[_i];
    struct tfm_error err;
    char list[300];

    add_all();
    const enum tfm_status status = open_list(item->spec, item->strict, list, sizeof list, &err);
    ck_assert_msg(status == item->status, "%s: %s: %s", item->spec, tfm_status_name(status),
                  err.text);
    if (status == TFM_STATUS_OK)
        ck_assert_str_eq(list, item->expected);
    else
        expect_contains(err.text, item->expected);
    ck_assert_int_eq(slow.opened, slow.closed);
    ck_assert_int_eq(fast.opened, fast.closed);
}
END_TEST

/* Catches: the variable ignored, or obeyed against an explicit spec; an error that does not say where
 * the name came from. */
START_TEST(the_environment_stands_in_for_no_spec)
{
    struct tfm_error err;
    char list[300];

    add_all();
    setenv("TFM_BACKEND", "slow", 1);
    ck_assert_int_eq(open_list(NULL, 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "slow/turtle, reference");
    ck_assert_int_eq(open_list("fast:2", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "fast/alpha, reference");
    setenv("TFM_BACKEND", "sloww", 1);
    ck_assert_int_eq(open_list(NULL, 0, list, sizeof list, &err), TFM_STATUS_NOT_FOUND);
    expect_contains(err.text, "TFM_BACKEND: no backend \"sloww\"; did you mean \"slow\"?");
}
END_TEST

/* Catches: TFM_STRICT=0 or empty taken for yes, or asked although the caller has decided. */
START_TEST(strict_comes_from_the_environment_when_left_open)
{
    static const struct {
        const char *value;
        int strict;
    } values[] = {{NULL, 0}, {"", 0}, {"0", 0}, {"1", 1}, {"yes", 1}};
    struct tfm_error err;
    char list[300];

    add(MOCK_TABLE(slow));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        unsetenv("TFM_STRICT");
        if (values[i].value)
            setenv("TFM_STRICT", values[i].value, 1);
        ck_assert_int_eq(tfm__devices_strict_env(), values[i].strict);
        ck_assert_int_eq(open_list("slow", -1, list, sizeof list, &err), TFM_STATUS_OK);
        ck_assert_str_eq(list, values[i].strict ? "slow/turtle" : "slow/turtle, reference");
        ck_assert_int_eq(open_list("slow", 0, list, sizeof list, &err), TFM_STATUS_OK);
        ck_assert_str_eq(list, "slow/turtle, reference");
    }
}
END_TEST

/* Catches: a write past the caller's array; a device that stays open. */
START_TEST(a_list_that_does_not_fit_is_an_error)
{
    struct tfm_device *devices[2] = {NULL, NULL};
    struct tfm_error err;
    size_t n = 99;

    add_all();
    ck_assert_int_eq(tfm_devices_open(registry, "slow", 0, devices, 1, &n, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    expect_contains(err.text, "2 devices, the caller has room for 1");
    ck_assert_int_eq(tfm_devices_open(registry, "auto", 0, devices, 1, &n, NULL),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_null(devices[0]);
    ck_assert_uint_eq(n, 99);
    ck_assert_int_eq(fast.opened, fast.closed);
}
END_TEST

/* ---- auto --------------------------------------------------------------------------------------- */

/* Catches: the first instead of the best, an unusable one taken for its score, more than one backend
 * besides the reference, a broken one passed over in silence or told more than once. */
START_TEST(auto_takes_the_best_that_opens_and_says_so)
{
    struct tfm_error err;
    char list[300];

    add(MOCK_TABLE(slow));
    add(MOCK_TABLE(fast));
    add(MOCK_TABLE(absent));
    add(MOCK_TABLE(empty));
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "fast/Alpha One, reference");
    ck_assert_int_eq(open_list(NULL, 1, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "fast/Alpha One");
    ck_assert_str_eq(logged, "");

    add(MOCK_TABLE(broken));
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "fast/Alpha One, reference");
    ck_assert_str_eq(logged, "broken: broken: device 0 (glass): broken is broken; auto tries the "
                             "next\n");
}
END_TEST

/* Catches: an order that depends on who was found first where the scores decide; the reference before an
 * equal. */
START_TEST(auto_goes_by_score_with_the_reference_last_of_equals)
{
    struct tfm_error err;
    char list[300];

    add(MOCK_TABLE(shy));
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "reference");
    add(MOCK_TABLE(even));
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "even/mirror, reference");
    ck_assert_str_eq(logged, "");
}
END_TEST

/* Catches: no backend at all taken for an error; a fall to the slow reference in silence, or with a
 * warning at each call. */
START_TEST(auto_takes_the_reference_when_nothing_else_is_usable)
{
    struct tfm_error err;
    char list[300];

    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "reference");
    ck_assert_str_eq(logged, "");
    add(MOCK_TABLE(absent));
    for (int strict = 0; strict < 2; strict++) {
        ck_assert_int_eq(open_list("auto", strict, list, sizeof list, &err), TFM_STATUS_OK);
        ck_assert_str_eq(list, "reference");
    }
    ck_assert_str_eq(logged, "absent: cannot be used here: no absent in this machine; auto takes "
                             "reference\n");
}
END_TEST

/* Catches: silence when what is left runs parts of a model only, so that most of it is slow. */
START_TEST(auto_says_why_it_takes_a_small_one)
{
    struct tfm_error err;
    char list[300];

    add(MOCK_TABLE(absent));
    add(MOCK_TABLE(slow));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
        ck_assert_msg(strncmp(list, "slow/", 5) == 0, "%s", list);
    }
    ck_assert_str_eq(logged, "absent: cannot be used here: no absent in this machine; auto takes "
                             "slow\n");
}
END_TEST

/* Catches: TFM_STRICT that lets the reference stand in for a device that broke. */
START_TEST(auto_under_strict_does_not_fall_to_the_reference)
{
    struct tfm_error err;
    char list[300];

    add(MOCK_TABLE(broken));
    ck_assert_int_eq(open_list("auto", 1, list, sizeof list, &err), TFM_STATUS_DEVICE_LOST);
    expect_contains(err.text, "broken is broken");
    expect_contains(err.text, "TFM_STRICT");
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "reference");
}
END_TEST

/* Catches: the other devices of a backend given up with its first; one of them taken although it was named;
 * a rejected device tried again, or not to be had by its name any more; a reason that is lost; the reference
 * standing in for a rejected device under strict. */
START_TEST(auto_goes_from_device_to_device)
{
    const struct tfm_error why = {.status = TFM_STATUS_BUILD,
                                  .text = "its compiler refuses linear"};
    struct tfm_device *devices[2];
    struct tfm_error err;
    char list[300];
    size_t n = 0;

    add(MOCK_TABLE(half));
    add(MOCK_TABLE(slow));
    ck_assert_int_eq(open_list("half:0", 0, list, sizeof list, &err), TFM_STATUS_BUILD);
    expect_contains(err.text, "half 0 has no compiler");
    ck_assert_int_eq(open_list("half", 0, list, sizeof list, &err), TFM_STATUS_BUILD);
    ck_assert_int_eq(tfm_devices_open(registry, "auto", 0, devices, 2, &n, &err), TFM_STATUS_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(tfm_device_name(devices[0]), "whole");
    ck_assert_str_eq(logged,
                     "half: half: device 0 (bare): half 0 has no compiler; auto tries the next\n"
                     "half: half: device 1 (plain): half 1 has no compiler; auto tries the next\n");
    tfm_device_reject(devices[0], &why);
    tfm_device_release(devices[0]);
    tfm_device_release(devices[1]);
    ck_assert_int_eq(open_list("auto", 1, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "slow/turtle");
    ck_assert_int_eq(open_list("half:2", 1, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "half/whole");

    ck_assert_int_eq(tfm_devices_open(registry, "slow", 1, devices, 2, &n, &err), TFM_STATUS_OK);
    tfm_device_reject(devices[0], &why);
    tfm_device_release(devices[0]);
    ck_assert_int_eq(open_list("auto", 1, list, sizeof list, &err), TFM_STATUS_BUILD);
    expect_contains(err.text, "TFM_STRICT keeps reference from taking over");
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_str_eq(list, "reference");
    ck_assert_int_eq(half.opened, half.closed + 10); /* ten attempts were in vain */
}
END_TEST

/* Catches: a setting of the user that a backend does not know, hidden by another device that does not read
 * it. */
START_TEST(auto_does_not_pass_over_a_wrong_setting)
{
    struct tfm_error err;
    char list[300];

    broken.opens = TFM_STATUS_INVALID_ARGUMENT;
    add_all();
    ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_str_eq(err.text, "backend: auto: broken: device 0 (glass): broken is broken");
    ck_assert_str_eq(logged, "");
}
END_TEST

/* Catches: an order of its own, an unusable backend in it, a write past the room. */
START_TEST(the_order_of_auto_can_be_asked_for)
{
    size_t rows[9] = {77, 77, 77, 77, 77, 77, 77, 77, 77};
    static const char *const order[] = {"broken", "fast",      "half", "slow",
                                        "even",   "reference", "shy"};
    const size_t n = sizeof order / sizeof *order;

    add_all();
    add(MOCK_TABLE(shy));
    add(MOCK_TABLE(even));
    add(MOCK_TABLE(half));
    for (size_t max = 0; max <= n + 1; max++) {
        const size_t found = tfm_auto_order(registry, rows, max);
        ck_assert_uint_eq(found, max < n ? max : n);
        for (size_t i = 0; i < found; i++)
            ck_assert_str_eq(tfm_registry_row(registry, rows[i])->name, order[i]);
        ck_assert_uint_eq(rows[found], 77);
        for (size_t i = 0; i < found; i++)
            rows[i] = 77;
    }
}
END_TEST

/* ---- who is asked, and when --------------------------------------------------------------------- */

/* Catches: a probe before it is needed (after it, a process may not fork on PoCL), or more than one. */
START_TEST(a_backend_is_probed_when_somebody_asks_and_once)
{
    struct tfm_error err;
    char list[300];

    add_all();
    ck_assert_int_eq(open_list("reference", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_int_eq(open_list("slow", 0, list, sizeof list, &err), TFM_STATUS_OK);
    ck_assert_int_eq(open_list("nobody", 0, list, sizeof list, &err), TFM_STATUS_NOT_FOUND);
    ck_assert_int_eq(slow.probed, 1);
    ck_assert_int_eq(fast.probed + broken.probed + absent.probed + empty.probed, 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < tfm_registry_count(registry); i++)
            ck_assert_ptr_nonnull(tfm_registry_row(registry, i));
        ck_assert_int_eq(open_list("auto", 0, list, sizeof list, &err), TFM_STATUS_OK);
    }
    ck_assert_int_eq(slow.probed, 1);
    ck_assert_int_eq(fast.probed, 1);
    ck_assert_int_eq(absent.probed, 1);
}
END_TEST

/* Catches: two devices (and two copies of the weights) where one is meant; a device closed under its
 * second user, never closed, or handed out after it was closed. */
START_TEST(an_open_device_is_shared)
{
    struct tfm_device *a[2], *b[3];
    struct tfm_error err;
    size_t n;

    add_all();
    ck_assert_int_eq(tfm_devices_open(registry, "fast:1", 0, a, 2, &n, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_devices_open(registry, "fast:two,fast:0", 0, b, 3, &n, &err),
                     TFM_STATUS_OK);
    ck_assert_ptr_eq(a[0], b[0]);
    ck_assert_ptr_ne(a[0], b[1]);
    ck_assert_ptr_eq(a[1], b[2]);
    ck_assert_int_eq(fast.opened, 2);
    tfm_device_release(a[0]);
    ck_assert_int_eq(fast.closed, 0);
    ck_assert_ptr_eq(tfm_device_retain(b[0]), b[0]);
    tfm_device_release(b[0]);
    ck_assert_int_eq(fast.closed, 0);
    tfm_device_release(b[0]);
    ck_assert_int_eq(fast.closed, 1);
    ck_assert_int_eq(tfm_devices_open(registry, "fast:1", 1, a, 2, &n, &err), TFM_STATUS_OK);
    ck_assert_int_eq(fast.opened, 3);
    tfm_device_release(a[0]);
    tfm_device_release(a[1]);
    tfm_device_release(b[1]);
    tfm_device_release(b[2]);
    tfm_device_release(NULL);
    ck_assert_int_eq(fast.closed, 3);
}
END_TEST

/* Catches: a device shared although the user has since allowed another number of threads. */
START_TEST(another_number_of_threads_is_another_device)
{
    struct tfm_device *a[1], *b[1];
    struct tfm_error err;
    size_t n;

    add_all();
    tfm_threads_set(1);
    ck_assert_int_eq(tfm_devices_open(registry, "slow", 1, a, 1, &n, &err), TFM_STATUS_OK);
    tfm_threads_set(2);
    ck_assert_int_eq(tfm_devices_open(registry, "slow", 1, b, 1, &n, &err), TFM_STATUS_OK);
    ck_assert_ptr_ne(a[0], b[0]);
    tfm_device_release(a[0]);
    tfm_device_release(b[0]);
    ck_assert_int_eq(slow.closed, 2);
}
END_TEST

static void *ask(void *context)
{
    int *failures = context;
    struct tfm_error err;
    struct tfm_device *devices[8];
    size_t n;

    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < tfm_registry_count(registry); i++)
            *failures += tfm_registry_row(registry, i) == NULL;
        if (tfm_devices_open(registry, round % 2 ? "fast:1,slow" : "auto", 0, devices, 8, &n,
                             &err) != TFM_STATUS_OK) {
            ++*failures;
            continue;
        }
        *failures += strcmp(tfm_device_backend(devices[0]), "fast") != 0;
        for (size_t i = 0; i < n; i++)
            tfm_device_release(devices[i]);
    }
    return NULL;
}

/* Catches: two probes at once, a device counted wrongly, a list that moves while it is read. */
START_TEST(many_threads_may_ask)
{
    enum { N = 4 };
    pthread_t threads[N];
    int failures[N] = {0};

    add(MOCK_TABLE(slow));
    add(MOCK_TABLE(fast));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &failures[i]), 0);
    add(MOCK_TABLE(absent));
    add(MOCK_TABLE(empty));
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(failures[i], 0);
    }
    ck_assert_int_eq(slow.probed, 1);
    ck_assert_int_eq(fast.probed, 1);
    ck_assert_int_eq(fast.opened, fast.closed);
    ck_assert_int_eq(slow.opened, slow.closed);
}
END_TEST

/* ---- the program's own backends ------------------------------------------------------------------ */

/* Catches: a second of a name, a backend that poses as the reference, a name with a meaning. */
START_TEST(a_name_is_given_once)
{
    static const struct {
        const char *name, *reason;
    } names[] = {
        {"slow", "name \"slow\" already taken by memory"},
        {"reference", "name \"reference\" already taken by built in"},
        {"auto", "meaning of its own"},
        {"help", "meaning of its own"},
        {"", "invalid name \"\""},
        {"Slow", "invalid name \"Slow\""},
        {"a name of more than thirty-one characters", "invalid name \"a name of"},
        {"abcdefghijklmnopqrstuvwxyz_012345", "1 to 31 characters"},
    };
    struct tfm_error err;

    add(MOCK_TABLE(slow));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tfm_backend table = stub_table(names[i].name);
        ck_assert_int_eq(tfm_registry_add(registry, &table, &err), TFM_STATUS_PLUGIN);
        expect_contains(err.text, names[i].reason);
    }
    ck_assert_uint_eq(tfm_registry_count(registry), 2);
    ck_assert_str_eq(tfm_registry_row(registry, 1)->file, "memory");
}
END_TEST

/* Catches: a distance that is off by one, one that ignores the case, a word that is nothing alike. */
START_TEST(the_nearest_name_is_within_two_changes)
{
    static const char *const names[] = {"opencl", "reference", "fake", "a"};
    static const struct {
        const char *typed, *expected;
    } cases[] = {
        {"opencl", "opencl"},
        {"opncl", "opencl"},
        {"openncl", "opencl"},
        {"opemcl", "opencl"},
        {"OpenCL", "opencl"},
        {"openacl2", "opencl"},
        {"open", "opencl"},
        {"ope", NULL},
        {"openaccll", NULL},
        {"referen", "reference"},
        {"refer", NULL},
        {"kafe", "fake"},
        {"", NULL},
        {"b", NULL},
        {"xyz", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = tfm__nearest(cases[i].typed, names, 4);
        ck_assert_msg((near == NULL) == (cases[i].expected == NULL), "%s: %s", cases[i].typed,
                      near ? near : "none");
        if (near)
            ck_assert_str_eq(near, cases[i].expected);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choose");
    TCase *tcase = tests_case(suite, "devices");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_spec_means_these_devices, 0, (int)(sizeof specs / sizeof *specs));
    tcase_add_test(tcase, the_environment_stands_in_for_no_spec);
    tcase_add_test(tcase, strict_comes_from_the_environment_when_left_open);
    tcase_add_test(tcase, a_list_that_does_not_fit_is_an_error);
    tcase_add_test(tcase, auto_takes_the_best_that_opens_and_says_so);
    tcase_add_test(tcase, auto_goes_by_score_with_the_reference_last_of_equals);
    tcase_add_test(tcase, auto_takes_the_reference_when_nothing_else_is_usable);
    tcase_add_test(tcase, auto_says_why_it_takes_a_small_one);
    tcase_add_test(tcase, auto_under_strict_does_not_fall_to_the_reference);
    tcase_add_test(tcase, auto_goes_from_device_to_device);
    tcase_add_test(tcase, auto_does_not_pass_over_a_wrong_setting);
    tcase_add_test(tcase, the_order_of_auto_can_be_asked_for);
    tcase_add_test(tcase, a_backend_is_probed_when_somebody_asks_and_once);
    tcase_add_test(tcase, an_open_device_is_shared);
    tcase_add_test(tcase, another_number_of_threads_is_another_device);
    tcase_add_test(tcase, many_threads_may_ask);
    tcase_add_test(tcase, a_name_is_given_once);
    tcase_add_test(tcase, the_nearest_name_is_within_two_changes);
    return tests_run(suite);
}
