/* SPDX-License-Identifier: MIT
 * How a program may end that has used OpenCL (case A44): each way leaves with exit code 0 and no signal. Would
 * catch a module that is unloaded while threads of its driver live, programs that are released when the driver
 * is gone, a lock that a thread holds when exit() runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <check.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/llm/tiny_llama.h"

enum { PROMPT = 40 };

static char path[128];

struct life {
    struct test_devices devices;
    struct tfm_model *model;
    struct tfm_session *session;
};

/* In a child: no Check, whose asserts would not return to it. */
static void must(enum tfm_status status, const struct tfm_error *err)
{
    if (status != TFM_STATUS_OK) {
        fprintf(stderr, "%s\n", err->text);
        _exit(3);
    }
}

static void begin(struct life *l)
{
    struct tfm_session_options options;
    struct tfm_error err = {0};
    int32_t ids[PROMPT];

    for (int i = 0; i < PROMPT; i++)
        ids[i] = i * 7 % 250;
    must(test_devices_try(&l->devices, &err), &err);
    must(tfm_model_open(path, &l->model, &err), &err);
    tfm_session_defaults(&options);
    must(tfm_session_create(l->model, l->devices.device, l->devices.n, &options, &l->session, &err),
         &err);
    must(tfm_session_feed(l->session, ids, PROMPT, &err), &err);
}

static void end(struct life *l)
{
    tfm_session_destroy(l->session);
    tfm_model_close(l->model);
    test_devices_close(&l->devices);
}

/* ---- the ways ---- */

static struct life lives[2];

static void closed(void)
{
    begin(&lives[0]);
    end(&lives[0]);
}

static void never_closed(void)
{
    begin(&lives[0]);
}

static void two_lives(void)
{
    for (int i = 0; i < 2; i++) {
        begin(&lives[i]);
        end(&lives[i]);
    }
}

/* The registry, which loaded the module, goes first. */
static void registry_first(void)
{
    begin(&lives[0]);
    tfm_registry_destroy(lives[0].devices.registry);
    lives[0].devices.registry = NULL;
    tfm_session_destroy(lives[0].session);
    tfm_model_close(lives[0].model);
    for (size_t i = 0; i < lives[0].devices.n; i++)
        tfm_device_release(lives[0].devices.device[i]);
}

/* exit() while another thread is in a run. */
static void *speak(void *context)
{
    struct life *l = context;
    struct tfm_error err = {0};
    const int32_t id = 5;

    for (;;) {
        if (tfm_session_feed(l->session, &id, 1, &err) != TFM_STATUS_OK)
            (void)tfm_session_truncate(l->session, 0, &err);
    }
    return NULL;
}

static void in_the_middle(void)
{
    pthread_t thread;

    begin(&lives[0]);
    if (pthread_create(&thread, NULL, speak, &lives[0]))
        _exit(4);
    usleep(20000);
}

static const struct way {
    const char *name;
    void (*go)(void);
} ways[] = {
    {"everything closed", closed},
    {"nothing closed", never_closed},
    {"two lives", two_lives},
    {"the registry closed first", registry_first},
    {"in the middle of a run", in_the_middle},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Two ways to end: exit() runs what atexit() and destructors have, and so does the return from main, which a
 * process of its own shows. */
START_TEST(it_ends)
{
    const struct way *way = &ways[_i];
    int status = 0;

    fflush(NULL);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", _i);
        setenv("TFM_TEST_EXIT", number, 1);
        setenv("TFM_TEST_EXIT_PATH", path, 1);
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
        /* leaks are meant, and its tracer does not survive the threads that PoCL keeps */
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
#endif
        execl("/proc/self/exe", "test_exits", (char *)NULL);
        _exit(5);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "%s: ended by signal %d", way->name, WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "%s: exit code %d", way->name, WEXITSTATUS(status));
}
END_TEST

int main(void)
{
    const char *way = getenv("TFM_TEST_EXIT"), *tmp = getenv("TMPDIR");

    if (way) {
        snprintf(path, sizeof path, "%s", getenv("TFM_TEST_EXIT_PATH"));
        ways[atoi(way) % WAYS].go();
        return 0;
    }
    if (!tests_ask(test_devices_present))
        return tests_skip("no OpenCL device of PoCL");
    snprintf(path, sizeof path, "%.80s/tfm-exits-XXXXXX", tmp ? tmp : "/tmp");
    const int file = mkstemp(path);
    if (file < 0)
        return 99;
    close(file);
    struct tiny_llama tiny = tiny_llama_default();
    tiny_llama_write(&tiny, path);

    Suite *suite = suite_create("exits");
    TCase *tcase = tests_case(suite, "exits");
    tcase_set_timeout(tcase, 240); /* the first may find an empty kernel cache */
    tcase_add_loop_test(tcase, it_ends, 0, WAYS);
    const int code = tests_run(suite);
    unlink(path);
    return code;
}
