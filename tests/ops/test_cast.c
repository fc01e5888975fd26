/* SPDX-License-Identifier: MIT
 * cast: every pair of float dtypes, exact; lengths, guards, offsets. */
#include <math.h>
#include <string.h>

#include "tests/ops/trial.h"

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};
static struct tfm_tensor *x;

/* Rounds to `digits` binary digits, exponent not under `least`, nearest even: by the definition, not by
 * bits. */
static double round_to(double value, int digits, int least, double most)
{
    int exponent;

    if (value == 0 || !isfinite(value))
        return value;
    frexp(value, &exponent);
    const int step = (exponent - digits > least) ? exponent - digits : least;
    const double rounded = ldexp(nearbyint(ldexp(value, -step)), step);
    return fabs(rounded) > most ? copysign(INFINITY, value) : rounded;
}

static double round_as(enum tfm_dtype dtype, double value)
{
    switch (dtype) {
    case TFM_DTYPE_F16:
        return round_to(value, 11, -24, 65504);
    case TFM_DTYPE_BF16:
        return round_to(value, 8, -133, 0x1.fep127);
    case TFM_DTYPE_F32:
        return round_to(value, 24, -149, 0x1.fffffep127);
    default:
        return value;
    }
}

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const size_t n = (size_t)(tfm_tensor_row_elements(x) * rows->n);

    for (size_t i = 0; i < n; i++)
        want[i] = round_as(trial->output->dtype, trial->values[x->id][i]);
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype from, enum tfm_dtype to,
                  int64_t width)
{
    trial_begin(t, rows, "cast %s to %s [N, %lld]", tfm_dtype_name(from), tfm_dtype_name(to),
                (long long)width);
    x = trial_input(t, "x", from, 2, width, 0);
    trial_output(t, tfm_op_cast(t->graph, x, to));
    t->exact = 1;
}

/* Fault: a value is cut instead of rounded, or a tail is not converted. */
START_TEST(pairs)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 65, 576};

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        build(&t, 33, dtypes[_i / 4], dtypes[_i % 4], widths[w]);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: ties, subnormals, overflow, infinities or NaN are converted by luck. */
START_TEST(special_values)
{
    static const double values[] = {
        0,          -0.0,       INFINITY, -INFINITY,   NAN,       65504,     65519.99,
        65520,      -65520,     0x1p-24,  0x1p-25,     0x1.8p-25, 0x1.004p0, 0x1.00cp0,
        0x1.01p0,   0x1.03p0,   0x1p-14,  0x1.ffcp-15, 0x1p-126,  0x1p-133,  0x1p-134,
        0x1.fep127, 0x1.ffp127, 3.0e38,   0x1.ffep15,  1.0 / 3,   -2.0 / 3,  0x1.0000010000001p0,
        1e5,        -1e-7,      2049,     0x1p-149};
    const size_t n = sizeof values / sizeof *values;
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, dtypes[_i / 4], dtypes[_i % 4], (int64_t)n);
    trial_set(&t, x, 0, n, values);
    if (trial_open(&t, 0)) {
        trial_check(&t, &rows, naive);
        double y[2];
        trial_get(&t, t.output, 0, 2, y);
        ck_assert(!signbit(y[0]) && signbit(y[1]));
    }
    trial_end(&t);
}
END_TEST

/* Fault: a dtype that is no float is taken for one. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype from, to;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_I32, TFM_DTYPE_F32, "cast|'x' [N, 32] i32"},
        {TFM_DTYPE_Q4_0, TFM_DTYPE_F32, "'x' [N, 32] q4_0"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, "'x' [N, 32] f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_Q8_0, "'x' [N, 32] f32"},
        {TFM_DTYPE_F32, (enum tfm_dtype)99, "'x' [N, 32] f32"},
    };
    struct trial t;

    trial_begin(&t, 4, "cast refusal %d", _i);
    x = trial_input(&t, "x", rows[_i].from, 2, 32, 0);
    ck_assert_ptr_null(tfm_op_cast(t.graph, x, rows[_i].to));
    trial_refused(&t, TFM_STATUS_DTYPE, rows[_i].words);
}
END_TEST

void tfm__cases_cast(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "cast");

    tcase_add_loop_test(tcase, pairs, 0, 16);
    tcase_add_loop_test(tcase, special_values, 0, 16);
    tcase_add_loop_test(trial_rule_tcase(suite, "cast rule"), refusals, 0, 5);
}
