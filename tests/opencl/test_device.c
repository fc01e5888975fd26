/* SPDX-License-Identifier: MIT
 * Devices of the opencl backend: opening and closing, the kernels' sources, limits, refusals, threads. */
#include "tests/opencl/parts.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static struct test_devices devices;
static struct tfm_error err;

/* ---- sources ---- */

static char folder[512];

/* A folder with every file that the module asks for, taken from kernels/ of the source tree. */
static void copy_kernels(void)
{
    const char *top = getenv("TFM_TEST_SRCDIR");
    char path[1024];
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tfm-kernels-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "cp '%s'/kernels/*.cl '%s'/kernels/step.h '%s'", top ? top : ".",
             top ? top : ".", folder);
    ck_assert_int_eq(system(path), 0);
    setenv("TFM_KERNEL_PATH", folder, 1);
}

static void remove_kernels(void)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    unsetenv("TFM_KERNEL_PATH");
}

static unsigned log_lines;
static char log_text[8192];

static void sink(void *context, enum tfm_log_level level, const char *backend, const char *text)
{
    (void)context;
    if (level == TFM_LOG_INFO && strcmp(backend, "opencl") == 0 && strstr(text, "error")) {
        log_lines++;
        snprintf(log_text, sizeof log_text, "%s", text);
    }
}

/* Fault (case A43): a build failure without the place, the device, the driver and the options; on more than one
 * line; or the embedded kernels in place of the broken ones. */
START_TEST(a_kernel_that_does_not_build_is_told)
{
    char path[600];

    copy_kernels();
    snprintf(path, sizeof path, "%s/swiglu.cl", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("\n\nthis is not OpenCL C;\n", file);
    fclose(file);
    tfm_log_set(sink, NULL);
    ck_assert_int_eq(parts_try(&devices, &err), TFM_STATUS_BUILD);
    ck_assert_msg(strstr(err.text, "swiglu.cl:3") && strstr(err.text, "pthread") &&
                      strstr(err.text, "driver") && strstr(err.text, "-cl-std=CL1.2"),
                  "%s", err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    ck_assert_uint_eq(log_lines, 1);
    ck_assert_ptr_nonnull(strstr(log_text, "swiglu.cl"));
    ck_assert_uint_le(strlen(log_text), 4096);
    test_devices_close(&devices);
    tfm_log_set(NULL, NULL);
    remove_kernels();
}
END_TEST

/* Fault: a file that is missing there is taken from the embedded ones in silence. */
START_TEST(a_missing_kernel_file_is_told)
{
    char path[600];

    copy_kernels();
    snprintf(path, sizeof path, "%s/rope.cl", folder);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(parts_try(&devices, &err), TFM_STATUS_IO);
    ck_assert_msg(strstr(err.text, path) && strstr(err.text, "TFM_KERNEL_PATH"), "%s", err.text);
    test_devices_close(&devices);
    remove_kernels();
}
END_TEST

START_TEST(a_missing_kernel_folder_is_told)
{
    setenv("TFM_KERNEL_PATH", "/nonexistent/kernels", 1);
    ck_assert_int_eq(parts_try(&devices, &err), TFM_STATUS_IO);
    ck_assert_msg(strstr(err.text, "/nonexistent/kernels"), "%s", err.text);
    test_devices_close(&devices);
    unsetenv("TFM_KERNEL_PATH");
}
END_TEST

/* ---- limits and refusals ---- */

static void setup(void)
{
    memset(&err, 0, sizeof err);
    parts_open(&devices);
}

static void teardown(void)
{
    test_devices_close(&devices);
}

/* Fault: an index past the list opens another device. */
START_TEST(a_device_that_is_not_there)
{
    void *device = NULL;
    const struct tfm_host *host = parts_handle(&devices)->host;

    ck_assert_int_eq(tfm_backend_v1.open(host, 99, &device, &err), TFM_STATUS_NOT_FOUND);
    ck_assert_ptr_null(device);
    ck_assert_ptr_nonnull(strstr(err.text, "99"));
}
END_TEST

/* Fault: a buffer past the device's limit fails with a code instead of the two numbers. */
START_TEST(a_buffer_past_the_limit)
{
    struct tfm__cl_device *d = parts_handle(&devices);
    void *buffer = NULL;
    char numbers[2][32];

    snprintf(numbers[0], sizeof numbers[0], "%zu", d->max_alloc + 1);
    snprintf(numbers[1], sizeof numbers[1], "%zu", d->max_alloc);
    ck_assert_int_eq(tfm_backend_v1.alloc(d, d->max_alloc + 1, &buffer, &err), TFM_STATUS_NOMEM);
    ck_assert_ptr_null(buffer);
    ck_assert_msg(strstr(err.text, numbers[0]) && strstr(err.text, numbers[1]), "%s", err.text);
}
END_TEST

/* 1 = the page at p may be a huge one, by the flags that the system keeps of it. */
static int may_be_huge(const void *p)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    int inside = 0, huge = 0;

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        uintptr_t begin, end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin <= (uintptr_t)p && (uintptr_t)p < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            huge = strstr(line, " hg") != NULL;
    }
    fclose(file);
    return huge;
}

/* Fault: weights and caches lie in small pages, and all of a token's memory is read at two thirds of the speed. */
START_TEST(large_buffers_ask_for_huge_pages)
{
    enum { LARGE = 32 << 20, SMALL = 1 << 20 };
    static const struct {
        size_t bytes;
        int huge;
    } rows[] = {{LARGE, 1}, {SMALL, 0}};
    const struct tfm__cl_device *d = parts_handle(&devices);

    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) {
        fputs("this system has no huge pages to ask for\n", stderr);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *buffer = NULL;
        cl_int code = CL_SUCCESS;
        ck_assert_int_eq(tfm_backend_v1.alloc(parts_handle(&devices), rows[i].bytes, &buffer, &err),
                         TFM_STATUS_OK);
        char *at = clEnqueueMapBuffer(d->queue, buffer, CL_TRUE, CL_MAP_READ, 0, rows[i].bytes, 0,
                                      NULL, NULL, &code);
        ck_assert_int_eq(code, CL_SUCCESS);
        ck_assert_msg(may_be_huge(at + rows[i].bytes / 2) == rows[i].huge, "%zu bytes",
                      rows[i].bytes);
        ck_assert_int_eq(clEnqueueUnmapMemObject(d->queue, buffer, at, 0, NULL, NULL), CL_SUCCESS);
        ck_assert_int_eq(clFinish(d->queue), CL_SUCCESS);
        tfm_backend_v1.free(parts_handle(&devices), buffer);
    }
}
END_TEST

/* Fault: copy at wrong offsets, or not complete when it returns. */
START_TEST(copies_within_the_device)
{
    struct tfm__cl_device *d = parts_handle(&devices);
    unsigned char from[300], to[300], want[300];
    struct tfm_memory a = {NULL, 0}, b = {NULL, 0};

    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (unsigned char)i;
        to[i] = want[i] = 0xee;
    }
    ck_assert_int_eq(tfm_backend_v1.alloc(d, sizeof from, &a.buffer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_backend_v1.alloc(d, sizeof to, &b.buffer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_backend_v1.upload(d, from, a, sizeof from, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_backend_v1.upload(d, to, b, sizeof to, &err), TFM_STATUS_OK);
    a.offset = 7;
    b.offset = 130;
    ck_assert_int_eq(tfm_backend_v1.copy(d, a, b, 101, &err), TFM_STATUS_OK);
    b.offset = 0;
    ck_assert_int_eq(tfm_backend_v1.download(d, b, to, sizeof to, &err), TFM_STATUS_OK);
    memcpy(want + 130, from + 7, 101);
    ck_assert_mem_eq(to, want, sizeof to);
    tfm_backend_v1.free(d, a.buffer);
    tfm_backend_v1.free(d, b.buffer);
}
END_TEST

/* Fault: supports() promises what no kernel does. */
START_TEST(refusals_name_their_reason)
{
    struct tfm_tensor x = {
        .dtype = TFM_DTYPE_F64, .extent = TFM_EXTENT_ROWS, .rank = 2, .shape = {0, 4}, .name = "x"};
    struct tfm_node node = {
        .op = TFM_OP_ADD, .n_inputs = 2, .n_outputs = 1, .inputs = {&x, &x}, .outputs = {&x}};
    const struct tfm_capacity capacity = {8, 1, 1};
    struct tfm__cl_device *d = parts_handle(&devices);
    char reason[200];

    ck_assert_int_eq(tfm_backend_v1.supports(d, &node, &capacity, reason, sizeof reason), 0);
    ck_assert_msg(strstr(reason, "f64"), "%s", reason);
    x.dtype = TFM_DTYPE_I32;
    ck_assert_int_eq(tfm_backend_v1.supports(d, &node, &capacity, reason, sizeof reason), 0);
    ck_assert_msg(strstr(reason, "i32"), "%s", reason);
    x.dtype = TFM_DTYPE_F32;
    ck_assert_int_eq(tfm_backend_v1.supports(d, &node, &capacity, reason, sizeof reason), 1);
    ck_assert_str_eq(reason, "");
    x.shape[1] = (int64_t)1 << 31;
    ck_assert_int_eq(tfm_backend_v1.supports(d, &node, &capacity, reason, sizeof reason), 0);
    ck_assert_msg(strstr(reason, "31 bits"), "%s", reason);
    x.shape[1] = 4;
    node.op = (enum tfm_op)10000;
    ck_assert_int_eq(tfm_backend_v1.supports(d, &node, &capacity, reason, sizeof reason), 0);
    ck_assert_msg(strstr(reason, "10000"), "%s", reason);
    ck_assert_int_eq(tfm_backend_v1.supports(d, &node, &capacity, NULL, 0), 0);
}
END_TEST

/* ---- a small model, run by many ---- */

enum { WIDTH = 64, ROWS = 64, THREADS = 4, ROUNDS = 8 };

static struct tfm_graph *graph;
static struct tfm_weights *weights;
static struct tfm_plan *plan;

static void build(void)
{
    const int64_t shape[] = {0, WIDTH};
    const struct tfm_capacity capacity = {ROWS, 1, ROWS};

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *gate = tfm_op_linear(
        graph, x, parts_parameter(graph, weights, "gate", TFM_DTYPE_Q4_1, WIDTH, WIDTH, 1), NULL);
    struct tfm_tensor *up = tfm_op_linear(
        graph, x, parts_parameter(graph, weights, "up", TFM_DTYPE_Q8_0, WIDTH, WIDTH, 2), NULL);
    tfm_graph_output(graph, tfm_op_add(graph, tfm_op_swiglu(graph, gate, up), x), "y");
    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
}

static void unbuild(void)
{
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
}

struct user {
    struct tfm_exec *exec;
    unsigned number;
    float x[ROWS * WIDTH], y[ROWS * WIDTH];
};

/* Round `round` of a user: by turns all rows (GEMM) and few. Uses no Check: runs in threads. */
static int user_run(struct user *user, unsigned round)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {round % 2 ? 3 : ROWS, 1, 0, &zero, &zero, &zero, NULL};

    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        user->x[i] = parts_value(i, user->number * 31 + round);
        user->y[i] = 0;
    }
    return tfm_exec_run(user->exec, &rows, NULL) == TFM_STATUS_OK;
}

static int user_open(struct user *user, unsigned number)
{
    user->number = number;
    return tfm_exec_create(plan, &user->exec, NULL) == TFM_STATUS_OK &&
           tfm_exec_bind(user->exec, "x", user->x, sizeof user->x, NULL) == TFM_STATUS_OK &&
           tfm_exec_bind(user->exec, "y", user->y, sizeof user->y, NULL) == TFM_STATUS_OK;
}

static float expected[THREADS][ROUNDS][ROWS * WIDTH];

static void *in_thread(void *argument)
{
    static struct user users[THREADS];
    const unsigned number = (unsigned)(uintptr_t)argument;
    struct user *user = &users[number];
    int good = user_open(user, number);

    for (unsigned repeat = 0; repeat < 10 && good; repeat++) {
        for (unsigned round = 0; round < ROUNDS && good; round++)
            good = user_run(user, round) &&
                   memcmp(user->y, expected[number][round], sizeof user->y) == 0;
    }
    tfm_exec_destroy(user->exec);
    return good ? argument : (void *)(uintptr_t)-1;
}

/* Fault: execs share kernel objects, arguments, queue or scratch; CLBlast is called unsafely. */
START_TEST(four_threads_get_the_bits_of_one)
{
    static struct user alone;
    pthread_t threads[THREADS];

    build();
    for (unsigned t = 0; t < THREADS; t++) {
        ck_assert(user_open(&alone, t));
        for (unsigned round = 0; round < ROUNDS; round++) {
            ck_assert(user_run(&alone, round));
            memcpy(expected[t][round], alone.y, sizeof alone.y);
        }
        tfm_exec_destroy(alone.exec);
    }
    for (unsigned t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, in_thread, (void *)(uintptr_t)t), 0);
    for (unsigned t = 0; t < THREADS; t++) {
        void *result = NULL;
        ck_assert_int_eq(pthread_join(threads[t], &result), 0);
        ck_assert_msg(result == (void *)(uintptr_t)t, "thread %u: other bits than alone", t);
    }
    unbuild();
}
END_TEST

/* Fault: the number of parts or of compute units shows in the results; -t is not obeyed. */
START_TEST(one_thread_gets_the_bits_of_all)
{
    static struct user user;
    static float all[ROUNDS][ROWS * WIDTH];
    cl_uint units = 0;

    build();
    ck_assert(user_open(&user, 1));
    for (unsigned round = 0; round < ROUNDS; round++) {
        ck_assert(user_run(&user, round));
        memcpy(all[round], user.y, sizeof user.y);
    }
    tfm_exec_destroy(user.exec);
    unbuild();
    test_devices_close(&devices);

    tfm_threads_set(1);
    parts_open(&devices);
    ck_assert_int_eq(clGetDeviceInfo(parts_handle(&devices)->id, CL_DEVICE_MAX_COMPUTE_UNITS,
                                     sizeof units, &units, NULL),
                     CL_SUCCESS);
    ck_assert_uint_eq(units, 1);
    build();
    ck_assert(user_open(&user, 1));
    for (unsigned round = 0; round < ROUNDS; round++) {
        ck_assert(user_run(&user, round));
        ck_assert_mem_eq(user.y, all[round], sizeof user.y);
    }
    tfm_exec_destroy(user.exec);
    unbuild();
}
END_TEST

/* ---- nothing stays behind ---- */

static long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmRSS: %ld", &kb) == 1)
            break;
    }
    if (file)
        fclose(file);
    return kb;
}

static void cycle(void)
{
    static struct user user;
    parts_open(&devices);
    build();
    ck_assert(user_open(&user, 1));
    ck_assert(user_run(&user, 0));
    tfm_exec_destroy(user.exec);
    unbuild();
    test_devices_close(&devices);
}

/* Fault: contexts, programs, buffers or CLBlast's kernels outlive their device (cases A41, A44). */
START_TEST(twenty_cycles_leave_nothing)
{
    for (int i = 0; i < 10; i++)
        cycle();
    const long before = resident_kb();
    for (int i = 0; i < 20; i++)
        cycle();
    const long growth = resident_kb() - before;
    ck_assert_msg(growth < 2048, "%ld kB more after 20 cycles", growth);
}
END_TEST

/* Fault: events, commands or temporaries of each run are kept (case A41: 20,000 linears; a run has two). */
START_TEST(thousands_of_runs_leave_nothing)
{
    static struct user user;

    parts_open(&devices);
    build();
    ck_assert(user_open(&user, 1));
    for (unsigned i = 0; i < 200; i++)
        ck_assert(user_run(&user, i));
    const long before = resident_kb();
    for (unsigned i = 0; i < 10000; i++)
        ck_assert(user_run(&user, i));
    const long growth = resident_kb() - before;
    ck_assert_msg(growth < 2048, "%ld kB more after 10000 runs", growth);
    tfm_exec_destroy(user.exec);
    unbuild();
    test_devices_close(&devices);
}
END_TEST

/* Fault: a CPU taken because its platform was installed first, though the score that won is a GPU's; an order
 * among equals that is not the platforms'. */
START_TEST(the_best_device_is_the_first)
{
    static const enum tfm_device_kind kinds[] = {TFM_DEVICE_CPU, TFM_DEVICE_GPU, TFM_DEVICE_CPU,
                                                 TFM_DEVICE_ACCELERATOR, TFM_DEVICE_GPU};
    static const char *const order[] = {"1", "3", "4", "0", "2"};
    struct tfm__cl_found found[5] = {0};

    for (int i = 0; i < 5; i++) {
        found[i].kind = kinds[i];
        snprintf(found[i].name, sizeof found[i].name, "%d", i);
    }
    tfm__cl_best_first(found, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(found[i].name, order[i]);
    tfm__cl_best_first(found, 0);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("device");
    TCase *sources = tests_case(suite, "sources"), *open = tests_case(suite, "device");
    TCase *cycles = tests_case(suite, "cycles");

    tcase_add_test(sources, a_kernel_that_does_not_build_is_told);
    tcase_add_test(sources, a_missing_kernel_file_is_told);
    tcase_add_test(sources, a_missing_kernel_folder_is_told);
    tcase_add_checked_fixture(open, setup, teardown);
    tcase_add_test(open, a_device_that_is_not_there);
    tcase_add_test(open, a_buffer_past_the_limit);
    tcase_add_test(open, large_buffers_ask_for_huge_pages);
    tcase_add_test(open, copies_within_the_device);
    tcase_add_test(open, refusals_name_their_reason);
    tcase_add_test(open, four_threads_get_the_bits_of_one);
    tcase_add_test(open, one_thread_gets_the_bits_of_all);
    tcase_add_test(sources, the_best_device_is_the_first);
    tcase_add_test(cycles, twenty_cycles_leave_nothing);
    tcase_add_test(cycles, thousands_of_runs_leave_nothing);
    return tests_run(suite);
}
