/* SPDX-License-Identifier: MIT
 * rope: both pairings, both layouts, partial rotation, every float dtype, in place, guards, offsets; cases
 * A10, A12. */
#include <complex.h>
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};
static struct tfm_tensor *x, *pos, *table;
static enum tfm_rope_style style;
static enum tfm_rope_layout layout;
static int inverse;

/* Each pair as a complex number times cos + i sin. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int tokens_first = layout == TFM_ROPE_TOKENS_FIRST;
    const int64_t heads = x->shape[tokens_first ? 2 : 1], d = x->shape[x->rank - 1];
    const int64_t tokens = x->rank == 4 ? x->shape[tokens_first ? 1 : 2] : 1;
    const int64_t pairs = table->shape[1];

    for (int64_t vector = 0; vector < rows->n * heads * tokens; vector++) {
        const int64_t row = vector / (heads * tokens);
        const int64_t token = tokens_first ? vector / heads % tokens : vector % tokens;
        const int64_t place = pos->extent == TFM_EXTENT_FIXED ? token : row * tokens + token;
        const double *angles =
            trial->values[table->id] + (int64_t)trial->values[pos->id][place] * pairs * 2;
        const double *in = trial->values[x->id] + vector * d;
        double *out = want + vector * d;
        for (int64_t e = 0; e < d; e++)
            out[e] = in[e];
        for (int64_t i = 0; i < pairs; i++) {
            const int64_t first = style == TFM_ROPE_HALVES ? i : 2 * i;
            const int64_t second = style == TFM_ROPE_HALVES ? i + pairs : 2 * i + 1;
            const double complex turned =
                (in[first] + in[second] * I) *
                (angles[2 * i] + (inverse ? -1 : 1) * angles[2 * i + 1] * I);
            out[first] = creal(turned);
            out[second] = cimag(turned);
        }
    }
}

static void fill_table(struct trial *t)
{
    const int64_t pairs = table->shape[1];

    for (int64_t p = 0; p < table->shape[0]; p++) {
        for (int64_t i = 0; i < pairs; i++) {
            const double angle = (double)p * pow(10000, -(double)i / (double)pairs);
            const double cs[] = {cos(angle), sin(angle)};
            trial_set(t, table, (size_t)((p * pairs + i) * 2), 2, cs);
        }
    }
}

/* Positions run through the table in a scattered order. */
static void scatter_positions(struct trial *t)
{
    const int64_t positions = table->shape[0];

    for (size_t n = 0; n < trial_count(t, pos); n++) {
        const double p = (double)(((int64_t)n * 37 + positions - 1) % positions);
        trial_set(t, pos, n, 1, &p);
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, enum tfm_rope_style pairing,
                  int64_t heads, int64_t d, int64_t rotated, int64_t positions)
{
    trial_begin(t, rows, "rope %s %s [N, %lld, %lld] r %lld", tfm_dtype_name(dtype),
                pairing == TFM_ROPE_HALVES ? "halves" : "adjacent", (long long)heads, (long long)d,
                (long long)rotated);
    style = pairing;
    layout = TFM_ROPE_ROWS;
    x = trial_input(t, "x", dtype, 3, heads, d);
    pos = trial_input(t, "pos", TFM_DTYPE_I32, 1, 0, 0);
    table = trial_buffer(t, "table", dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32, 3, positions,
                         rotated / 2, 2);
    trial_output(t, tfm_op_rope(t->graph, x, pos, table, pairing));
    fill_table(t);
    scatter_positions(t);
}

/* x [N, H, T, d] or [N, T, H, d]; pos [N, T], or [T] for all rows. */
static void build_batch(struct trial *t, uint32_t rows, enum tfm_dtype dtype,
                        enum tfm_rope_style pairing, enum tfm_rope_layout order, int64_t heads,
                        int64_t tokens, int64_t d, int64_t rotated, int shared)
{
    const int inside = order == TFM_ROPE_TOKENS_FIRST;

    trial_begin(t, rows, "rope %s %s [N, %s %lld, %s %lld, %lld] r %lld pos %s",
                tfm_dtype_name(dtype), pairing == TFM_ROPE_HALVES ? "halves" : "adjacent",
                inside ? "T" : "H", (long long)(inside ? tokens : heads), inside ? "H" : "T",
                (long long)(inside ? heads : tokens), (long long)d, (long long)rotated,
                shared ? "[T]" : "[N, T]");
    style = pairing;
    layout = order;
    x = inside ? trial_input_4(t, "x", dtype, tokens, heads, d)
               : trial_input_4(t, "x", dtype, heads, tokens, d);
    pos = shared ? trial_buffer(t, "pos", TFM_DTYPE_I32, 1, tokens, 0, 0)
                 : trial_input(t, "pos", TFM_DTYPE_I32, 2, tokens, 0);
    table = trial_buffer(t, "table", dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32, 3, 41,
                         rotated / 2, 2);
    trial_output(t, tfm_op_rope_layout(t->graph, x, pos, table, pairing, order));
    fill_table(t);
    scatter_positions(t);
}

/* Fault: the angle is not negated, or in the vector form or the rest of a head only; the layout is dropped. */
START_TEST(backwards)
{
    static const struct {
        int64_t heads, d, rotated;
    } rows[] = {{3, 64, 64}, {2, 34, 32}, {1, 6, 6}};

    inverse = 1;
    for (size_t r = 0; r < 3; r++) {
        struct trial t;
        trial_begin(&t, 33, "inverse rope %s %d [N, %lld, %lld]", tfm_dtype_name(dtypes[_i / 4]),
                    _i, (long long)rows[r].heads, (long long)rows[r].d);
        style = (enum tfm_rope_style)(_i / 2 % 2);
        layout = _i % 2 ? TFM_ROPE_TOKENS_FIRST : TFM_ROPE_ROWS;
        x = _i % 2 ? trial_input_4(&t, "x", dtypes[_i / 4], 5, rows[r].heads, rows[r].d)
                   : trial_input(&t, "x", dtypes[_i / 4], 3, rows[r].heads, rows[r].d);
        pos = trial_input(&t, "pos", TFM_DTYPE_I32, _i % 2 ? 2 : 1, 5, 0);
        table = trial_buffer(&t, "table", x->dtype == TFM_DTYPE_F64 ? x->dtype : TFM_DTYPE_F32, 3,
                             41, rows[r].rotated / 2, 2);
        trial_output(&t, tfm_op_rope_inverse(t.graph, x, pos, table, style, layout));
        fill_table(&t);
        scatter_positions(&t);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: a pair of the wrong elements, the rest of a head turned or left out, a head or row at the wrong
 * place, in place a value read after it was written. */
START_TEST(sizes)
{
    static const struct {
        int64_t heads, d, rotated;
    } rows[] = {{1, 2, 2},   {3, 4, 2},   {1, 8, 6},     {9, 64, 64},  {3, 64, 32},
                {2, 32, 30}, {1, 34, 32}, {5, 66, 64},   {3, 48, 48},  {2, 80, 80},
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

/* Fault: token and head change places, the positions of another row are read, or those of all rows are
 * taken for those of the first. */
START_TEST(batches)
{
    static const struct {
        int64_t heads, tokens, d, rotated;
    } rows[] = {{1, 1, 2, 2}, {3, 7, 4, 2}, {2, 5, 64, 64}, {9, 3, 34, 32}, {1, 31, 6, 6}};

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct trial t;
        build_batch(&t, 9, dtypes[_i / 8], (enum tfm_rope_style)(_i / 4 % 2),
                    _i / 2 % 2 ? TFM_ROPE_TOKENS_FIRST : TFM_ROPE_HEADS_FIRST, rows[r].heads,
                    rows[r].tokens, rows[r].d, rows[r].rotated, _i % 2);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: the layouts are not the same rotation: [B T, H, d] as B T rows, [B, H, T, d] and [B, T, H, d] as
 * B rows hold the same numbers, in another order. */
START_TEST(layouts_agree)
{
    enum { B = 3, H = 2, T = 5, D = 8 };
    const struct tfm_rows many = trial_rows(B * T, 0), few = trial_rows(B, 0);
    const size_t inside = (size_t)_i;
    struct trial flat, first;
    double row[B * T * H * D], heads[B * H * T * D];

    build(&flat, B * T, TFM_DTYPE_F32, TFM_ROPE_HALVES, H, D, D, 41);
    ck_assert(trial_open(&flat, 0));
    trial_run(&flat, &many, TFM_STATUS_OK);
    trial_get(&flat, flat.output, 0, B * T * H * D, row);
    struct tfm_tensor *flat_x = x, *flat_pos = pos;
    build_batch(&first, B, TFM_DTYPE_F32, TFM_ROPE_HALVES,
                inside ? TFM_ROPE_TOKENS_FIRST : TFM_ROPE_HEADS_FIRST, H, T, D, D, 0);
    for (size_t v = 0; v < B * T * H; v++) {
        const size_t b = v / (T * H), t = v / H % T, h = v % H;
        double vector[D], p;
        trial_get(&flat, flat_x, v * D, D, vector);
        trial_set(&first, x, (inside ? v : (b * H + h) * T + t) * D, D, vector);
        trial_get(&flat, flat_pos, b * T + t, 1, &p);
        trial_set(&first, pos, b * T + t, 1, &p);
    }
    if (trial_open(&first, 0)) {
        trial_run(&first, &few, TFM_STATUS_OK);
        trial_get(&first, first.output, 0, B * H * T * D, heads);
        for (size_t v = 0; v < B * T * H; v++) {
            const size_t b = v / (T * H), t = v / H % T, h = v % H;
            const double *there = heads + (inside ? v : (b * H + h) * T + t) * D;
            for (size_t e = 0; e < D; e++)
                ck_assert_double_eq_tol(row[v * D + e], there[e], 1e-6);
        }
    }
    trial_end(&flat);
    trial_end(&first);
}
END_TEST

/* Fault: a score depends on more than the difference of the positions. q = [1,2,3,4] and k = [4,3,2,1],
 * d = 4, theta 10000, at distances 0..7; not monotone. */
START_TEST(difference_only)
{
    static const double q[] = {1, 2, 3, 4}, k[] = {4, 3, 2, 1};
    static const double want[] = {20, 19.6599, 10.4830, 0.9512, -0.1285, 8.2794, 18.4865, 21.1492};
    static const int starts[] = {0, 1, 11, 4000, 8184};
    const struct tfm_rows rows = trial_rows(9, 0);
    const int start = starts[_i];
    double y[36];
    struct trial t;

    build(&t, 9, TFM_DTYPE_F32, TFM_ROPE_ADJACENT, 1, 4, 4, 8192);
    for (size_t n = 0; n < 9; n++) { /* row 0 is q, rows 1..8 are k at distances 0..7 */
        const double p = n == 0 ? start : start + (double)n - 1;
        trial_set(&t, pos, n, 1, &p);
        trial_set(&t, x, 4 * n, 4, n == 0 ? q : k);
    }
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_get(&t, t.output, 0, 36, y);
    for (int n = 0; n < 8; n++) {
        double score = 0;
        for (int e = 0; e < 4; e++)
            score += y[e] * y[4 * (n + 1) + e];
        ck_assert_msg(fabs(score - want[n]) <= 1e-4, "from %d over %d: %g", start, n, score);
    }
    trial_end(&t);
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
        /* past its end the table is full; before its start there is nothing */
        trial_run(&t, &rows, _i ? TFM_STATUS_CONTEXT_FULL : TFM_STATUS_OUT_OF_RANGE);
    }
    trial_end(&t);
}
END_TEST

/* Fault: the positions of a later row or token are not looked at. */
START_TEST(batch_out_of_range)
{
    const struct tfm_rows rows = trial_rows(2, 0);
    const double bad = 41;
    struct trial t;

    build_batch(&t, 2, TFM_DTYPE_F32, TFM_ROPE_HALVES,
                _i / 2 ? TFM_ROPE_TOKENS_FIRST : TFM_ROPE_HEADS_FIRST, 1, 3, 4, 4, _i % 2);
    ck_assert(pos->limit == 41 && pos->is_position);
    if (trial_is_reference()) {
        trial_set(&t, pos, _i % 2 ? 2 : 5, 1, &bad);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_CONTEXT_FULL);
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
    ck_assert_int_eq(attrs->rope_layout, TFM_ROPE_ROWS);
    trial_end(&t);
    for (int order = TFM_ROPE_HEADS_FIRST; order <= TFM_ROPE_TOKENS_FIRST; order++) {
        build_batch(&t, 2, TFM_DTYPE_F32, TFM_ROPE_ADJACENT, (enum tfm_rope_layout)order, 3, 5, 8,
                    4, 0);
        attrs = &tfm_graph_node(t.graph, 0)->attrs;
        ck_assert(attrs->heads == 3 && attrs->head_dim == 8);
        ck_assert_int_eq(attrs->rope_layout, order);
        trial_end(&t);
    }
}
END_TEST

/* Fault: a shape, dtype or style that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype x, pos, table;
        int rank, pos_rank, table_rank;
        int64_t d, pairs, last;
        int style, layout;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 5, 2, 0, 0, TFM_STATUS_SHAPE,
         "rope|'x' [N, 3, 8]|'table' [9, 5, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 7, 3, 2, 0, 0, TFM_STATUS_SHAPE,
         "even|'x' [N, 3, 7]|'table' [9, 3, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 1, 1, 2, 0, 0, TFM_STATUS_SHAPE,
         "even|'x' [N, 3, 1]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 2, 1, 3, 8, 1, 2, 0, 0, TFM_STATUS_SHAPE,
         "'x' [N, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 2, 3, 8, 3, 2, 0, 0, TFM_STATUS_SHAPE,
         "'pos' [N, 5]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 4, 1, 3, 8, 3, 2, 0, 0, TFM_STATUS_SHAPE,
         "'x' [N, 3, 5, 8]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 4, 1, 3, 8, 3, 2, 0, 1, TFM_STATUS_SHAPE,
         "[N, T]|'x' [N, 3, 5, 8]|'pos' [N] "},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 4, 3, 3, 8, 3, 2, 0, 1, TFM_STATUS_SHAPE,
         "[N, T]|'x' [N, 3, 5, 8]|'pos' [N, 5, 2] "},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 2, 3, 8, 3, 2, 0, 1, TFM_STATUS_SHAPE,
         "[N, H, T, d]|'x' [N, 3, 8]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 4, 2, 3, 7, 3, 2, 0, 1, TFM_STATUS_SHAPE,
         "even|'x' [N, 3, 5, 7]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 2, 8, 3, 2, 0, 0, TFM_STATUS_SHAPE,
         "'table' [9, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 3, 0, 0, TFM_STATUS_SHAPE,
         "'table' [9, 3, 3]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 2, 0, 0, TFM_STATUS_DTYPE,
         "'pos' [N] f32"},
        {TFM_DTYPE_F16, TFM_DTYPE_I32, TFM_DTYPE_F16, 3, 1, 3, 8, 3, 2, 0, 0, TFM_STATUS_DTYPE,
         "'table' [9, 3, 2] f16"},
        {TFM_DTYPE_F64, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 2, 0, 0, TFM_STATUS_DTYPE,
         "f64|f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 2, 2, 0,
         TFM_STATUS_INVALID_ARGUMENT, "rope_style"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 4, 2, 3, 8, 3, 2, 0, 2, TFM_STATUS_SHAPE,
         "[N, T, H, d]|'x' [N, 3, 5, 8]|'pos' [N, 5] "},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 2, 0, 2, TFM_STATUS_SHAPE,
         "[N, T, H, d]|'x' [N, 3, 8]"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 2, 0, 3,
         TFM_STATUS_INVALID_ARGUMENT, "rope_layout"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_F32, 3, 1, 3, 8, 3, 2, 0, -1,
         TFM_STATUS_INVALID_ARGUMENT, "rope_layout"},
    };
    struct trial t;

    trial_begin(&t, 4, "rope refusal %d", _i);
    x = rows[_i].rank == 4 ? trial_input_4(&t, "x", rows[_i].x, 3, 5, rows[_i].d)
                           : trial_input(&t, "x", rows[_i].x, rows[_i].rank, 3, rows[_i].d);
    pos = trial_input(&t, "pos", rows[_i].pos, rows[_i].pos_rank, 5, 2);
    table = trial_buffer(&t, "table", rows[_i].table, rows[_i].table_rank, 9, rows[_i].pairs,
                         rows[_i].last);
    ck_assert_ptr_null(tfm_op_rope_layout(t.graph, x, pos, table,
                                          (enum tfm_rope_style)rows[_i].style,
                                          (enum tfm_rope_layout)rows[_i].layout));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

/* Fault: positions of another number of tokens are read past their end. */
START_TEST(refused_positions)
{
    struct trial t;

    trial_begin(&t, 4, "rope positions [6] for T = 5");
    x = _i ? trial_input_4(&t, "x", TFM_DTYPE_F32, 5, 6, 8)
           : trial_input_4(&t, "x", TFM_DTYPE_F32, 6, 5, 8);
    pos = trial_buffer(&t, "pos", TFM_DTYPE_I32, 1, 6, 0, 0);
    table = trial_buffer(&t, "table", TFM_DTYPE_F32, 3, 9, 4, 2);
    ck_assert_ptr_null(tfm_op_rope_layout(t.graph, x, pos, table, TFM_ROPE_HALVES,
                                          _i ? TFM_ROPE_TOKENS_FIRST : TFM_ROPE_HEADS_FIRST));
    trial_refused(&t, TFM_STATUS_SHAPE,
                  _i ? "[N, T]|'x' [N, 5, 6, 8]|'pos' [6] i32"
                     : "[N, T]|'x' [N, 6, 5, 8]|'pos' [6] i32");
}
END_TEST

void tfm__cases_rope(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "rope"), *rule = trial_rule_tcase(suite, "rope rule");

    tcase_add_loop_test(tcase, sizes, 0, 8);
    tcase_add_loop_test(tcase, batches, 0, 32);
    tcase_add_loop_test(tcase, backwards, 0, 16);
    tcase_add_loop_test(tcase, layouts_agree, 0, 2);
    tcase_add_loop_test(tcase, difference_only, 0, 5);
    tcase_add_loop_test(tcase, a10_worked_example, 0, 2);
    tcase_add_test(tcase, a12_neighbouring_positions);
    tcase_add_loop_test(tcase, position_out_of_range, 0, 3);
    tcase_add_loop_test(tcase, batch_out_of_range, 0, 4);
    tcase_add_test(rule, attributes);
    tcase_add_loop_test(rule, refusals, 0, 20);
    tcase_add_loop_test(rule, refused_positions, 0, 2);
}
