/* SPDX-License-Identifier: MIT
 * Threads of a CPU device and their processors. Would catch two threads on one processor, a thread that is left
 * bound when the device is closed, another thread of the program that was bound instead. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_COUNT */
#endif
#include <check.h>

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/opencl/parts.h"
#include "tests/skip.h"

static cpu_set_t own_set(void)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

/* Threads of this process that may run on one processor alone; *distinct = on how many they are. */
static uint32_t count_bound(uint32_t *distinct)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    cpu_set_t all, set;
    uint32_t n = 0;

    ck_assert_ptr_nonnull(tasks);
    CPU_ZERO(&all);
    while ((entry = readdir(tasks))) {
        if (entry->d_name[0] == '.' ||
            sched_getaffinity((pid_t)atol(entry->d_name), sizeof set, &set) != 0)
            continue;
        if (CPU_COUNT(&set) == 1) {
            CPU_OR(&all, &all, &set);
            n++;
        }
    }
    closedir(tasks);
    *distinct = (uint32_t)CPU_COUNT(&all);
    return n;
}

static const char *choice(const struct tfm__cl_device *d)
{
    for (uint32_t i = 0; i < d->n_choices; i++) {
        if (strcmp(d->choices[i].what, "threads") == 0)
            return d->choices[i].why;
    }
    return "nothing";
}

/* On a busy machine the threads may not meet in time: then they stay free, and it is tried again. */
static void open_bound(struct test_devices *d)
{
    for (int i = 0; i < 40; i++) {
        parts_open(d);
        if (parts_handle(d)->pinned)
            return;
        ck_assert_str_eq(choice(parts_handle(d)), "its threads were busy");
        test_devices_close(d);
    }
    ck_abort_msg("the threads never met");
}

START_TEST(each_on_a_processor_of_its_own_until_the_last_device_is_closed)
{
    struct test_devices first, second;
    uint32_t distinct;
    cpu_set_t before = own_set(), after;

    open_bound(&first);
    const uint32_t units = parts_handle(&first)->units;
    ck_assert_uint_eq(units, (uint32_t)CPU_COUNT(&before));
    ck_assert_uint_eq(count_bound(&distinct), units);
    ck_assert_uint_eq(distinct, units);
    after = own_set();
    ck_assert(CPU_EQUAL(&before, &after)); /* the caller's own thread stays free */

    open_bound(&second);
    ck_assert_uint_eq(count_bound(&distinct), units);
    test_devices_close(&first);
    ck_assert_uint_eq(count_bound(&distinct), units);
    test_devices_close(&second);
    ck_assert_uint_eq(count_bound(&distinct), 0);

    open_bound(&first);
    ck_assert_uint_eq(count_bound(&distinct), units);
    test_devices_close(&first);
    ck_assert_uint_eq(count_bound(&distinct), 0);
}
END_TEST

/* How threads are kept from being bound, and what is told then. */
static const struct {
    const char *pin;
    uint32_t threads; /* 0 = all */
    const char *why;
} free_cases[] = {
    {"off", 0, "TFM_OPENCL_PIN says so"},
    {"auto", 1, "only a CPU of several units has threads to bind"},
};

START_TEST(where_the_system_puts_them)
{
    struct test_devices d;
    uint32_t distinct;

    ck_assert_int_eq(setenv("TFM_OPENCL_PIN", free_cases[_i].pin, 1), 0);
    if (free_cases[_i].threads)
        tfm_threads_set(free_cases[_i].threads);
    parts_open(&d);
    ck_assert_str_eq(choice(parts_handle(&d)), free_cases[_i].why);
    ck_assert_uint_eq(count_bound(&distinct), 0);
    test_devices_close(&d);
}
END_TEST

/* Other programs may have them: the threads are not bound to processors that are not the process's. */
START_TEST(one_processor_of_several)
{
    cpu_set_t all = own_set(), one;
    struct test_devices d;
    int cpu = 0;

    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    parts_open(&d);
    ck_assert_int_eq(parts_handle(&d)->pinned, 0);
    test_devices_close(&d);
}
END_TEST

START_TEST(bad_setting_lists_the_choices)
{
    struct test_devices d;
    struct tfm_error err = {0};

    ck_assert_int_eq(setenv("TFM_OPENCL_PIN", "yes", 1), 0);
    ck_assert_int_eq(parts_try(&d, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "'yes'"));
    ck_assert_ptr_nonnull(strstr(err.text, "auto, off"));
    test_devices_close(&d);
}
END_TEST

int main(void)
{
    cpu_set_t set;

    if (!tests_ask(parts_present))
        return tests_skip("the backend cannot be used here");
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
        return tests_skip("there is one processor");
    TCase *tests = tcase_create("workers");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, each_on_a_processor_of_its_own_until_the_last_device_is_closed);
    tcase_add_loop_test(tests, where_the_system_puts_them, 0,
                        sizeof free_cases / sizeof *free_cases);
    tcase_add_test(tests, one_processor_of_several);
    tcase_add_test(tests, bad_setting_lists_the_choices);
    Suite *suite = suite_create("workers");
    suite_add_tcase(suite, tests);
    return tests_run(suite);
}
