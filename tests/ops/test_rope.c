/* SPDX-License-Identifier: MIT
 * rope: both pairings, partial rotation, every float dtype, in place, guards, offsets; cases A10, A12. */
#include <complex.h>
#include <math.h>

#include "tests/ops/trial.h"

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};
static struct tfm_tensor *x, *pos, *table;
static enum tfm_rope_style style;

/* Each pair as a complex number times cos + i sin. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t heads = x->shape[1], d = x->shape[2], pairs = table->shape[1];

    for (int64_t h = 0; h < rows->n * heads; h++) {
        const double *angles =
            trial->values[table->id] + (int64_t)trial->values[pos->id][h / heads] * pairs * 2;
        const double *in = trial->values[x->id] + h * d;
        double *out = want + h * d;
        for (int64_t e = 0; e < d; e++)
            out[e] = in[e];
        for (int64_t i = 0; i < pairs; i++) {
            const int64_t first = style == TFM_ROPE_HALVES ? i : 2 * i;
            const int64_t second = style == TFM_ROPE_HALVES ? i + pairs : 2 * i + 1;
            const double complex turned =
                (in[first] + in[second] * I) * (angles[2 * i] + angles[2 * i + 1] * I);
            out[first] = creal(turned);
            out[second] = cimag(turned);
        }
    }
}

/* Positions run through the table in a scattered order. */
static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, enum tfm_rope_style pairing,
                  int64_t heads, int64_t d, int64_t rotated, int64_t positions)
{
    trial_begin(t, rows, "rope %s %s [N, %lld, %lld] r %lld", tfm_dtype_name(dtype),
                pairing == TFM_ROPE_HALVES ? "halves" : "adjacent", (long long)heads, (long long)d,
                (long long)rotated);
    style = pairing;
    x = trial_input(t, "x", dtype, 3, heads, d);
    pos = trial_input(t, "pos", TFM_DTYPE_I32, 1, 0, 0);
    table = trial_buffer(t, "table", dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32, 3, positions,
                         rotated / 2, 2);
    trial_output(t, tfm_op_rope(t->graph, x, pos, table, pairing));
    for (int64_t p = 0; p < positions; p++) {
        for (int64_t i = 0; i < rotated / 2; i++) {
            const double angle = (double)p * pow(10000, -2.0 * (double)i / (double)rotated);
            const double cs[] = {cos(angle), sin(angle)};
            trial_set(t, table, (size_t)((p * (rotated / 2) + i) * 2), 2, cs);
        }
    }
    for (uint32_t n = 0; n < rows; n++) {
        const double p = (double)((n * 37 + positions - 1) % positions);
        trial_set(t, pos, n, 1, &p);
    }
}

/* Fault: a pair of the wrong elements, the rest of a head turned or left out, a head or row at the wrong
 * place, in place a value read after it was written. */
START_TEST(sizes)
{
    static const struct {
        int64_t heads, d, rotated;
    } rows[] = {{1, 2, 2},   {3, 3, 2},   {1, 7, 6},     {9, 64, 64},  {3, 64, 32},
                {2, 31, 30}, {1, 33, 32}, {5, 65, 64},   {3, 48, 48},  {2, 80, 80},
                {3, 80, 20}, {1, 96, 2},  {1, 128, 128}, {1, 576, 576}};

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct trial t;
        build(&t, r < 3 ? 129 : 65, dtypes[_i / 2], (enum tfm_rope_style)(_i % 2), rows[r].heads,
              rows[r].d, rows[r].rotated, 41);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* A10. Fault: the other pairing, sine and cosine changed, or the angle negated. */
START_TEST(a10_worked_example)
{
    static const double q[] = {1, 2, 3, 4}, one = 1;
    static const double want[2][4] = {{-1.14264, 1.92208, 2.95985, 4.02980},
                                      {-1.98411, 1.95990, 2.46238, 4.01980}};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, TFM_DTYPE_F32, (enum tfm_rope_style)_i, 1, 4, 4, 2);
    trial_set(&t, x, 0, 4, q);
    trial_set(&t, pos, 0, 1, &one);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want[_i], 4, 1e-5);
    trial_end(&t);
}
END_TEST

/* A12. Fault: a position passes through a type that cannot hold it (bf16 takes 515 for 516, f16 2049 for
 * 2048, 16 bits wrap at 65536). Pair 0 has frequency 1, x = (1, 0) gives (cos p, sin p). */
START_TEST(a12_neighbouring_positions)
{
    static const double positions[] = {515, 516, 2048, 2049, 65535, 65536, 69999};
    const struct tfm_rows rows = trial_rows(7, 0);
    static const double unit[] = {1, 0};
    double want[14];
    struct trial t;

    build(&t, 7, TFM_DTYPE_F32, TFM_ROPE_ADJACENT, 1, 2, 2, 70000);
    trial_set(&t, pos, 0, 7, positions);
    for (size_t i = 0; i < 7; i++) {
        trial_set(&t, x, 2 * i, 2, unit);
        want[2 * i] = cos(positions[i]);
        want[2 * i + 1] = sin(positions[i]);
    }
    ck_assert_double_eq_tol(want[0], 0.9756359, 1e-7);
    ck_assert_double_eq_tol(want[1], -0.2193958, 1e-7);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 14, 1e-6);
    trial_end(&t);
}
END_TEST

/* Fault: a position outside the table reads foreign memory. The core looks first, by the limit that the
 * rule gave it; the reference looks again. */
START_TEST(position_out_of_range)
{
    static const double bad[] = {-1, 5, 2147483647};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct trial t;

    build(&t, 2, TFM_DTYPE_F32, TFM_ROPE_HALVES, 1, 4, 4, 5);
    ck_assert_int_eq(pos->limit, 5);
    if (trial_is_reference()) {
        trial_set(&t, pos, 1, 1, &bad[_i]);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OUT_OF_RANGE);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a backend that reads the attributes finds none. */
START_TEST(attributes)
{
    struct trial t;

    build(&t, 2, TFM_DTYPE_F32, TFM_ROPE_HALVES, 3, 8, 4, 5);
    const struct tfm_attrs *attrs = &tfm_graph_node(t.graph, 0)->attrs;
    ck_assert_int_eq(attrs->heads, 3);
    ck_assert_int_eq(attrs->head_dim, 8);
    ck_assert_int_eq(attrs->rope_style, TFM_ROPE_HALVES);
    trial_end(&t);
}
END_TEST

/* Fault: a shape, dtype or style that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype x, pos, table;
        int rank, pos_rank, table_rank;
        int64_t pairs, last;
        int style;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 4, 2, 0, TFM_STATUS_SHAPE,
         "rope|'x' [N, 3, 7]|'table' [9, 4, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 2, 1, 3, 1, 2, 0, TFM_STATUS_SHAPE,
         "'x' [N, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 2, 3, 3, 2, 0, TFM_STATUS_SHAPE,
         "'pos' [N, 1]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 2, 3, 2, 0, TFM_STATUS_SHAPE,
         "'table' [9, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 3, 3, 0, TFM_STATUS_SHAPE,
         "'table' [9, 3, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 3, 1, 3, 3, 2, 0, TFM_STATUS_DTYPE,
         "'pos' [N] f32"},
        {TFM_DTYPE_F16, TFM_DTYPE_I32, TFM_DTYPE_F16, 3, 1, 3, 3, 2, 0, TFM_STATUS_DTYPE,
         "'table' [9, 3, 2] f16"},
        {TFM_DTYPE_F64, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 3, 2, 0, TFM_STATUS_DTYPE,
         "f64|f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 3, 2, 2, TFM_STATUS_INVALID_ARGUMENT,
         "rope_style"},
    };
    struct trial t;

    trial_begin(&t, 4, "rope refusal %d", _i);
    x = trial_input(&t, "x", rows[_i].x, rows[_i].rank, 3, 7);
    pos = trial_input(&t, "pos", rows[_i].pos, rows[_i].pos_rank, 1, 0);
    table = trial_buffer(&t, "table", rows[_i].table, rows[_i].table_rank, 9, rows[_i].pairs,
                         rows[_i].last);
    ck_assert_ptr_null(tfm_op_rope(t.graph, x, pos, table, (enum tfm_rope_style)rows[_i].style));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

void tfm__cases_rope(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "rope"), *rule = trial_rule_tcase(suite, "rope rule");

    tcase_add_loop_test(tcase, sizes, 0, 8);
    tcase_add_loop_test(tcase, a10_worked_example, 0, 2);
    tcase_add_test(tcase, a12_neighbouring_positions);
    tcase_add_loop_test(tcase, position_out_of_range, 0, 3);
    tcase_add_test(rule, attributes);
    tcase_add_loop_test(rule, refusals, 0, 9);
}
