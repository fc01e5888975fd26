/* SPDX-License-Identifier: MIT
 * swiglu_grad: the sweep, the ends of the range, refusals. tests/train/test_gradients.c has it in swiglu. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/elementwise.h"

static struct tfm_tensor *gate, *up, *dy;

/* Another formula than the reference's. */
static void naive(const struct trial *t, const struct tfm_rows *rows, double *want)
{
    const size_t n = (size_t)(tfm_tensor_row_elements(gate) * rows->n);

    for (size_t i = 0; i < n; i++) {
        const double g = t->values[gate->id][i], d = t->values[dy->id][i], th = tanh(g / 2);
        want[i] = d * t->values[up->id][i] * ((1 + th) / 2 + g / 4 * (1 - th * th));
        want[n + i] = d * g * (1 + th) / 2;
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int rank, int64_t d1,
                  int64_t d2)
{
    struct tfm_tensor *dup;

    trial_begin(t, rows, "swiglu_grad %s rank %d [N, %lld, %lld]", tfm_dtype_name(dtype), rank,
                (long long)d1, (long long)d2);
    gate = trial_input(t, "gate", dtype, rank, d1, d2);
    up = trial_input(t, "up", dtype, rank, d1, d2);
    dy = trial_input(t, "dy", dtype, rank, d1, d2);
    trial_output(t, tfm_op_swiglu_grad(t->graph, gate, up, dy, &dup));
    ck_assert_ptr_eq(dup, t->outputs[1]);
    for (size_t i = 0; i < trial_count(t, gate); i++) {
        double value;
        trial_get(t, gate, i, 1, &value);
        value *= 6;
        trial_set(t, gate, i, 1, &value);
    }
}

/* Fault: a tail is dropped or written past its end, the three operands or the two outputs change places, a value
 * is rounded twice, dgate in place of gate is read again. */
START_TEST(sweep)
{
    static const struct {
        uint32_t rows;
        int rank;
        int64_t d1, d2;
    } sizes[] = {{65, 2, 1, 0},  {65, 2, 7, 0},    {65, 2, 31, 0}, {65, 2, 33, 0},
                 {17, 2, 65, 0}, {17, 2, 1536, 0}, {33, 1, 0, 0},  {33, 3, 3, 7}};

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct trial t;
        build(&t, sizes[s].rows, elementwise_dtype(_i), sizes[s].rank, sizes[s].d1, sizes[s].d2);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: infinity times 0 is NaN, exp overflows, the slope at the minimum is not 0, a NaN is lost. */
START_TEST(special_values)
{
    enum { N = 10 };
    static const double g[N] = {-INFINITY, -1e4, -100, -1.278465, 0, 1, 100, 1e4, INFINITY, NAN};
    static const double u[N] = {2, 2, 2, 2, 3, 2, 2, 2, 2, 2},
                        d[N] = {1, 1, 1, 1, 2, 1, 3, 4, 5, 1};
    static const double dgate[N] = {0, 0, 0, 0, 3, 1.855341, 6, 8, 10, NAN};
    static const double dup[N] = {0, 0, 0, -0.2784645, 0, 0.7310586, 300, 4e4, INFINITY, NAN};
    const struct tfm_rows rows = trial_rows(1, 0);
    const enum tfm_dtype dtype = elementwise_dtype(_i);
    const double tolerance = dtype == TFM_DTYPE_F64 || dtype == TFM_DTYPE_F32 ? 1e-6 : 8e-3;
    struct trial t;
    double got[2][N];

    build(&t, 1, dtype, 2, N, 0);
    trial_set(&t, gate, 0, N, g);
    trial_set(&t, up, 0, N, u);
    trial_set(&t, dy, 0, N, d);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        for (int k = 0; k < 2; k++) {
            const double *want = k ? dup : dgate;
            trial_get(&t, t.outputs[k], 0, N, got[k]);
            for (int i = 0; i < N; i++)
                ck_assert_msg(isnan(want[i])
                                  ? isnan(got[k][i])
                                  : got[k][i] == want[i] || fabs(got[k][i] - want[i]) <=
                                                                tolerance * fmax(1, fabs(want[i])),
                              "swiglu_grad(%g, %g, %g): output %d is %g, not %g", g[i], u[i], d[i],
                              k, got[k][i], want[i]);
        }
    }
    trial_end(&t);
}
END_TEST

/* Fault: a shape or dtype that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype gate, up, dy;
        int64_t widths[3];
        enum tfm_status status;
        const char *words;
    } lines[] = {
        {TFM_DTYPE_I32,
         TFM_DTYPE_I32,
         TFM_DTYPE_I32,
         {3, 3, 3},
         TFM_STATUS_DTYPE,
         "'a' [N, 3] i32"},
        {TFM_DTYPE_F32,
         TFM_DTYPE_BF16,
         TFM_DTYPE_F32,
         {3, 3, 3},
         TFM_STATUS_DTYPE,
         "'b' [N, 3] bf16"},
        {TFM_DTYPE_F32,
         TFM_DTYPE_F32,
         TFM_DTYPE_F16,
         {3, 3, 3},
         TFM_STATUS_DTYPE,
         "'c' [N, 3] f16"},
        {TFM_DTYPE_F32,
         TFM_DTYPE_F32,
         TFM_DTYPE_F32,
         {3, 4, 3},
         TFM_STATUS_SHAPE,
         "'a' [N, 3] f32|'b' [N, 4] f32"},
        {TFM_DTYPE_F32,
         TFM_DTYPE_F32,
         TFM_DTYPE_F32,
         {3, 3, 5},
         TFM_STATUS_SHAPE,
         "'a' [N, 3] f32|'c' [N, 5] f32"},
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct trial t;
        struct tfm_tensor *dup;
        trial_begin(&t, 4, "swiglu_grad refusal %zu", i);
        struct tfm_tensor *a = trial_input(&t, "a", lines[i].gate, 2, lines[i].widths[0], 0);
        struct tfm_tensor *b = trial_input(&t, "b", lines[i].up, 2, lines[i].widths[1], 0);
        struct tfm_tensor *c = trial_input(&t, "c", lines[i].dy, 2, lines[i].widths[2], 0);
        ck_assert_ptr_null(tfm_op_swiglu_grad(t.graph, a, b, c, &dup));
        ck_assert_ptr_null(dup);
        trial_refused(&t, lines[i].status, lines[i].words);
    }
}
END_TEST

void tfm__cases_swiglu_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "swiglu_grad");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_test(trial_rule_tcase(suite, "swiglu_grad rule"), refusals);
}
