/* SPDX-License-Identifier: MIT
 * layer_norm: every float dtype, odd widths, ranks, in place, guards, offsets; case A07. */
#include <math.h>

#include "tests/ops/trial.h"

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};
static struct tfm_tensor *x, *gain, *shift;
static double eps;

/* In long double, so that the differences keep their digits whatever the order of the sums. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t width = x->shape[x->rank - 1];
    const int64_t vectors = rows->n * tfm_tensor_row_elements(x) / width;

    for (int64_t n = 0; n < vectors; n++) {
        const double *row = trial->values[x->id] + n * width;
        long double mean = 0, square = 0;
        for (int64_t i = 0; i < width; i++)
            mean += (long double)row[i] / (long double)width;
        for (int64_t i = 0; i < width; i++)
            square += ((long double)row[i] - mean) * ((long double)row[i] - mean);
        const long double root = sqrtl(square / (long double)width + (long double)eps);
        for (int64_t i = 0; i < width; i++) {
            const long double y =
                ((long double)row[i] - mean) / root * (long double)trial->values[gain->id][i] +
                (shift ? (long double)trial->values[shift->id][i] : 0);
            want[n * width + i] = (double)y;
        }
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int rank, int64_t d1,
                  int64_t d2, int has_beta, double e)
{
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
    const int64_t width = rank == 2 ? d1 : d2;

    trial_begin(t, rows, "layer_norm %s rank %d [N, %lld, %lld] eps %g%s", tfm_dtype_name(dtype),
                rank, (long long)d1, (long long)d2, e, has_beta ? "" : " without beta");
    t->row_tolerance = 1e-5;
    eps = e;
    x = trial_input(t, "x", dtype, rank, d1, d2);
    gain = trial_parameter(t, "gamma", real, 1, width, 0);
    shift = has_beta ? trial_parameter(t, "beta", real, 1, width, 0) : NULL;
    trial_output(t, tfm_op_layer_norm(t->graph, x, gain, shift, e));
}

/* Fault: a partial vector is left out of a sum or not written; in place, a row is read after it was
 * written; a row takes the mean of another. Rows differ in size by powers of ten and in mean. */
START_TEST(widths)
{
    static const int64_t widths[] = {2, 3, 7, 31, 33, 65, 576, 1536};

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        build(&t, w < 6 ? 129 : 33, dtypes[_i], 2, widths[w], 0, w % 3 != 1, 1e-5);
        for (size_t i = 0; i < trial_count(&t, x); i++) {
            const size_t row = i / (size_t)widths[w];
            double v;
            trial_get(&t, x, i, 1, &v);
            v = (v + (double)(row % 3) - 1) * pow(10, (double)(row % 4) - 1);
            trial_set(&t, x, i, 1, &v);
        }
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: a row of [N, H, d] is normed over all of its heads. */
START_TEST(last_extent_only)
{
    struct trial t;

    build(&t, 33, dtypes[_i], 3, 3, 7, 1, 1e-5);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* A07. Fault: the variance is mean(x^2) - mean(x)^2, which cancels and may turn negative. */
START_TEST(a07_large_mean)
{
    static const double row[] = {20000, 20002, 20004, 20006};
    static const double want[] = {-1.341639, -0.447213, 0.447213, 1.341639};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    if (dtypes[_i] == TFM_DTYPE_F16 || dtypes[_i] == TFM_DTYPE_BF16)
        return; /* they do not hold these values */
    build(&t, 1, dtypes[_i], 2, 4, 0, 1, 1e-5);
    trial_set_all(&t, gain, 1);
    trial_set_all(&t, shift, 0);
    trial_set(&t, x, 0, 4, row);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 4, 1e-4);
    }
    trial_end(&t);
}
END_TEST

/* A07. Fault: a constant row has a variance, so that eps does not silence it. 0.1 is no binary fraction:
 * its sum is rounded, on other backends than the reference maybe the mean, too. beta comes through
 * exactly. */
START_TEST(a07_constant_row)
{
    static const double values[] = {777.5, 0.1, -3e4, 0};
    static const int64_t widths[] = {96, 97, 1, 1000};
    const struct tfm_rows rows = trial_rows(4, 0);

    for (int w = 0; w < 4; w++) {
        struct trial t;
        build(&t, 4, dtypes[_i], 2, widths[w], 0, 1, 1e-5);
        trial_set_all(&t, gain, 1);
        trial_set_all(&t, shift, 0.25);
        for (size_t i = 0; i < trial_count(&t, x); i++)
            trial_set(&t, x, i, 1, &values[i / (size_t)widths[w]]);
        if (trial_open(&t, 0)) {
            trial_run(&t, &rows, TFM_STATUS_OK);
            for (size_t i = 0; i < trial_count(&t, t.output); i++) {
                double y;
                trial_get(&t, t.output, i, 1, &y);
                const double slack =
                    values[i / (size_t)widths[w]] == 0.1 && !trial_is_reference() ? 1e-5 : 0;
                if (!(fabs(y - 0.25) <= slack))
                    ck_abort_msg("%s: value %zu is %.17g", t.what, i, y);
            }
        }
        trial_end(&t);
    }
}
END_TEST

/* Fault: eps 0 is refused or replaced, the variance is divided by D - 1, or eps stands outside the root.
 * [1, 3]: mean 2, variance 1. [0, 0.002] with eps 3e-6: -+0.001 / sqrt(1e-6 + 3e-6) = -+0.5. */
START_TEST(hand_computed)
{
    static const struct {
        double x[2], eps, want[2], tolerance;
    } lines[] = {
        {{1, 3}, 0, {-1, 1}, 1e-6},
        {{3, 1}, 0, {1, -1}, 1e-6},
        {{0, 0.002}, 3e-6, {-0.5, 0.5}, 1e-5},
        {{-5, 7}, 0, {-1, 1}, 1e-6},
    };
    const struct tfm_rows rows = trial_rows(1, 0);

    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        struct trial t;
        build(&t, 1, TFM_DTYPE_F32, 2, 2, 0, 0, lines[l].eps);
        trial_set_all(&t, gain, 1);
        trial_set(&t, x, 0, 2, lines[l].x);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, lines[l].want, 2, lines[l].tolerance);
        trial_end(&t);
    }
}
END_TEST

/* Fault: gamma and beta change places, or beta is scaled. [1, 3] -> [-1, 1] -> [-2 + 10, 3 + 20]. */
START_TEST(gamma_and_beta)
{
    static const double row[] = {1, 3}, g[] = {2, 3}, b[] = {10, 20}, want[] = {8, 23};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, dtypes[_i], 2, 2, 0, 1, 0);
    trial_set(&t, x, 0, 2, row);
    trial_set(&t, gain, 0, 2, g);
    trial_set(&t, shift, 0, 2, b);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 2, 1e-5);
    }
    trial_end(&t);
}
END_TEST

/* Fault: the mean is not taken away. A common shift of a row changes nothing (rms_norm has the
 * opposite). 1024 + k/8 is exact in f32. */
START_TEST(common_shift)
{
    const struct tfm_rows rows = trial_rows(2, 0);
    struct trial t;
    double y[2][33];

    build(&t, 2, TFM_DTYPE_F32, 2, 33, 0, 1, 1e-5);
    for (size_t i = 0; i < 33; i++) {
        const double v[] = {(double)(i * 7 % 33) / 8, (double)(i * 7 % 33) / 8 + 1024};
        trial_set(&t, x, i, 1, &v[0]);
        trial_set(&t, x, 33 + i, 1, &v[1]);
    }
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_get(&t, t.output, 0, 33, y[0]);
    trial_get(&t, t.output, 33, 33, y[1]);
    for (int i = 0; i < 33; i++)
        ck_assert_double_eq_tol(y[0][i], y[1][i], 1e-5);
    trial_end(&t);
}
END_TEST

/* Fault: a shape, dtype or eps that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype x, gamma, beta;
        int rank, gamma_rank;
        int64_t gamma_width, beta_width;
        double eps;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 5, 4, 1e-5, TFM_STATUS_SHAPE,
         "layer_norm|'x' [N, 4]|'gamma' [5]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, 5, 1e-5, TFM_STATUS_SHAPE,
         "'x' [N, 4]|'beta' [5]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 1, 1, 4, 4, 1e-5, TFM_STATUS_SHAPE,
         "'x' [N]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 3, 1, 4, 4, 1e-5, TFM_STATUS_SHAPE,
         "'x' [N, 4, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 2, 4, 4, 1e-5, TFM_STATUS_SHAPE,
         "'gamma' [4, 3]"},
        {TFM_DTYPE_F16, TFM_DTYPE_F16, TFM_DTYPE_F32, 2, 1, 4, 4, 1e-5, TFM_STATUS_DTYPE,
         "'gamma' [4] f16"},
        {TFM_DTYPE_F16, TFM_DTYPE_F32, TFM_DTYPE_F16, 2, 1, 4, 4, 1e-5, TFM_STATUS_DTYPE,
         "'beta' [4] f16"},
        {TFM_DTYPE_F64, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, 4, 1e-5, TFM_STATUS_DTYPE,
         "f64|f32"},
        {TFM_DTYPE_I32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, 4, 1e-5, TFM_STATUS_DTYPE, "i32"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, 4, -1, TFM_STATUS_INVALID_ARGUMENT,
         "eps"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, 4, NAN, TFM_STATUS_INVALID_ARGUMENT,
         "eps"},
    };
    struct trial t;

    trial_begin(&t, 4, "layer_norm refusal %d", _i);
    x = trial_input(&t, "x", rows[_i].x, rows[_i].rank, 4, 2);
    gain =
        trial_parameter(&t, "gamma", rows[_i].gamma, rows[_i].gamma_rank, rows[_i].gamma_width, 3);
    shift = trial_parameter(&t, "beta", rows[_i].beta, 1, rows[_i].beta_width, 0);
    ck_assert_ptr_null(tfm_op_layer_norm(t.graph, x, gain, shift, rows[_i].eps));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

void tfm__cases_layer_norm(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "layer_norm");

    tcase_add_loop_test(tcase, widths, 0, 4);
    tcase_add_loop_test(tcase, last_extent_only, 0, 4);
    tcase_add_loop_test(tcase, a07_large_mean, 0, 4);
    tcase_add_loop_test(tcase, a07_constant_row, 0, 4);
    tcase_add_test(tcase, hand_computed);
    tcase_add_loop_test(tcase, gamma_and_beta, 0, 4);
    tcase_add_test(tcase, common_shift);
    tcase_add_loop_test(trial_rule_tcase(suite, "layer_norm rule"), refusals, 0, 11);
}
