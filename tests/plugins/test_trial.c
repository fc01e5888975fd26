/* SPDX-License-Identifier: MIT
 * Modules that crash, exit or hang in a constructor or in probe: each is refused with its reason, and the
 * process that asked for it goes on. Catches: one that is loaded in this process first; a reason that is
 * lost or names another place; a trial that outlives its time or leaves a process behind; one that is left
 * out without a word. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <tfm/plan.h>

#include "tests/core/runner.h"
#include "tests/core/scene.h"
#include "tests/skip.h"

static struct tfm_registry *registry;
static struct tfm_error err;
static char warned[4000];

static void sink(void *context, enum tfm_log_level level, const char *backend, const char *text)
{
    (void)context;
    const size_t used = strlen(warned);
    if (level <= TFM_LOG_WARN)
        snprintf(warned + used, sizeof warned - used, "%s: %s\n", backend, text);
}

static void setup(void)
{
    scene_open();
    registry = NULL;
    warned[0] = '\0';
    tfm_log_set(sink, NULL);
    unsetenv("TFM_PLUGIN_TRIAL");
    setenv("TFM_PLUGIN_TRIAL_SECONDS", "20", 1);
    setenv("TFM_TEST_TRACE", scene_path("trace"), 1);
}

static void teardown(void)
{
    tfm_registry_destroy(registry);
    scene_close();
}

static void create(const char *module)
{
    setenv("TFM_PLUGIN_PATH", module_path(module), 1);
    ck_assert_msg(tfm_registry_create(NULL, 0, &registry, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(tfm_registry_count(registry), 2);
}

/* Process number `n` of those that ran code of the module; 0 = there were fewer. */
static pid_t trace(int n)
{
    FILE *file = fopen(scene_path("trace"), "r");
    long pid = 0;
    for (int i = 0; file && i <= n; i++) {
        if (fscanf(file, "%ld", &pid) != 1)
            pid = 0;
    }
    if (file)
        fclose(file);
    return (pid_t)pid;
}

/* z = x + x on the reference */
static void expect_a_graph_runs(void)
{
    const struct tfm_capacity capacity = {2, 1, 1};
    const struct tfm_rows rows = {.n = 2};
    struct tfm_device *devices[2];
    struct tfm_weights *weights;
    struct tfm_graph *graph;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    float x[6] = {1, 2, 3, 4, 5, 6}, z[6] = {0};
    size_t n = 0;

#define OK(call) ck_assert_msg((call) == TFM_STATUS_OK, "%s", err.text)
    OK(tfm_devices_open(registry, "auto", 0, devices, 2, &n, &err));
    ck_assert_str_eq(tfm_device_backend(devices[0]), "reference");
    OK(tfm_weights_create(&weights, &err));
    OK(tfm_graph_create(&graph, &err));
    struct tfm_tensor *in = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, 3});
    tfm_graph_output(graph, tfm_op_add(graph, in, in), "z");
    OK(tfm_plan_compile(graph, weights, devices, n, &capacity, &plan, &err));
    OK(tfm_exec_create(plan, &exec, &err));
    OK(tfm_exec_bind(exec, "x", x, sizeof x, &err));
    OK(tfm_exec_bind(exec, "z", z, sizeof z, &err));
    OK(tfm_exec_run(exec, &rows, &err));
#undef OK
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(z[i], 2 * x[i]);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    while (n > 0)
        tfm_device_release(devices[--n]);
}

static const struct bad {
    const char *module, *name, *reason;
} bad[] = {
    {"crash_ctor", "", "killed by signal 11 (Segmentation fault) in its constructor"},
    {"exit_ctor", "", "exit code 3 in its constructor"},
    {"crash_probe", "bad",
     "killed by signal 11 (Segmentation fault) in probe; its last words: assertion of a "
     "driver failed: nothing works"},
    {"abort_probe", "bad", "killed by signal 6 (Aborted) in probe"},
    {"exit_probe", "bad", "exit code 0 in probe; its last words: passed"},
};

enum { N_BAD = sizeof bad / sizeof *bad };

static void expect_refused(const char *reason)
{
    const struct tfm_backend_row *row = tfm_registry_row(registry, 1);
    char whole[500];

    snprintf(whole, sizeof whole, "in a trial in a process of its own: %s", reason);
    ck_assert_int_eq(row->status, TFM_STATUS_PLUGIN);
    ck_assert_str_eq(row->reason, whole);
    ck_assert_ptr_null(row->probe);
}

START_TEST(it_is_refused_and_the_process_goes_on)
{
    create(bad[_i].module);
    expect_refused(bad[_i].reason);
    ck_assert_str_eq(tfm_registry_row(registry, 1)->name, bad[_i].name);
    ck_assert_int_ne(trace(0), getpid());
    expect_a_graph_runs();
    ck_assert_ptr_nonnull(strstr(warned, bad[_i].reason)); /* the user pointed at it */

    struct tfm_device *device;
    size_t n;
    const char *name = *bad[_i].name ? bad[_i].name : bad[_i].module;
    ck_assert_int_eq(tfm_devices_open(registry, name, 0, &device, 1, &n, &err), TFM_STATUS_PLUGIN);
    ck_assert_msg(strstr(err.text, bad[_i].reason) != NULL, "%s", err.text);
}
END_TEST

static int64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* 1 once there is no such process (a zombie of another parent counts as gone). */
static int is_gone(pid_t pid)
{
    char path[64], state = 'X';
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
        FILE *file = fopen(path, "r");
        if (!file)
            return 1;
        if (fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'Z') {
            fclose(file);
            return 1;
        }
        fclose(file);
        usleep(10000);
    }
    return 0;
}

START_TEST(a_hang_ends_with_its_time)
{
    const int64_t start = seconds();

    if (_i)
        tfm_plugin_trial_set(TFM_PLUGIN_TRIAL_ENVIRONMENT,
                             1); /* before the variable, which says 20 */
    else
        setenv("TFM_PLUGIN_TRIAL_SECONDS", "1", 1);
    create("hang_probe");
    expect_refused("no answer after 1 s in probe");
    ck_assert_int_lt(seconds() - start, 15);
    ck_assert_int_ne(trace(0), 0);
    ck_assert(is_gone(trace(0)));
    expect_a_graph_runs();
}
END_TEST

/* A good module pays a trial and is loaded; what it started there is ended, not waited for. */
START_TEST(a_good_one_is_loaded)
{
    const int64_t start = seconds();

    create(_i ? "fork_probe" : "fake");
    ck_assert_int_eq(tfm_registry_row(registry, 1)->status, TFM_STATUS_OK);
    ck_assert_int_lt(seconds() - start, 15);
    if (_i) {
        ck_assert_int_ne(trace(0), getpid());
        ck_assert_int_eq(trace(1), getpid());
        ck_assert_int_eq(trace(2), 0);
    }
    ck_assert_str_eq(warned, "");
}
END_TEST

/* Catches: a module of the package's folder that pays for a trial that nobody asked for, or that is spared
 * one that somebody asked for. Its probe leaves its process id. */
START_TEST(the_package_is_trusted_unless_all_are_tried)
{
    static const struct {
        const char *setting;
        enum tfm_plugin_trial set;
        int asked, tried;
    } rows[] = {
        {NULL, TFM_PLUGIN_TRIAL_ENVIRONMENT, 0, 0},  {NULL, TFM_PLUGIN_TRIAL_ENVIRONMENT, 1, 1},
        {"", TFM_PLUGIN_TRIAL_ENVIRONMENT, 1, 1},    {"auto", TFM_PLUGIN_TRIAL_ENVIRONMENT, 0, 0},
        {"all", TFM_PLUGIN_TRIAL_ENVIRONMENT, 0, 1}, {"off", TFM_PLUGIN_TRIAL_ENVIRONMENT, 1, 0},
        {"off", TFM_PLUGIN_TRIAL_AUTO, 1, 1},        {"off", TFM_PLUGIN_TRIAL_ALL, 0, 1},
        {"all", TFM_PLUGIN_TRIAL_OFF, 1, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unlink(scene_path("trace"));
        scene_folder("package");
        scene_module("package/fork_probe.so", "fork_probe");
        tfm__search_package_set(scene_path("package"));
        if (rows[i].asked)
            setenv("TFM_PLUGIN_PATH", scene_path("package"), 1);
        else
            unsetenv("TFM_PLUGIN_PATH");
        if (rows[i].setting)
            setenv("TFM_PLUGIN_TRIAL", rows[i].setting, 1);
        tfm_plugin_trial_set(rows[i].set, 0);
        ck_assert_int_eq(tfm_registry_create(NULL, 0, &registry, &err), TFM_STATUS_OK);
        ck_assert_uint_eq(tfm_registry_count(registry), 2);
        ck_assert_msg((trace(0) != 0) == rows[i].tried, "row %zu: process %ld", i, (long)trace(0));
        ck_assert_int_ne(trace(0), getpid()); /* nobody has asked for its row yet */
        tfm_registry_destroy(registry);
        registry = NULL;
        unlink(scene_path("package/fork_probe.so"));
        rmdir(scene_path("package"));
    }
    tfm_plugin_trial_set(TFM_PLUGIN_TRIAL_ENVIRONMENT, 0);
}
END_TEST

/* What can be wrong with the helper itself. */
static const struct helper {
    const char *helper, *setting, *warning, *reason; /* reason NULL = it is loaded */
} helpers[] = {
    {"/nowhere/tfm-probe", "auto", "fake.so is loaded without a trial", NULL},
    {"/nowhere/tfm-probe", "all", "",
     "the helper /nowhere/tfm-probe cannot be started: No such file"},
    {"/bin/true", "auto", "", "the helper /bin/true ended without an answer"},
};

START_TEST(a_helper_that_is_none_is_told)
{
    const struct helper *row = &helpers[_i];

    setenv("TFM_PLUGIN_TRIAL_HELPER", row->helper, 1);
    setenv("TFM_PLUGIN_TRIAL", row->setting, 1);
    create("fake");
    ck_assert_ptr_nonnull(strstr(warned, row->warning));
    const struct tfm_backend_row *fake = tfm_registry_row(registry, 1);
    ck_assert_int_eq(fake->status, row->reason ? TFM_STATUS_PLUGIN : TFM_STATUS_OK);
    ck_assert_ptr_nonnull(strstr(fake->reason, row->reason ? row->reason : ""));
    if (row->reason)
        return;
    tfm_registry_destroy(registry);
    warned[0] = '\0';
    create("fake");
    ck_assert_str_eq(warned, ""); /* once is enough */
}
END_TEST

static const struct setting {
    const char *name, *value, *text;
} settings[] = {
    {"TFM_PLUGIN_TRIAL", "yes",
     "TFM_PLUGIN_TRIAL: there is no \"yes\" (there are: auto, all, off)"},
    {"TFM_PLUGIN_TRIAL_SECONDS", "0", "\"0\" is no number from 1 to 3600"},
    {"TFM_PLUGIN_TRIAL_SECONDS", "3601", "\"3601\" is no number"},
    {"TFM_PLUGIN_TRIAL_SECONDS", "-1", "\"-1\" is no number"},
    {"TFM_PLUGIN_TRIAL_SECONDS", "5s", "\"5s\" is no number"},
    {"TFM_PLUGIN_TRIAL_SECONDS", "99999999999999999999", "is no number"},
};

enum {
    N_SETTINGS = sizeof settings / sizeof *settings,
    N_HELPERS = sizeof helpers / sizeof *helpers
};

START_TEST(a_wrong_setting_is_an_error)
{
    struct tfm_registry *none = NULL;

    setenv(settings[_i].name, settings[_i].value, 1);
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &none, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(err.text, settings[_i].text) != NULL, "%s", err.text);
}
END_TEST

/* Catches: an answer that gets lost in a stream which the program has closed. */
START_TEST(a_program_may_have_closed_its_streams)
{
    int saved[3];

    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        if (_i >> i & 1)
            close(i);
    }
    create("crash_probe");
    expect_refused(bad[2].reason);
    for (int i = 0; i < 3; i++)
        dup2(saved[i], i);
}
END_TEST

static void *ask(void *context)
{
    struct tfm_registry *mine;
    struct tfm_error why;
    long wrong = 0;

    (void)context;
    for (int i = 0; i < 5; i++) {
        if (tfm_registry_create(NULL, 0, &mine, &why) != TFM_STATUS_OK)
            return (void *)1L;
        wrong += tfm_registry_row(mine, 1)->status != TFM_STATUS_PLUGIN;
        tfm_registry_destroy(mine);
    }
    return (void *)wrong;
}

/* Catches: a trial that needs to be alone in its process, or that needs its child's end, which a program
 * that ignores SIGCHLD or reaps all children never gets; signals that stay blocked in the child. */
START_TEST(threads_and_signals_of_the_program_are_its_own)
{
    pthread_t threads[4];
    sigset_t all;
    void *wrong;

    signal(SIGCHLD, SIG_IGN);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    setenv("TFM_PLUGIN_PATH", module_path("crash_probe"), 1);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

int main(void)
{
    if (!have_modules())
        return tests_skip("the test modules are not built (--disable-shared)");

    Suite *suite = suite_create("trial");
    TCase *tcase = tests_case(suite, "trial");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, it_is_refused_and_the_process_goes_on, 0, N_BAD);
    tcase_add_loop_test(tcase, a_hang_ends_with_its_time, 0, 2);
    tcase_add_loop_test(tcase, a_good_one_is_loaded, 0, 2);
    tcase_add_test(tcase, the_package_is_trusted_unless_all_are_tried);
    tcase_add_loop_test(tcase, a_helper_that_is_none_is_told, 0, N_HELPERS);
    tcase_add_loop_test(tcase, a_wrong_setting_is_an_error, 0, N_SETTINGS);
    tcase_add_loop_test(tcase, a_program_may_have_closed_its_streams, 0, 8);
    tcase_add_test(tcase, threads_and_signals_of_the_program_are_its_own);
    return tests_run(suite);
}
