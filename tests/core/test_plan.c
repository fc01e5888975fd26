/* SPDX-License-Identifier: MIT
 * Faults caught: a node on the wrong device, a tensor that is not carried across or overwritten before its
 * last reader, a fallback that is not counted, weights that are not checked, a leak of device buffers, an
 * exec that is dead after a failed run. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/core/memory_backend.h"
#include "tests/core/runner.h"

enum { WIDTH = 8, ROWS = 5 };

static struct tfm_registry *registry;
static struct tfm_weights *weights;
static struct tfm_graph *graph;
static struct tfm_plan *plan;
static struct tfm_exec *exec;
static struct tfm_device *devices[4];
static size_t n_devices;
static struct tfm_error err;

static void setup(void)
{
    memset(&memory_backend_control, 0, sizeof memory_backend_control);
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &registry, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_registry_add(registry, &memory_backend, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_int_eq(tfm_weights_create(&weights, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_graph_create(&graph, &err), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    for (size_t i = 0; i < n_devices; i++)
        tfm_device_release(devices[i]);
    tfm_registry_destroy(registry);
    ck_assert_uint_eq(memory_backend_control.live, 0);
}

static void open_devices(const char *spec, int strict)
{
    ck_assert_msg(tfm_devices_open(registry, spec, strict, devices, 4, &n_devices, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
}

static const struct tfm_capacity capacity = {.rows = ROWS, .sequences = 2, .out_rows = ROWS};

static enum tfm_status compile(void)
{
    return tfm_plan_compile(graph, weights, devices, n_devices, &capacity, &plan, &err);
}

static void set_vector(const char *name, float value)
{
    float data[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        data[i] = value;
    ck_assert_msg(tfm_weights_set(weights, name, TFM_DTYPE_F32, 1, (int64_t[]){WIDTH}, data,
                                  sizeof data, &err) == TFM_STATUS_OK,
                  "%s", err.text);
}

/* n1 = rms_norm(x); s = n1 + x; n2 = rms_norm(s); y = n2 + n1; z = y + x: norms and adds alternate. */
static void build_alternating(void)
{
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, WIDTH});
    struct tfm_tensor *n1 = tfm_nn_rms_norm(graph, "n1", x, 0);
    struct tfm_tensor *s = tfm_op_add(graph, n1, x);
    struct tfm_tensor *n2 = tfm_nn_rms_norm(graph, "n2", s, 0);
    struct tfm_tensor *y = tfm_op_add(graph, n2, n1);
    tfm_graph_output(graph, tfm_op_add(graph, y, x), "z");
    set_vector("n1.weight", 2);
    set_vector("n2.weight", 3);
}

static float x[ROWS * WIDTH], z[ROWS * WIDTH];

static enum tfm_status run(uint32_t n)
{
    const struct tfm_rows rows = {.n = n};
    memset(z, 0xff, sizeof z);
    return tfm_exec_run(exec, &rows, &err);
}

static void open_exec(void)
{
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_exec_bind(exec, "x", x, sizeof x, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "z", z, sizeof z, &err), TFM_STATUS_OK);
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(i / WIDTH + 1); /* constant rows: norms of them are 1 */
}

/* Row r: n1 = 2, s = r + 3, n2 = 3, y = 5, z = r + 6. */
static void check_z(uint32_t n)
{
    for (uint32_t i = 0; i < n * WIDTH; i++)
        ck_assert_msg(z[i] > (float)(i / WIDTH) + 6 - 1e-4f &&
                          z[i] < (float)(i / WIDTH) + 6 + 1e-4f,
                      "z[%u] = %g", i, (double)z[i]);
}

START_TEST(nodes_go_to_the_first_that_takes_them)
{
    static const struct {
        const char *spec;
        uint32_t segments, fallbacks;
        unsigned runs;
    } lists[] = {{"reference", 1, 0, 0}, {"memory", 4, 2, 3}};
    struct tfm_plan_summary sum;

    open_devices(lists[_i].spec, 0);
    build_alternating();
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    tfm_plan_summarize(plan, &sum);
    ck_assert_uint_eq(sum.nodes, 5);
    ck_assert_uint_eq(sum.segments, lists[_i].segments);
    ck_assert_uint_eq(sum.device_changes, lists[_i].segments - 1);
    ck_assert_uint_eq(sum.fallbacks, lists[_i].fallbacks);
    open_exec();
    for (uint32_t n = 1; n <= ROWS; n++) {
        memory_backend_control.runs = 0;
        ck_assert_msg(run(n) == TFM_STATUS_OK, "%s", err.text);
        check_z(n);
        ck_assert_uint_eq(memory_backend_control.runs, lists[_i].runs);
    }
    ck_assert_msg(run(0) == TFM_STATUS_OK, "%s", err.text);
}
END_TEST

START_TEST(refusals_are_told)
{
    struct tfm_plan_node node;
    open_devices("memory", 0);
    build_alternating();
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_plan_describe(plan, 0, &node), TFM_STATUS_OK);
    ck_assert_str_eq(node.backend, "reference");
    ck_assert_int_eq(node.fallback, 1);
    ck_assert_str_eq(node.refusal, "memory: only add of f32");
    ck_assert_int_eq(tfm_plan_describe(plan, 1, &node), TFM_STATUS_OK);
    ck_assert_str_eq(node.backend, "memory");
    ck_assert_int_eq(node.fallback, 0);
    ck_assert_int_eq(tfm_plan_describe(plan, 5, &node), TFM_STATUS_OUT_OF_RANGE);
}
END_TEST

static void count_line(void *context, const char *text)
{
    (void)text;
    ++*(int *)context;
}

/* Fault: a program of another backend, or none, is handed to who cannot read it. */
START_TEST(notes_are_for_those_who_have_some)
{
    struct tfm_plan_summary summary;
    int lines = 0;
    open_devices("memory", 0);
    build_alternating();
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    tfm_plan_summarize(plan, &summary);
    for (uint32_t s = 0; s < summary.segments; s++)
        ck_assert_int_eq(tfm_plan_notes(plan, s, count_line, &lines), TFM_STATUS_OK);
    ck_assert_int_eq(lines, 0);
    ck_assert_int_eq(tfm_plan_notes(plan, summary.segments, count_line, &lines),
                     TFM_STATUS_OUT_OF_RANGE);
}
END_TEST

START_TEST(strict_refuses_a_fallback)
{
    open_devices("memory", 1);
    ck_assert_uint_eq(n_devices, 1);
    build_alternating();
    ck_assert_int_eq(compile(), TFM_STATUS_STRICT);
    ck_assert_ptr_nonnull(strstr(err.text, "n1"));
    ck_assert_ptr_nonnull(strstr(err.text, "rms_norm"));
    ck_assert_ptr_nonnull(strstr(err.text, "only add of f32"));
}
END_TEST

/* 40 adds in a row need two tensors at a time and not 40; the first sum is read at the very end. */
START_TEST(arena_by_lifetime)
{
    struct tfm_plan_summary sum;
    struct tfm_tensor *a = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, WIDTH});
    struct tfm_tensor *first = tfm_op_add(graph, a, a), *y = first;

    open_devices(_i ? "memory" : "reference", 1);
    for (int i = 0; i < 38; i++)
        y = tfm_op_add(graph, y, a);
    tfm_graph_output(graph, tfm_op_add(graph, y, first), "z");
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    tfm_plan_summarize(plan, &sum);
    const size_t one = (ROWS * WIDTH * sizeof(float) + 127) / 128 * 128;
    ck_assert_uint_le(sum.arena_bytes, 5 * one);
    open_exec();
    ck_assert_msg(run(ROWS) == TFM_STATUS_OK, "%s", err.text);
    for (int i = 0; i < ROWS * WIDTH; i++)
        ck_assert(z[i] == 42 * x[i]);
}
END_TEST

START_TEST(too_large_for_the_device)
{
    memory_backend_control.max_alloc = 100;
    struct tfm_tensor *a = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, WIDTH});
    tfm_graph_output(graph, tfm_op_add(graph, a, a), "z");
    open_devices("memory", 1);
    ck_assert_int_eq(compile(), TFM_STATUS_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "at most 100"));
}
END_TEST

static void unset(void)
{
    set_vector("n1.weight", 1);
}
static void other_dtype(void)
{
    uint16_t half[WIDTH] = {0};
    unset();
    tfm_weights_set(weights, "n2.weight", TFM_DTYPE_F16, 1, (int64_t[]){WIDTH}, half, sizeof half,
                    NULL);
}
static void other_shape(void)
{
    float data[WIDTH + 1] = {0};
    unset();
    tfm_weights_set(weights, "n2.weight", TFM_DTYPE_F32, 1, (int64_t[]){WIDTH + 1}, data,
                    sizeof data, NULL);
}

START_TEST(weights_are_checked)
{
    static const struct {
        void (*set)(void);
        enum tfm_status status;
        const char *text;
    } faults[] = {{unset, TFM_STATUS_NOT_FOUND, "n2.weight"},
                  {other_dtype, TFM_STATUS_DTYPE, "wants f32, it holds f16"},
                  {other_shape, TFM_STATUS_SHAPE, "wants [8], it holds [9]"}};
    struct tfm_tensor *a = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, WIDTH});

    a = tfm_nn_rms_norm(graph, "n1", a, 0);
    tfm_graph_output(graph, tfm_nn_rms_norm(graph, "n2", a, 0), "z");
    faults[_i].set();
    open_devices("reference", 1);
    ck_assert_int_eq(compile(), faults[_i].status);
    ck_assert_msg(strstr(err.text, faults[_i].text) != NULL, "%s", err.text);
}
END_TEST

START_TEST(compile_freezes)
{
    const float one = 1;
    open_devices("reference", 1);
    build_alternating();
    ck_assert_int_eq(tfm_weights_set(weights, "n1.weight", TFM_DTYPE_F32, 1, (int64_t[]){1}, &one,
                                     sizeof one, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(
        tfm_weights_set(weights, "short", TFM_DTYPE_F32, 1, (int64_t[]){2}, &one, sizeof one, &err),
        TFM_STATUS_SHAPE);
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(
        tfm_weights_set(weights, "late", TFM_DTYPE_F32, 1, (int64_t[]){1}, &one, sizeof one, &err),
        TFM_STATUS_BUSY);
    ck_assert_ptr_null(tfm_graph_input(graph, "late", TFM_DTYPE_F32, 2, (int64_t[]){0, WIDTH}));
    ck_assert_int_eq(tfm_graph_check(graph, &err), TFM_STATUS_BUSY);
}
END_TEST

START_TEST(bad_runs_are_refused_and_the_exec_lives)
{
    const struct tfm_rows too_many = {.n = ROWS + 1};
    const int32_t beyond[] = {3};
    const struct tfm_rows out_beyond = {.n = 3, .n_out = 1, .out = beyond};

    open_devices("memory", 0);
    build_alternating();
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(run(1), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "\"x\" is not bound"));
    ck_assert_int_eq(tfm_exec_bind(exec, "x", x, sizeof x - 1, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(err.text, "\"x\" [N, 8] f32: 159 bytes given, 160 needed for 5 rows"));
    ck_assert_int_eq(tfm_exec_bind(exec, "nobody", x, sizeof x, &err), TFM_STATUS_NOT_FOUND);
    ck_assert_int_eq(tfm_exec_bind(exec, "n1.weight", x, sizeof x, &err), TFM_STATUS_NOT_FOUND);
    tfm_exec_destroy(exec);
    open_exec();
    ck_assert_int_eq(tfm_exec_run(exec, &too_many, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_exec_run(exec, &out_beyond, &err), TFM_STATUS_OUT_OF_RANGE);
    for (int k = 1; k <= 3; k++) { /* each of the three adds may be the one that fails */
        memory_backend_control.fail_runs = k;
        for (int left = k; left > 0; left--) {
            ck_assert_int_eq(run(ROWS), TFM_STATUS_BACKEND);
            ck_assert_ptr_nonnull(strstr(err.text, "told to fail"));
        }
        ck_assert_msg(run(ROWS) == TFM_STATUS_OK, "%s", err.text);
        check_z(ROWS);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tcase = tests_case(suite, "plan");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, nodes_go_to_the_first_that_takes_them, 0, 2);
    tcase_add_test(tcase, refusals_are_told);
    tcase_add_test(tcase, notes_are_for_those_who_have_some);
    tcase_add_test(tcase, strict_refuses_a_fallback);
    tcase_add_loop_test(tcase, arena_by_lifetime, 0, 2);
    tcase_add_test(tcase, too_large_for_the_device);
    tcase_add_loop_test(tcase, weights_are_checked, 0, 3);
    tcase_add_test(tcase, compile_freezes);
    tcase_add_test(tcase, bad_runs_are_refused_and_the_exec_lives);
    return tests_run(suite);
}
