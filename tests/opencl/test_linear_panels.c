/* SPDX-License-Identifier: MIT
 * Linears with many rows through our own kernel: every type of weight, widths that fill no tile, rows of
 * weights longer than what is unpacked at once; and bits that depend on the shape alone. */
#include "tests/opencl/parts.h"

#include <math.h>

#include "backends/opencl/counters.h"

enum { ROWS = 67 };

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;

static void setup(void)
{
    setenv("TFM_OPENCL_GEMM", "own", 1);
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

/* One linear of the graph, from x to y, as it was compiled. */
struct linear {
    size_t in, out;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    float *x, *y, *bias;
};

static void declare(struct linear *l, enum tfm_dtype dtype, int64_t in, int64_t out, int with_bias)
{
    const int64_t shape[] = {0, in};
    const size_t n = (size_t)out;
    struct tfm_tensor *bias = NULL;

    *l = (struct linear){.in = (size_t)in, .out = n};
    l->x = malloc(ROWS * l->in * sizeof *l->x);
    l->y = malloc(ROWS * n * sizeof *l->y);
    l->bias = calloc(n, sizeof *l->bias);
    ck_assert(l->x && l->y && l->bias);
    for (size_t i = 0; i < ROWS * l->in; i++)
        l->x[i] = parts_value(i, 3);
    if (with_bias) {
        for (size_t i = 0; i < n; i++)
            l->bias[i] = (float)(i % 200);
        ck_assert_int_eq(tfm_weights_set(weights, "b", TFM_DTYPE_F32, 1, &out, l->bias,
                                         n * sizeof *l->bias, NULL),
                         TFM_STATUS_OK);
        bias = tfm_graph_parameter(graph, "b", TFM_DTYPE_F32, 1, &out);
    }
    tfm_graph_output(graph,
                     tfm_op_linear(graph, tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape),
                                   parts_parameter(graph, weights, "w", dtype, out, in, 1), bias),
                     "y");
}

static void compile(struct linear *l)
{
    const struct tfm_capacity capacity = {ROWS, 1, ROWS};
    struct tfm_error err = {0};

    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &l->plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(l->plan, &l->exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_exec_bind(l->exec, "x", l->x, ROWS * l->in * sizeof *l->x, NULL),
                     TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(l->exec, "y", l->y, ROWS * l->out * sizeof *l->y, NULL),
                     TFM_STATUS_OK);
}

static void run(struct linear *l, uint32_t n)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {n, 1, 0, &zero, &zero, &zero, NULL};
    struct tfm_error err = {0};

    for (size_t i = 0; i < ROWS * l->out; i++)
        l->y[i] = NAN;
    ck_assert_msg(tfm_exec_run(l->exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void undo(struct linear *l)
{
    tfm_exec_destroy(l->exec);
    tfm_plan_destroy(l->plan);
    l->exec = NULL;
    l->plan = NULL;
}

static void drop(struct linear *l)
{
    undo(l);
    free(l->x);
    free(l->y);
    free(l->bias);
}

/* y[n][o] against sums in double of the values that the weight really has. */
static void compare(const struct linear *l, size_t n)
{
    enum tfm_dtype dtype;
    struct tfm_weight weight;
    float *w = malloc(l->in * l->out * sizeof *w);

    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(tfm_weights_get(weights, "w", &dtype, &weight, NULL), TFM_STATUS_OK);
    tfm_dtype_to_f32(dtype, weight.data, 0, l->in * l->out, w);
    for (size_t row = 0; row < n; row += row + 3 < n ? 3 : 1) {
        for (size_t o = 0; o < l->out; o++) {
            double sum = l->bias[o];
            for (size_t k = 0; k < l->in; k++)
                sum += (double)l->x[row * l->in + k] * w[o * l->in + k];
            ck_assert_msg(fabs(l->y[row * l->out + o] - sum) < 1e-5 * (100 + fabs(sum)),
                          "%zu rows: row %zu, output %zu: %g, not %g", n, row, o,
                          l->y[row * l->out + o], sum);
        }
    }
    free(w);
}

static const struct shape {
    enum tfm_dtype dtype;
    int64_t in, out;
    int bias;
} shapes[] = {
    {TFM_DTYPE_Q4_1, 576, 192, 0}, {TFM_DTYPE_Q4_1, 2112, 50, 1}, {TFM_DTYPE_Q4_0, 96, 33, 1},
    {TFM_DTYPE_Q4_0, 4128, 16, 0}, {TFM_DTYPE_Q8_0, 32, 100, 1},  {TFM_DTYPE_Q8_0, 2048, 17, 1},
    {TFM_DTYPE_F32, 2055, 34, 1},  {TFM_DTYPE_F32, 1, 1, 0},      {TFM_DTYPE_F16, 7, 5, 1},
    {TFM_DTYPE_F16, 4097, 48, 1},  {TFM_DTYPE_BF16, 33, 31, 0},   {TFM_DTYPE_BF16, 2049, 65, 1},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Fault: a pair of panels whose second one is not there, columns or rows that fill no tile, the sums of a
 * second piece of k begun anew or its bias added twice, a row on the wrong side of the switch. */
START_TEST(shapes_that_fill_no_tile)
{
    static const uint32_t counts[] = {ROWS, TFM__CL_PANELS_ROWS, TFM__CL_PANELS_ROWS - 1, 64, 41};
    const struct tfm_opencl_counters *counters =
        tfm_device_extension(devices.device[0], TFM_OPENCL_COUNTERS);
    struct linear l;

    declare(&l, shapes[_i].dtype, shapes[_i].in, shapes[_i].out, shapes[_i].bias);
    compile(&l);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        run(&l, counts[i]);
        compare(&l, counts[i]);
        for (size_t k = counts[i] * l.out; k < ROWS * l.out; k++)
            ck_assert_msg(isnan(l.y[k]), "%u rows: row %zu was written", counts[i], k / l.out);
    }
    ck_assert_uint_eq(counters->sgemm_calls(), 0);
    drop(&l);
}
END_TEST

/* Fault: the order of a sum depends on how many rows there are or on how the work is split. */
START_TEST(bits_depend_on_the_shape_alone)
{
    static const uint32_t parts[] = {1, 2, 3, 5, 8}, counts[] = {ROWS, 61, TFM__CL_PANELS_ROWS};
    struct tfm__cl_device *device = parts_handle(&devices);
    const uint32_t most = device->parts;
    struct linear l;

    declare(&l, shapes[_i].dtype, shapes[_i].in, shapes[_i].out, shapes[_i].bias);
    float *first = malloc(ROWS * l.out * sizeof *first);
    ck_assert_ptr_nonnull(first);
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        device->parts = parts[p];
        compile(&l);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            run(&l, counts[i]);
            if (p == 0 && i == 0)
                memcpy(first, l.y, ROWS * l.out * sizeof *first);
            ck_assert_msg(memcmp(first, l.y, counts[i] * l.out * sizeof *first) == 0,
                          "%u parts, %u rows: other bits", parts[p], counts[i]);
        }
        undo(&l);
    }
    device->parts = most;
    free(first);
    drop(&l);
}
END_TEST

/* Fault: an unknown word is taken for the default, or the error does not say which there are. */
START_TEST(an_unknown_choice_is_an_error)
{
    struct test_devices other;
    struct tfm_error err = {0};

    setenv("TFM_OPENCL_GEMM", "fast", 1);
    ck_assert_int_eq(parts_try(&other, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "TFM_OPENCL_GEMM") && strstr(err.text, "'fast'") &&
                      strstr(err.text, "auto, own, clblast"),
                  "%s", err.text);
    test_devices_close(&other);
    setenv("TFM_OPENCL_GEMM", "", 1);
    memset(&err, 0, sizeof err);
    ck_assert_msg(parts_try(&other, &err) == TFM_STATUS_OK, "%s", err.text);
    test_devices_close(&other);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("linear panels");
    TCase *tcase = tests_case(suite, "linear panels");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, shapes_that_fill_no_tile, 0, N_SHAPES);
    tcase_add_loop_test(tcase, bits_depend_on_the_shape_alone, 0, N_SHAPES);
    tcase_add_test(tcase, an_unknown_choice_is_an_error);
    return tests_run(suite);
}
