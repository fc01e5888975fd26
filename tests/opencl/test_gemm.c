/* SPDX-License-Identifier: MIT
 * Linears with many rows through CLBlast (TFM_OPENCL_GEMM=clblast): cut into blocks of output rows, unpacked, multiplied by CLBlast, stored; and
 * the proof that keeps wrong parameters of CLBlast out. */
#include "tests/opencl/parts.h"

#include <math.h>

#include "backends/opencl/counters.h"

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;

static void setup(void)
{
    setenv("TFM_OPENCL_GEMM", "clblast", 1);
    parts_open(&devices);
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    test_devices_close(&devices);
}

static uint64_t sgemm_calls(void)
{
    const struct tfm_opencl_counters *counters =
        tfm_device_extension(devices.device[0], TFM_OPENCL_COUNTERS);
    ck_assert_ptr_nonnull(counters);
    return counters->sgemm_calls();
}

static uint64_t kernel_launches(void)
{
    const struct tfm_opencl_counters *counters =
        tfm_device_extension(devices.device[0], TFM_OPENCL_COUNTERS);
    return counters->kernel_launches();
}

static struct tfm_tensor *input(const char *name, int64_t width)
{
    const int64_t shape[] = {0, width};
    return tfm_graph_input(graph, name, TFM_DTYPE_F32, 2, shape);
}

static struct tfm_plan *compile(uint32_t rows)
{
    const struct tfm_capacity capacity = {rows, 1, rows};
    struct tfm_plan *plan = NULL;
    struct tfm_error err = {0};
    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    return plan;
}

static void run(struct tfm_exec *exec, uint32_t n, uint32_t n_out, const int32_t *out)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {n, 1, n_out, &zero, &zero, &zero, out};
    struct tfm_error err = {0};
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void bind(struct tfm_exec *exec, const char *name, void *memory, size_t bytes)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_exec_bind(exec, name, memory, bytes, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* y[n][o] against sums in double of values that every dtype holds closely enough to compare with the
 * quantized weight itself. */
static void compare(const float *x, const float *weight, const float *bias, const float *y,
                    size_t rows, size_t in, size_t out)
{
    for (size_t n = 0; n < rows; n += 5) {
        for (size_t o = 0; o < out; o++) {
            double sum = bias ? bias[o] : 0;
            for (size_t k = 0; k < in; k++)
                sum += (double)x[n * in + k] * weight[o * in + k];
            ck_assert_msg(fabs(y[n * out + o] - sum) < 1e-5 * (100 + fabs(sum)),
                          "row %zu, output %zu of %zu: %g, not %g", n, o, out, y[n * out + o], sum);
        }
    }
}

/* The values that a parameter of parts_parameter really has. */
static float *stored_values(const char *name, size_t n)
{
    enum tfm_dtype dtype;
    struct tfm_weight weight;
    float *values = malloc(n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    ck_assert_int_eq(tfm_weights_get(weights, name, &dtype, &weight, NULL), TFM_STATUS_OK);
    tfm_dtype_to_f32(dtype, weight.data, 0, n, values);
    return values;
}

/* Fault: the second block of output rows reads the first one's weights, lands in the wrong columns or
 * loses its bias; rows or `in` that do not fill a tile; the rows on both sides of the switch to GEMM.
 * 1088 x 1100 floats need two blocks, the second with a ragged panel. */
START_TEST(blocks_of_output_rows)
{
    static const struct {
        enum tfm_dtype dtype;
        int64_t in, out;
        unsigned calls; /* of SGEMM a run */
    } cases[] = {
        {TFM_DTYPE_Q4_1, 1088, 1100, 2}, {TFM_DTYPE_Q8_0, 1088, 1100, 2},
        {TFM_DTYPE_F32, 1083, 1100, 2},  {TFM_DTYPE_Q4_0, 96, 33, 1},
        {TFM_DTYPE_F16, 7, 5, 1},        {TFM_DTYPE_BF16, 33, 17, 1},
    };
    enum { ROWS = 67 };
    const int64_t in = cases[_i].in, out = cases[_i].out;
    struct tfm_exec *exec = NULL;
    struct tfm_tensor *bias;
    struct tfm_error err = {0};
    float *x = malloc(sizeof *x * (size_t)(ROWS * in)),
          *y = malloc(sizeof *y * (size_t)(ROWS * out));
    float *b = malloc(sizeof *b * (size_t)out);

    ck_assert(x && y && b);
    for (size_t i = 0; i < (size_t)(ROWS * in); i++)
        x[i] = parts_value(i, 3);
    for (size_t i = 0; i < (size_t)out; i++)
        b[i] = (float)i;
    ck_assert_int_eq(
        tfm_weights_set(weights, "b", TFM_DTYPE_F32, 1, &out, b, sizeof *b * (size_t)out, NULL),
        TFM_STATUS_OK);
    bias = tfm_graph_parameter(graph, "b", TFM_DTYPE_F32, 1, &out);
    tfm_graph_output(
        graph,
        tfm_op_linear(graph, input("x", in),
                      parts_parameter(graph, weights, "w", cases[_i].dtype, out, in, 1), bias),
        "y");
    struct tfm_plan *plan = compile(ROWS);
    float *w = stored_values("w", (size_t)(in * out));
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    bind(exec, "x", x, sizeof *x * (size_t)(ROWS * in));
    bind(exec, "y", y, sizeof *y * (size_t)(ROWS * out));
    static const uint32_t counts[] = {ROWS, TFM__CL_GEMM_ROWS, TFM__CL_GEMM_ROWS - 1, 64};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const uint64_t before = sgemm_calls();
        run(exec, counts[i], 0, NULL);
        ck_assert_uint_eq(sgemm_calls() - before,
                          counts[i] < TFM__CL_GEMM_ROWS ? 0 : cases[_i].calls);
        compare(x, w, b, y, counts[i], (size_t)in, (size_t)out);
    }
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    free(x), free(y), free(b), free(w);
}
END_TEST

/* Fault: x that was turned for the node before is taken although this node has another x, or the same
 * tensor with other values: b follows a with the same x, c has its own, d has that of a again. And the
 * linear behind take_rows has rows of its own number. */
START_TEST(linears_that_share_x)
{
    enum { ROWS = 64, KEPT = 50, WIDTH = 64 };
    static float x[ROWS * WIDTH], z[ROWS * WIDTH], y[5][ROWS * WIDTH];
    static const char *const w[] = {"wa", "wb", "wc", "wd", "we"};
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct tfm_tensor *in = input("x", WIDTH), *other = input("z", WIDTH);
    struct tfm_tensor *from[] = {in, in, other, in, tfm_op_take_rows(graph, in)};
    struct tfm_exec *exec = NULL;
    struct tfm_error err = {0};
    int32_t kept[KEPT];

    for (size_t i = 0; i < 5; i++)
        tfm_graph_output(graph,
                         tfm_op_linear(graph, from[i],
                                       parts_parameter(graph, weights, w[i], TFM_DTYPE_F32, WIDTH,
                                                       WIDTH, (unsigned)i),
                                       NULL),
                         names[i]);
    struct tfm_plan *plan = compile(ROWS);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    bind(exec, "x", x, sizeof x);
    bind(exec, "z", z, sizeof z);
    for (size_t i = 0; i < 5; i++)
        bind(exec, names[i], y[i], sizeof y[i]);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < ROWS * WIDTH; i++) {
            x[i] = parts_value(i, 3 + round);
            z[i] = parts_value(i, 7 + round);
        }
        for (int32_t i = 0; i < KEPT; i++)
            kept[i] = ROWS - 1 - i;
        run(exec, ROWS, KEPT, kept);
        for (size_t i = 0; i < 5; i++) {
            static float gathered[KEPT * WIDTH];
            float *values = stored_values(w[i], WIDTH * WIDTH);
            for (size_t n = 0; n < KEPT; n++)
                memcpy(gathered + n * WIDTH, x + (size_t)kept[n] * WIDTH, WIDTH * sizeof *x);
            compare(i == 4   ? gathered
                    : i == 2 ? z
                             : x,
                    values, NULL, y[i], i == 4 ? KEPT : ROWS, WIDTH, WIDTH);
            free(values);
        }
    }
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
}
END_TEST

/* Fault: the counter of launches stands still, so that other tests that read it prove nothing. */
START_TEST(launches_are_counted)
{
    enum { WIDTH = 32, N = TFM__CL_FEW_ROWS + 1 }; /* fewer rows are one launch */
    static float x[N * WIDTH], y[N * WIDTH];
    struct tfm_tensor *in = input("x", WIDTH);
    struct tfm_exec *exec = NULL;

    tfm_graph_output(graph, tfm_op_add(graph, tfm_op_add(graph, in, in), in), "y");
    struct tfm_plan *plan = compile(N);
    ck_assert_int_eq(tfm_exec_create(plan, &exec, NULL), TFM_STATUS_OK);
    bind(exec, "x", x, sizeof x);
    bind(exec, "y", y, sizeof y);
    const uint64_t before = kernel_launches();
    run(exec, N, 0, NULL);
    ck_assert_uint_eq(kernel_launches() - before, 2);
    ck_assert_ptr_null(tfm_device_extension(devices.device[0], "opencl.counters-2"));
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
}
END_TEST

/* Fault: a set of parameters that CLBlast accepts and that computes wrong values is believed. This one
 * is far off on PoCL 3.1, in every product that was tried. */
START_TEST(the_proof_sees_wrong_parameters)
{
    static const size_t wrong[TFM__CL_GEMM_PARAMETERS] = {1, 8, 1, 1, 1, 1, 16, 1,
                                                          1, 8, 0, 0, 0, 0, 8,  8};
    struct tfm__cl_device *device = parts_handle(&devices);
    struct tfm_error err = {0};
    int right = -1;

    ck_assert_int_eq(tfm__cl_gemm_set(device, wrong), 1);
    ck_assert_msg(tfm__cl_gemm_prove(device, &right, &err) != TFM_STATUS_OK || !right,
                  "wrong parameters passed the proof");
    ck_assert_msg(tfm__cl_gemm_prepare(device, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm__cl_gemm_prove(device, &right, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(right, 1);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("gemm");
    TCase *tcase = tests_case(suite, "gemm");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, blocks_of_output_rows, 0, 6);
    tcase_add_test(tcase, linears_that_share_x);
    tcase_add_test(tcase, launches_are_counted);
    tcase_add_test(tcase, the_proof_sees_wrong_parameters);
    return tests_run(suite);
}
