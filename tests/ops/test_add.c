/* SPDX-License-Identifier: MIT
 * add: every float dtype, odd lengths, in place, guards, offsets; case A02. */
#include <math.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *a, *b;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const size_t n = (size_t)(tfm_tensor_row_elements(a) * rows->n);

    for (size_t i = 0; i < n; i++)
        want[i] = trial->values[a->id][i] + trial->values[b->id][i];
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int rank, int64_t d1,
                  int64_t d2)
{
    trial_begin(t, rows, "add %s rank %d [N, %lld, %lld]", tfm_dtype_name(dtype), rank,
                (long long)d1, (long long)d2);
    a = trial_input(t, "a", dtype, rank, d1, d2);
    b = trial_input(t, "b", dtype, rank, d1, d2);
    trial_output(t, tfm_op_add(t->graph, a, b));
}

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};

/* A02. Fault: a vector wider than the rest of the length writes past it. */
START_TEST(a02_lengths)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 63, 64, 65, 129, 217, 576, 1536};

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        build(&t, w < 8 ? 129 : 33, dtypes[_i], 2, widths[w], 0);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: extents beyond the second are left out of the count. */
START_TEST(ranks)
{
    struct trial t;

    build(&t, 33, dtypes[_i], 1, 0, 0);
    trial_check_rows(&t, naive);
    trial_end(&t);
    build(&t, 33, dtypes[_i], 3, 3, 7);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a sum is rounded twice, saturates instead of becoming infinite, or loses the sign of zero. */
START_TEST(special_values)
{
    static const double left[] = {1, INFINITY, INFINITY, NAN, -0.0, 65504, 2049};
    static const double right[] = {-1, 1, -INFINITY, 1, -0.0, 65504, 0x1p-20};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, dtypes[_i], 2, 7, 0);
    trial_set(&t, a, 0, 7, left);
    trial_set(&t, b, 0, 7, right);
    if (trial_open(&t, 0)) {
        double y[7];
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_get(&t, t.output, 0, 7, y);
        ck_assert(y[0] == 0 && y[1] == INFINITY && isnan(y[2]) && isnan(y[3]));
        ck_assert(y[4] == 0 && signbit(y[4]));
        ck_assert(dtypes[_i] == TFM_DTYPE_F16 ? y[5] == INFINITY
                                              : y[5] == 131008 || y[5] == 131072);
        double want = 2049 + 0x1p-20; /* as the dtype rounds it, once, after its operands */
        double rounded;
        trial_get(&t, a, 6, 1, &want);
        want += 0x1p-20;
        trial_set(&t, a, 6, 1, &want);
        trial_get(&t, a, 6, 1, &rounded);
        ck_assert_double_eq(y[6], rounded);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a shape or dtype that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype a, b;
        int rank_a, rank_b;
        int64_t width_a, width_b;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 2, 3, 4, TFM_STATUS_SHAPE, "add|'a' [N, 3]|'b' [N, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 3, 3, 3, TFM_STATUS_SHAPE, "[N, 3]|[N, 3, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F16, 2, 2, 3, 3, TFM_STATUS_DTYPE, "f32|f16"},
        {TFM_DTYPE_I32, TFM_DTYPE_I32, 2, 2, 3, 3, TFM_STATUS_DTYPE, "i32"},
        {TFM_DTYPE_Q8_0, TFM_DTYPE_Q8_0, 2, 2, 32, 32, TFM_STATUS_DTYPE, "q8_0"},
    };
    struct trial t;

    trial_begin(&t, 4, "add refusal %d", _i);
    a = trial_input(&t, "a", rows[_i].a, rows[_i].rank_a, rows[_i].width_a, 2);
    b = trial_input(&t, "b", rows[_i].b, rows[_i].rank_b, rows[_i].width_b, 2);
    ck_assert_ptr_null(tfm_op_add(t.graph, a, b));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

/* Fault: a constant is taken where rows are meant. */
START_TEST(refuses_parameters)
{
    struct trial t;

    trial_begin(&t, 4, "add of parameters");
    a = trial_parameter(&t, "a", TFM_DTYPE_F32, 2, 4, 4);
    ck_assert_ptr_null(tfm_op_add(t.graph, a, a));
    trial_refused(&t, TFM_STATUS_SHAPE, "add|'a' [4, 4] f32");
}
END_TEST

void tfm__cases_add(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "add"), *rule = trial_rule_tcase(suite, "add rule");

    tcase_add_loop_test(tcase, a02_lengths, 0, 4);
    tcase_add_loop_test(tcase, ranks, 0, 4);
    tcase_add_loop_test(tcase, special_values, 0, 4);
    tcase_add_loop_test(rule, refusals, 0, 5);
    tcase_add_test(rule, refuses_parameters);
}
