/* SPDX-License-Identifier: MIT
 * Sums and maxima that work-items share through local memory (cases A37, A39): rows of many widths, groups of
 * many sizes, again and again. Would catch a barrier that is missing before a cell is used anew, a loop around a
 * barrier that a compiler turns wrong, a width that is no multiple of a group, a size of a group that the device
 * does not take. PoCL 3.1 compiles loops around barriers in two ways; both are run. */
#include <check.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tfm/graph.h>

#include "tests/opencl/parts.h"

enum { ROWS = 3, RUNS = 50, DIM = 16, CELLS = 1000, ATTENTION_RUNS = 5 };

static const int64_t widths[] = {1, 2, 255, 256, 257, 1000};
static const char *const groups[] = {"1", "3", "64", "256"};
static const char *const methods[] = {NULL, "loopvec"}; /* of POCL_WORK_GROUP_METHOD */
enum { WIDTHS = 6, GROUPS = 4, METHODS = 2 };

static struct test_devices devices;
static struct tfm_error err;

static void ok(enum tfm_status status)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

/* Settings are read when a device is opened. Loop i: a size of groups and a way to compile. */
static void open_grouped(int i)
{
    const char *method = methods[i / GROUPS];

    ck_assert_int_eq(setenv("TFM_OPENCL_SHAPE", "group", 1), 0);
    ck_assert_int_eq(setenv("TFM_OPENCL_MAX_GROUP", groups[i % GROUPS], 1), 0);
    if (method) {
        /* its cache does not tell the ways apart */
        const char *cache = getenv("POCL_CACHE_DIR");
        char folder[1024];
        snprintf(folder, sizeof folder, "%.900s/%s", cache ? cache : "/tmp", method);
        ck_assert(mkdir(folder, 0777) == 0 || errno == EEXIST);
        ck_assert_int_eq(setenv("POCL_CACHE_DIR", folder, 1), 0);
        ck_assert_int_eq(setenv("POCL_WORK_GROUP_METHOD", method, 1), 0);
    }
    parts_open(&devices);
}

/* A graph of one op that runs again and again. */
struct scene {
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
};

static void compile(struct scene *s, uint32_t rows)
{
    const struct tfm_capacity capacity = {.rows = rows, .sequences = 1, .out_rows = 1};

    ok(tfm_graph_check(s->graph, &err));
    ok(tfm_plan_compile(s->graph, s->weights, devices.device, 1, &capacity, &s->plan, &err));
    ok(tfm_exec_create(s->plan, &s->exec, &err));
}

static void close_scene(struct scene *s)
{
    tfm_exec_destroy(s->exec);
    tfm_plan_destroy(s->plan);
    tfm_weights_release(s->weights);
    tfm_graph_destroy(s->graph);
}

static void run(const struct scene *s, uint32_t rows)
{
    const int32_t zero = 0;
    const struct tfm_rows all = {
        .n = rows, .n_seq = 1, .slot = &zero, .start = &zero, .past = &zero};
    ok(tfm_exec_run(s->exec, &all, &err));
}

/* ---- sums: rms_norm over rows of a width ---- */

static void norm_rows(int64_t width)
{
    static float x[ROWS * 1000], y[ROWS * 1000], first[ROWS * 1000];
    const size_t bytes = sizeof *x * ROWS * (size_t)width;
    const int64_t shape[] = {0, width}, gamma_shape[] = {width};
    float gamma[1000];
    struct scene s = {0};

    for (size_t i = 0; i < ROWS * (size_t)width; i++)
        x[i] = parts_value(i, (unsigned)width) + 0.01f;
    for (int64_t i = 0; i < width; i++)
        gamma[i] = 1.0f;
    ok(tfm_graph_create(&s.graph, &err));
    ok(tfm_weights_create(&s.weights, &err));
    ok(tfm_weights_set(s.weights, "gamma", TFM_DTYPE_F32, 1, gamma_shape, gamma,
                       sizeof *gamma * (size_t)width, &err));
    tfm_graph_output(
        s.graph,
        tfm_op_rms_norm(s.graph, tfm_graph_input(s.graph, "x", TFM_DTYPE_F32, 2, shape),
                        tfm_graph_parameter(s.graph, "gamma", TFM_DTYPE_F32, 1, gamma_shape), 1e-5),
        "y");
    compile(&s, ROWS);
    ok(tfm_exec_bind(s.exec, "x", x, bytes, &err));
    ok(tfm_exec_bind(s.exec, "y", y, bytes, &err));
    for (int r = 0; r < RUNS; r++) {
        memset(y, 0xff, bytes);
        run(&s, ROWS);
        if (r == 0)
            memcpy(first, y, bytes);
        ck_assert_msg(memcmp(first, y, bytes) == 0, "width %d, run %d: other bits", (int)width, r);
    }
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int64_t i = 0; i < width; i++)
            sum += (double)x[row * width + i] * x[row * width + i];
        const double scale = 1 / sqrt(sum / (double)width + 1e-5);
        for (int64_t i = 0; i < width; i++)
            ck_assert_msg(fabs(y[row * width + i] - x[row * width + i] * scale) < 1e-5,
                          "width %d, row %d, column %d: %g instead of %g", (int)width, row, (int)i,
                          (double)y[row * width + i], x[row * width + i] * scale);
    }
    close_scene(&s);
}

START_TEST(sums_of_rows)
{
    open_grouped(_i);
    for (int w = 0; w < WIDTHS; w++)
        norm_rows(widths[w]);
    test_devices_close(&devices);
}
END_TEST

/* ---- maxima and sums: attention over 1 to 1000 cells ---- */

static float q[CELLS * DIM], k[CELLS * DIM], v[CELLS * DIM];

static double score(int row, int cell)
{
    double sum = 0;
    for (int i = 0; i < DIM; i++)
        sum += (double)q[row * DIM + i] * k[cell * DIM + i];
    return sum * 0.25; /* 1 / sqrt(DIM) */
}

/* Row `row` of attention, naively: it sees cells 0 to row. */
static void attend(int row, double y[DIM])
{
    double most = -INFINITY, mass = 0;

    for (int cell = 0; cell <= row; cell++)
        most = fmax(most, score(row, cell));
    for (int i = 0; i < DIM; i++)
        y[i] = 0;
    for (int cell = 0; cell <= row; cell++) {
        const double weight = exp(score(row, cell) - most);
        mass += weight;
        for (int i = 0; i < DIM; i++)
            y[i] += weight * v[cell * DIM + i];
    }
    for (int i = 0; i < DIM; i++)
        y[i] /= mass;
}

START_TEST(maxima_of_rows)
{
    static float y[CELLS * DIM], first[CELLS * DIM];
    const int64_t shape[] = {0, 1, DIM};
    const char *const names[] = {"q", "k", "v"};
    float *const values[] = {q, k, v};
    struct tfm_tensor *in[3];
    struct scene s = {0};

    open_grouped(_i);
    ok(tfm_graph_create(&s.graph, &err));
    ok(tfm_weights_create(&s.weights, &err));
    for (int i = 0; i < 3; i++) {
        in[i] = tfm_graph_input(s.graph, names[i], TFM_DTYPE_F32, 3, shape);
        for (size_t n = 0; n < CELLS * DIM; n++)
            values[i][n] = 2 * parts_value(n, (unsigned)i);
    }
    tfm_graph_output(s.graph, tfm_op_gqa_attention(s.graph, in[0], in[1], in[2], NULL, NULL, 0),
                     "y");
    compile(&s, CELLS);
    for (int i = 0; i < 3; i++)
        ok(tfm_exec_bind(s.exec, names[i], values[i], sizeof q, &err));
    ok(tfm_exec_bind(s.exec, "y", y, sizeof y, &err));
    for (int r = 0; r < ATTENTION_RUNS; r++) {
        memset(y, 0xff, sizeof y);
        run(&s, CELLS);
        if (r == 0)
            memcpy(first, y, sizeof y);
        ck_assert_msg(memcmp(first, y, sizeof y) == 0, "run %d: other bits", r);
    }
    for (int w = 0; w < WIDTHS; w++) {
        const int row = (int)widths[w] - 1;
        double want[DIM];
        attend(row, want);
        for (int i = 0; i < DIM; i++)
            ck_assert_msg(fabs(y[row * DIM + i] - want[i]) < 1e-5,
                          "%d cells, value %d: %g instead of %g", row + 1, i,
                          (double)y[row * DIM + i], want[i]);
    }
    close_scene(&s);
    test_devices_close(&devices);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("group sums");
    TCase *tcase = tests_case(suite, "sums");

    tcase_set_timeout(tcase, 180); /* kernels are compiled for each group */
    tcase_add_loop_test(tcase, sums_of_rows, 0, GROUPS * METHODS);
    tcase_add_loop_test(tcase, maxima_of_rows, 0, GROUPS * METHODS);
    return tests_run(suite);
}
