/* SPDX-License-Identifier: MIT
 * rms_norm: every float dtype, odd widths, ranks, in place, guards, offsets; case A08. */
#include <math.h>
#include <string.h>

#include "tests/ops/trial.h"

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};
static struct tfm_tensor *x, *scale;
static double eps;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t width = x->shape[x->rank - 1];
    const int64_t vectors = rows->n * tfm_tensor_row_elements(x) / width;

    for (int64_t n = 0; n < vectors; n++) {
        const double *row = trial->values[x->id] + n * width;
        double squares = 0;
        for (int64_t i = 0; i < width; i++)
            squares += row[i] * row[i];
        const double root = sqrt(squares / (double)width + eps);
        for (int64_t i = 0; i < width; i++)
            want[n * width + i] = row[i] / root * trial->values[scale->id][i];
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t width, double e)
{
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;

    trial_begin(t, rows, "rms_norm %s [N, %lld] eps %g", tfm_dtype_name(dtype), (long long)width,
                e);
    t->row_tolerance = 1e-5;
    eps = e;
    x = trial_input(t, "x", dtype, 2, width, 0);
    scale = trial_parameter(t, "gamma", real, 1, width, 0);
    trial_output(t, tfm_op_rms_norm(t->graph, x, scale, e));
}

/* Fault: a partial vector is left out of the sum or not written; in place, a row is read after it was
 * written; a row takes the factor of another. Rows differ in size by powers of ten. */
START_TEST(widths)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 65, 576, 1536};

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        build(&t, w < 6 ? 129 : 33, dtypes[_i], widths[w], 1e-5);
        for (size_t i = 0; i < trial_count(&t, x); i++) {
            double v;
            trial_get(&t, x, i, 1, &v);
            v *= pow(10, (double)(i / (size_t)widths[w] % 4) - 1);
            trial_set(&t, x, i, 1, &v);
        }
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: a row of [N, H, d] is normed over all of its heads (query and key norms are per head). */
START_TEST(last_extent_only)
{
    struct trial t;

    trial_begin(&t, 33, "rms_norm %s [N, 3, 7]", tfm_dtype_name(dtypes[_i]));
    eps = 1e-6;
    x = trial_input(&t, "x", dtypes[_i], 3, 3, 7);
    scale = trial_parameter(&t, "gamma",
                            dtypes[_i] == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 1, 7, 0);
    trial_output(&t, tfm_op_rms_norm(t.graph, x, scale, eps));
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a mean is taken away, the length is made 1, eps 0 is refused, or the sign of x is lost.
 * [1, 3], eps 0: the mean square of the result is 1 and its length sqrt 2. A thousandth of it with eps
 * 1e-5: mean square 5e-6, so 0.57735 of it. */
START_TEST(worked_example)
{
    static const double small = 0.57735026918962576, root = 2.2360679774997897;
    static const struct {
        double x[2], eps, factor;
    } lines[] = {
        {{1, 3}, 0, 1}, {{-1, -3}, 0, -1}, {{1e-3, 3e-3}, 1e-5, small}, {{1e-3, 3e-3}, 0, 1}};
    const struct tfm_rows rows = trial_rows(1, 0);

    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        const double want[] = {lines[l].factor / root, lines[l].factor * 3 / root};
        struct trial t;
        build(&t, 1, TFM_DTYPE_F32, 2, lines[l].eps);
        trial_set_all(&t, scale, 1);
        trial_set(&t, x, 0, 2, lines[l].x);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 2, 1e-6);
        trial_end(&t);
    }
}
END_TEST

/* Fault: one row reads another. A change of row 1 leaves the bits of rows 0 and 2. */
START_TEST(rows_alone)
{
    const struct tfm_rows rows = trial_rows(3, 0);
    unsigned char before[3 * 33 * 8], after[3 * 33 * 8];
    struct trial t;

    build(&t, 3, dtypes[_i], 33, 1e-5);
    const size_t row = tfm__drive_bytes(x, 1);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        memcpy(before, t.data[t.output->id], 3 * row);
        for (size_t i = 33; i < 66; i++) {
            const double v = 100 * trial_random(i);
            trial_set(&t, x, i, 1, &v);
        }
        trial_run(&t, &rows, TFM_STATUS_OK);
        memcpy(after, t.data[t.output->id], 3 * row);
        ck_assert_int_eq(memcmp(before, after, row), 0);
        ck_assert_int_ne(memcmp(before + row, after + row, row), 0);
        ck_assert_int_eq(memcmp(before + 2 * row, after + 2 * row, row), 0);
    }
    trial_end(&t);
}
END_TEST

/* A08. Fault: squares are summed in the storage dtype and overflow. */
START_TEST(a08_large_values)
{
    static const double row[] = {300, -300, 150, 0};
    static const double want[] = {1.33333, -1.33333, 0.66667, 0};
    const struct tfm_rows rows = trial_rows(1, 0);

    for (int64_t repeat = 1; repeat <= 8; repeat += 7) {
        struct trial t;
        build(&t, 1, dtypes[_i], 4 * repeat, 1e-5);
        trial_set_all(&t, scale, 1);
        for (int64_t i = 0; i < repeat; i++)
            trial_set(&t, x, (size_t)(4 * i), 4, row);
        if (trial_open(&t, 0)) {
            double half_ulp = dtypes[_i] == TFM_DTYPE_BF16 ? 0x1p-8 : 0x1p-11;
            trial_run(&t, &rows, TFM_STATUS_OK);
            for (int64_t i = 0; i < 4 * repeat; i++) {
                double y;
                trial_get(&t, t.output, (size_t)i, 1, &y);
                ck_assert_double_eq_tol(y, want[i % 4], 2 * half_ulp);
            }
        }
        trial_end(&t);
    }
}
END_TEST

/* Fault: eps stands outside the root, is added to the sum instead of the mean, or is another one. The
 * model's logits differ by 2e-3 between 1e-5 and 1e-6; here a small row makes it plain. x = 0.001, D = 4:
 * 1e-3 / sqrt(1e-6 + 1e-5) = 0.3015113. A zero row gives zeros. */
START_TEST(eps_place)
{
    static const double row[] = {1e-3, 1e-3, -1e-3, 1e-3, 0, 0, 0, 0};
    static const double want[] = {0.3015113, 0.3015113, -0.6030227, 0.3015113, 0, 0, 0, 0};
    const struct tfm_rows rows = trial_rows(2, 0);
    const double two = 2;
    struct trial t;

    build(&t, 2, TFM_DTYPE_F32, 4, 1e-5);
    trial_set_all(&t, scale, 1);
    trial_set(&t, scale, 2, 1, &two);
    trial_set(&t, x, 0, 8, row);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 8, 1e-6);
    trial_end(&t);
}
END_TEST

/* Fault: a shape, dtype or eps that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype x, gamma;
        int rank, scalerank;
        int64_t width;
        double eps;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 5, 1e-5, TFM_STATUS_SHAPE,
         "rms_norm|'x' [N, 4]|'gamma' [5]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 3, 1, 4, 1e-5, TFM_STATUS_SHAPE, "[N, 4, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 2, 4, 1e-5, TFM_STATUS_SHAPE, "'gamma' [4, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 1, 1, 4, 1e-5, TFM_STATUS_SHAPE, "'x' [N] f32"},
        {TFM_DTYPE_F16, TFM_DTYPE_F16, 2, 1, 4, 1e-5, TFM_STATUS_DTYPE, "'gamma' [4] f16"},
        {TFM_DTYPE_F64, TFM_DTYPE_F32, 2, 1, 4, 1e-5, TFM_STATUS_DTYPE, "f64|f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, -1, TFM_STATUS_INVALID_ARGUMENT, "eps"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, NAN, TFM_STATUS_INVALID_ARGUMENT, "eps"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, INFINITY, TFM_STATUS_INVALID_ARGUMENT, "eps"},
    };
    struct trial t;

    trial_begin(&t, 4, "rms_norm refusal %d", _i);
    x = trial_input(&t, "x", rows[_i].x, rows[_i].rank, 4, 2);
    scale = trial_parameter(&t, "gamma", rows[_i].gamma, rows[_i].scalerank, rows[_i].width, 3);
    ck_assert_ptr_null(tfm_op_rms_norm(t.graph, x, scale, rows[_i].eps));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

void tfm__cases_rms_norm(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "rms_norm");

    tcase_add_loop_test(tcase, widths, 0, 4);
    tcase_add_loop_test(tcase, last_extent_only, 0, 4);
    tcase_add_test(tcase, worked_example);
    tcase_add_loop_test(tcase, rows_alone, 0, 4);
    tcase_add_loop_test(tcase, a08_large_values, 0, 4);
    tcase_add_test(tcase, eps_place);
    tcase_add_loop_test(trial_rule_tcase(suite, "rms_norm rule"), refusals, 0, 9);
}
