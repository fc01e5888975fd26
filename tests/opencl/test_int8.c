/* SPDX-License-Identifier: MIT
 * Linears with activations of 8 bits (TFM_ACT=int8): the formula, worked out a second time in double;
 * every way to multiply bytes gives the same bits; a way that is wrong is not taken. */
#include "tests/opencl/act_scene.h"

#include <math.h>

enum { LINEARS = 4 };

static void setup(void)
{
    scene_open("int8");
}

/* Values of x of very different size from block to block, and a block of zeros. */
static float *make_x(size_t in)
{
    float *x = floats(ROWS * in);
    for (size_t i = 0; i < ROWS * in; i++)
        x[i] = i / 32 % 7 == 3 ? 0 : parts_value(i, 3) * (float)(1 + i / 32 % 5 * 9) * 1.01f;
    return x;
}

/* What a row of x becomes: 127ths of the largest of its block, and back. */
static void rounded(const float *x, size_t in, double *to)
{
    for (size_t b = 0; b < in; b += 32) {
        float most = 0;
        for (size_t i = b; i < b + 32; i++)
            most = fmaxf(most, fabsf(x[i]));
        for (size_t i = b; i < b + 32; i++)
            to[i] = most > 0 ? nearbyint(x[i] * (127.0f / most)) * ((double)most / 127) : 0;
    }
}

/* y against sums in double of x, as integers or as it is. */
static void compare(const char *name, const float *x, const float *bias, const float *y, size_t n,
                    size_t in, size_t out, int integers)
{
    double *w = stored(name, in * out);
    double *row = calloc(in, sizeof *row);
    ck_assert_ptr_nonnull(row);
    for (size_t r = 0; r < n; r++) {
        if (integers)
            rounded(x + r * in, in, row);
        for (size_t k = 0; k < in && !integers; k++)
            row[k] = x[r * in + k];
        for (size_t o = 0; o < out; o++) {
            double sum = bias ? bias[o] : 0, size = fabs(sum);
            for (size_t k = 0; k < in; k++) {
                sum += row[k] * w[o * in + k];
                size += fabs(row[k] * w[o * in + k]);
            }
            ck_assert_msg(fabs(y[r * out + o] - sum) <= 2e-5 * (size + 1),
                          "%s, %zu rows: row %zu, output %zu: %g, not %g", name, n, r, o,
                          y[r * out + o], sum);
        }
    }
    free(row);
    free(w);
}

static const struct shape {
    enum tfm_dtype dtype;
    int64_t in, out;
} shapes[] = {
    {TFM_DTYPE_Q4_1, 576, 192}, {TFM_DTYPE_Q4_1, 32, 5}, {TFM_DTYPE_Q4_0, 96, 33},
    {TFM_DTYPE_Q4_0, 1536, 16}, {TFM_DTYPE_Q8_0, 64, 1}, {TFM_DTYPE_Q8_0, 2048, 47},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const uint32_t counts[] = {ROWS, TFM__CL_INT8_ROWS, 40, 33, TFM__CL_INT8_ROWS - 1, 5, 3, 2,
                                  1};
enum { N_COUNTS = sizeof counts / sizeof *counts };

/* launches = 1: with an op that has no phase, so that few rows are launches, too. */
static void declare(const struct shape *s, const float *bias, int launches)
{
    const int64_t shape[] = {0, s->in};
    struct tfm_tensor *const x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *b = NULL;

    if (launches)
        tfm_graph_output(graph, tfm_op_relu(graph, x), "z");

    if (bias) {
        ck_assert_int_eq(tfm_weights_set(weights, "b", TFM_DTYPE_F32, 1, &s->out, bias,
                                         (size_t)s->out * sizeof *bias, NULL),
                         TFM_STATUS_OK);
        b = tfm_graph_parameter(graph, "b", TFM_DTYPE_F32, 1, &s->out);
    }
    tfm_graph_output(graph,
                     tfm_op_linear(graph, x,
                                   parts_parameter(graph, weights, "w", s->dtype, s->out, s->in, 1),
                                   b),
                     "y");
}

/* Fault: the offset of unsigned weights is not taken out, a nibble or a scale is another block's, rounding
 * is not to the nearest, a last eight of rows or a last panel is not whole. */
START_TEST(the_formula)
{
    const struct shape *s = &shapes[_i % N_SHAPES];
    const size_t in = (size_t)s->in, out = (size_t)s->out;
    float *x = make_x(in), *y = floats(ROWS * out), *bias = floats(out), *z = floats(ROWS * in);

    for (size_t i = 0; i < out; i++)
        bias[i] = (float)i;
    declare(s, _i % 2 ? bias : NULL, _i >= N_SHAPES);
    compile();
    if (_i >= N_SHAPES)
        bind("z", z, ROWS * in);
    bind("x", x, ROWS * in);
    bind("y", y, ROWS * out);
    for (size_t i = 0; i < N_COUNTS; i++) {
        run(counts[i]);
        compare("w", x, _i % 2 ? bias : NULL, y, counts[i], in, out, 1);
    }
    free(x), free(y), free(bias), free(z);
}
END_TEST

/* Fault: bits depend on the way to multiply, on the split of the work or on how many rows there are. */
START_TEST(bits_depend_on_the_shape_alone)
{
    static const char *const ways[] = {NULL, "-DTFM_INT8_WAY=0"};
    static const uint32_t parts[] = {8, 1, 3};
    const struct shape *s = &shapes[_i % N_SHAPES];
    const size_t in = (size_t)s->in, out = (size_t)s->out;
    struct tfm__cl_device *device = parts_handle(&devices);
    const uint32_t most = device->parts;
    float *x = make_x(in), *y = floats(ROWS * out), *first = floats(ROWS * out);
    float *z = floats(ROWS * in);

    declare(s, NULL, _i >= N_SHAPES);
    for (size_t w = 0; w < 2; w++) {
        if (ways[w])
            device->settings.int8 = ways[w];
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            device->parts = parts[p];
            compile();
            bind("x", x, ROWS * in);
            bind("y", y, ROWS * out);
            if (_i >= N_SHAPES)
                bind("z", z, ROWS * in);
            for (size_t i = 0; i < N_COUNTS; i++) {
                run(counts[i]);
                if (w == 0 && p == 0 && i == 0)
                    memcpy(first, y, ROWS * out * sizeof *first);
                ck_assert_msg(memcmp(first, y, counts[i] * out * sizeof *first) == 0,
                              "%s, %u parts, %u rows: other bits", device->settings.int8, parts[p],
                              counts[i]);
            }
            undo();
        }
    }
    device->parts = most;
    free(x), free(y), free(first), free(z);
}
END_TEST

/* Fault: the integers that an earlier linear left are taken although x is another, or although a linear of
 * another kind has had the workspace since. */
START_TEST(linears_that_share_x)
{
    static const enum tfm_dtype types[LINEARS + 1] = {TFM_DTYPE_Q4_1, TFM_DTYPE_Q8_0, TFM_DTYPE_F16,
                                                      TFM_DTYPE_Q4_0, TFM_DTYPE_Q4_1};
    static const char *const w[] = {"w0", "w1", "w2", "w3", "w4"};
    static const char *const out[] = {"y0", "y1", "y2", "y3", "y4"};
    enum { IN = 96, OUT = 40 };
    const int64_t shape[] = {0, IN};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *z = tfm_graph_input(graph, "z", TFM_DTYPE_F32, 2, shape);
    static float y[LINEARS + 1][ROWS * OUT];
    float *values = make_x(IN), *other = make_x(IN);

    for (size_t i = 0; i < ROWS * IN; i++)
        other[i] = values[i] * -0.5f + 0.25f;
    for (size_t i = 0; i <= LINEARS; i++)
        tfm_graph_output(
            graph,
            tfm_op_linear(graph, i < LINEARS ? x : z,
                          parts_parameter(graph, weights, w[i], types[i], OUT, IN, (unsigned)i),
                          NULL),
            out[i]);
    compile();
    bind("x", values, ROWS * IN);
    bind("z", other, ROWS * IN);
    for (size_t i = 0; i <= LINEARS; i++)
        bind(out[i], y[i], ROWS * OUT);
    for (int round = 0; round < 2; round++) {
        run(ROWS);
        for (size_t i = 0; i <= LINEARS; i++)
            compare(w[i], i < LINEARS ? values : other, NULL, y[i], ROWS, IN, OUT,
                    types[i] != TFM_DTYPE_F16);
        for (size_t i = 0; i < ROWS * IN; i++)
            values[i] = -values[i] * 2;
    }
    free(values), free(other);
}
END_TEST

/* Fault: a NaN or an infinity becomes an ordinary number. */
START_TEST(what_is_no_number_stays_none)
{
    const struct shape s = {TFM_DTYPE_Q4_1, 64, 16};
    float *x = make_x(64), *y = floats(ROWS * 16);

    x[5 * 64 + 40] = NAN;
    x[6 * 64 + 3] = INFINITY;
    declare(&s, NULL, 0);
    compile();
    bind("x", x, ROWS * 64);
    bind("y", y, ROWS * 16);
    for (size_t i = 0; i < N_COUNTS; i++) {
        run(counts[i]);
        for (size_t r = 0; r < counts[i]; r++)
            ck_assert_msg(!isfinite(y[r * 16]) == (r == 5 || r == 6), "%u rows, row %zu: %g",
                          counts[i], r, y[r * 16]);
    }
    free(x), free(y);
}
END_TEST

/* ---- the choice ---- */

/* The assembly, or everything, adds one too many. */
static void spoil_sum(const char *made)
{
    char line[200];

    snprintf(line, sizeof line, "    return %s;", made);
    spoil("int8.cl", "^    return acc;", line);
}

/* Fault: the proof looks away. */
START_TEST(a_wrong_way_is_not_taken)
{
    struct test_devices d;
    struct tfm_error err = {0};

    spoil_sum("acc + 1");
    setenv("TFM_ACT", "int8", 1);
    ck_assert_int_eq(parts_try(&d, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "TFM_ACT=f32"), "%s", err.text);
    test_devices_close(&d);
    memset(&err, 0, sizeof err);
    setenv("TFM_ACT", "auto", 1);
    ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm__cl_int8_settle(parts_handle(&d));
    ck_assert_int_eq(parts_handle(&d)->settings.act, TFM__CL_ACT_F32);
    test_devices_close(&d);
    unspoil();
    spoil_sum("TFM_INT8_WAY == TFM_INT8_PLAIN ? acc : acc + 1");
    memset(&err, 0, sizeof err);
    setenv("TFM_ACT", "int8", 1);
    ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_str_eq(parts_handle(&d)->settings.int8, "-DTFM_INT8_WAY=0");
    test_devices_close(&d);
    unspoil();
    unsetenv("TFM_ACT");
}
END_TEST

/* Faults: each start compiles, or looks for, one program more than it needs; a compiler that does not know the
 * assembly costs the device. */
START_TEST(the_common_program_holds_the_proof)
{
    const struct tfm__cl_kernel common = {NULL, NULL, NULL};
    struct tfm_error err = {0};

    setenv("TFM_ACT", "auto", 1);
    for (int builds = 1; builds >= 0; builds--) {
        struct test_devices d;
        cl_program program = NULL;
        cl_int code = CL_SUCCESS;
        if (!builds)
            spoil_sum(
                "acc;\\n#if TFM_INT8_WAY == 2\\n#error not this way\\n#endif\\n    return acc");
        ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
        struct tfm__cl_device *device = parts_handle(&d);
        const int may = tfm__cl_int8_guess(device) != NULL;
        ck_assert_int_eq(device->proof != NULL, may && builds);
        ck_assert_int_eq(tfm__cl_program_of(device, &common, &program, &err), TFM_STATUS_OK);
        const cl_kernel kernel = clCreateKernel(program, "tfm_run_int8_proof", &code);
        ck_assert_int_eq(code == CL_SUCCESS, may && builds);
        if (kernel)
            (void)clReleaseKernel(kernel);
        const struct tfm__cl_built *before = device->built;
        tfm__cl_int8_settle(device);
        if (may && builds)
            ck_assert_ptr_eq(device->built, before);
        ck_assert_int_eq(device->settings.act, may && builds ? TFM__CL_ACT_INT8 : TFM__CL_ACT_F32);
        test_devices_close(&d);
    }
    unspoil();
    unsetenv("TFM_ACT");
}
END_TEST

/* Fault: an unknown word is taken for the default, or the error does not say which there are. */
START_TEST(an_unknown_choice_is_an_error)
{
    struct test_devices d;
    struct tfm_error err = {0};

    setenv("TFM_ACT", "int4", 1);
    ck_assert_int_eq(parts_try(&d, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "TFM_ACT is 'int4'") &&
                      strstr(err.text, "auto, f32, int8, bf16"),
                  "%s", err.text);
    test_devices_close(&d);
}
END_TEST

/* Fault: what is taken without a word is not `auto`, or f32 does not turn it off. */
START_TEST(the_default_is_auto)
{
    static const char *const words[] = {NULL, "auto", "f32"};
    int taken[3];

    for (size_t i = 0; i < 3; i++) {
        struct test_devices d;
        struct tfm_error err = {0};
        if (words[i])
            setenv("TFM_ACT", words[i], 1);
        else
            unsetenv("TFM_ACT");
        ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
        /* found out when it is wanted: who multiplies nothing does without the proof */
        ck_assert_int_eq(parts_handle(&d)->settings.act,
                         i < 2 ? TFM__CL_ACT_AUTO : TFM__CL_ACT_F32);
        tfm__cl_int8_settle(parts_handle(&d));
        taken[i] = parts_handle(&d)->settings.act;
        ck_assert_int_ne(taken[i], TFM__CL_ACT_AUTO);
        test_devices_close(&d);
    }
    ck_assert_int_eq(taken[0], taken[1]);
    ck_assert_int_eq(taken[2], TFM__CL_ACT_F32);
    unsetenv("TFM_ACT");
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("int8");
    TCase *tcase = tests_case(suite, "linear"), *choice = tests_case(suite, "choice");
    tcase_add_checked_fixture(tcase, setup, scene_close);
    tcase_add_loop_test(tcase, the_formula, 0, 2 * N_SHAPES);
    tcase_add_loop_test(tcase, bits_depend_on_the_shape_alone, 0, 2 * N_SHAPES);
    tcase_add_test(tcase, linears_that_share_x);
    tcase_add_test(tcase, what_is_no_number_stays_none);
    tcase_add_test(choice, a_wrong_way_is_not_taken);
    tcase_add_test(choice, the_common_program_holds_the_proof);
    tcase_add_test(choice, an_unknown_choice_is_an_error);
    tcase_add_test(choice, the_default_is_auto);
    return tests_run(suite);
}
