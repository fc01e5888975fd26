/* SPDX-License-Identifier: MIT
 * gqa_attention: what a row sees and what is done to its scores. Bidirectional, windows, soft cap,
 * relative bias, without caches, several sequences; properties; cases A15, A16, A17, A20, A21. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/attention.h"

static const struct {
    enum tfm_dtype dtype, cache;
} types[] = {
    {TFM_DTYPE_F32, TFM_DTYPE_F32}, {TFM_DTYPE_F32, TFM_DTYPE_F16}, {TFM_DTYPE_F64, TFM_DTYPE_F64}};

/* One head of one element over one sequence, F32. */
static struct attention_kind scalar(int64_t cells)
{
    return (struct attention_kind){.dtype = TFM_DTYPE_F32,
                                   .cache = TFM_DTYPE_F32,
                                   .heads = 1,
                                   .groups = 1,
                                   .d = 1,
                                   .slots = 1,
                                   .cells = cells,
                                   .scale = 1};
}

/* Every combination: with the oracle, over three sequences, one of them empty at first, then two more
 * runs where there is a cache. Fault: a mask is taken from the row instead of the position, from another
 * sequence, or off by one; a bias of another head or bucket; the cap at the wrong place. */
START_TEST(combinations)
{
    static const int windows[] = {0, 1, 2, 7, 1000};
    static const struct {
        double softcap;
        int64_t buckets, span;
    } scores[] = {{0, 0, 0}, {1.5, 0, 0}, {0, 5, 9}, {0.7, 3, 2}};
    static const int32_t lengths[][3] = {{33, 0, 8}, {1, 5, 3}, {2, 1, 1}};
    const int cached = _i / 2 % 2;
    int32_t past[3] = {0, 0, 0};

    for (size_t w = 0; w < 5; w++) {
        for (size_t c = 0; c < 4; c++) {
            const struct attention_kind kind = {
                .dtype = types[_i / 4].dtype,
                .cache = types[_i / 4].cache,
                .heads = 6,
                .groups = 2,
                .d = 5,
                .slots = 3,
                .cells = cached ? 40 : 0,
                .bidirectional = _i % 2,
                .window = windows[w],
                .softcap = scores[c].softcap,
                .buckets = scores[c].buckets,
                .span = scores[c].span,
            };
            struct trial t;
            attention_build(&t, 41, &kind);
            memset(past, 0, sizeof past);
            if (trial_open(&t, w % 2 ? TFM__DRIVE_ELEMENT_OFFSETS : 0)) {
                for (int run = 0; run < 3; run++) {
                    attention_refill(&t, (uint64_t)run, 3);
                    attention_attend_lengths(&t, 3, lengths[run], past);
                    for (int s = 0; s < 3 && cached; s++)
                        past[s] += lengths[run][s];
                }
            }
            trial_end(&t);
        }
    }
}
END_TEST

/* A21. Fault: a head size or a length that is no multiple of the vector or tile is cut or padded with
 * what lies behind it; a buffer is too small for the largest. */
START_TEST(a21_head_sizes)
{
    static const int64_t sizes[] = {1, 3, 4, 24, 31, 48, 64, 80, 96, 128, 256, 1023, 1024};
    static const uint32_t lengths[] = {1, 5, 63, 65};
    const int64_t d = sizes[_i / 2];

    for (size_t l = 0; l < (d > 128 ? 2 : 4); l++) {
        const struct attention_kind kind = {.dtype = TFM_DTYPE_F32,
                                            .heads = d > 128 ? 2 : 6,
                                            .groups = d > 128 ? 1 : 2,
                                            .d = d,
                                            .slots = 1,
                                            .bidirectional = _i % 2,
                                            .window = l == 3 ? 17 : 0};
        const struct tfm_rows rows = trial_rows(lengths[l], 0);
        struct trial t;
        attention_build(&t, lengths[l], &kind);
        if (trial_open(&t, 0)) {
            attention_refill(&t, l, 2);
            attention_attend(&t, &rows);
        }
        trial_end(&t);
    }
}
END_TEST

/* A15 with windows. Fault: the mask is aligned at the first query, or a window counts one more or fewer.
 * 3 queries after 4 cells, all scores 0, V row j = j. */
START_TEST(a15_windows)
{
    static const double values[] = {0, 1, 2, 3, 4, 5, 6};
    static const struct {
        int window, bidirectional;
        double want[3];
    } lines[] = {
        {0, 0, {2, 2.5, 3}},   {1, 0, {4, 5, 6}},   {2, 0, {3.5, 4.5, 5.5}}, {3, 0, {3, 4, 5}},
        {6, 0, {2, 2.5, 3.5}}, {7, 0, {2, 2.5, 3}}, {100, 0, {2, 2.5, 3}},   {0, 1, {3, 3, 3}},
        {1, 1, {4, 5, 6}},     {2, 1, {4, 5, 5.5}}, {3, 1, {4, 4.5, 5}},     {7, 1, {3, 3, 3}},
    };
    struct attention_kind kind = scalar(7);
    struct tfm_rows rows = trial_rows(4, 0);
    struct trial t;

    kind.window = lines[_i].window;
    kind.bidirectional = lines[_i].bidirectional;
    attention_build(&t, 4, &kind);
    trial_set_all(&t, attention.q, 0);
    ck_assert(trial_open(&t, 0));
    trial_set(&t, attention.v, 0, 4, values);
    trial_run(&t, &rows, TFM_STATUS_OK);
    rows = trial_rows(3, 4);
    trial_set(&t, attention.v, 0, 3, values + 4);
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, lines[_i].want, 3, 1e-6);
    trial_end(&t);
}
END_TEST

/* A16. Fault: -inf minus -inf. 2 queries, 2 keys, V = [1, 3]; row 1 fully masked: by scores that are all
 * -inf, or by a bias of -inf for the distances that it has, or by that and a window. Row 0 is as without
 * row 1. */
START_TEST(a16_fully_masked)
{
    static const struct {
        int by_bias, bidirectional, window;
        double want[2];
    } lines[] = {
        {0, 1, 0, {2, 0}}, {0, 0, 0, {1, 0}}, {0, 0, 1, {1, 0}}, {0, 1, 2, {2, 0}},
        {1, 1, 0, {3, 0}}, {1, 1, 2, {3, 0}}, {1, 1, 1, {0, 0}}, {1, 0, 0, {0, 0}},
    };
    static const double v[] = {1, 3}, one[] = {1, 1}, q[] = {0, -INFINITY}, nothing[] = {0, 0};
    /* distances -1 and 0 are masked: row 1 has only those, row 0 keeps +1 */
    static const double bias[] = {-INFINITY, -INFINITY, 0}, bucket[] = {0, 1, 2};
    const struct tfm_rows rows = trial_rows(2, 0);
    const int by_bias = lines[_i / 2].by_bias;
    struct attention_kind kind = scalar(_i % 2 ? 2 : 0);
    struct trial t;

    kind.bidirectional = lines[_i / 2].bidirectional;
    kind.window = lines[_i / 2].window;
    kind.buckets = by_bias ? 3 : 0;
    kind.span = 1;
    attention_build(&t, 2, &kind);
    trial_set(&t, attention.q, 0, 2, by_bias ? nothing : q);
    trial_set(&t, attention.k, 0, 2, one);
    trial_set(&t, attention.v, 0, 2, v);
    if (by_bias) {
        trial_set(&t, attention.rel_bias, 0, 3, bias);
        trial_set(&t, attention.rel_bucket, 0, 3, bucket);
    }
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, lines[_i / 2].want, 2, 1e-6);
    trial_end(&t);
}
END_TEST

/* Fault: a NaN among the scores is taken for a masked cell and disappears. */
START_TEST(nan_is_no_mask)
{
    const double q[] = {0, NAN}, one[] = {1, 1};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct attention_kind kind = scalar(0);
    struct trial t;
    double y[2];

    attention_build(&t, 2, &kind);
    trial_set(&t, attention.q, 0, 2, q);
    trial_set(&t, attention.k, 0, 2, one);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_get(&t, t.output, 0, 2, y);
    ck_assert(!isnan(y[0]) && isnan(y[1]));
    trial_end(&t);
}
END_TEST

/* Fault: heads that share K and V share their row too. q = [1,0] and [0,1], K = [[2,0],[0,2]], V rows 1
 * and 3, d = 2, no mask. */
START_TEST(heads_share_keys)
{
    static const double q[] = {1, 0, 0, 1, 1, 0, 0, 1}, k[] = {2, 0, 0, 2}, v[] = {1, 1, 3, 3};
    static const double want[] = {1.39114, 1.39114, 2.60886, 2.60886,
                                  1.39114, 1.39114, 2.60886, 2.60886};
    const struct attention_kind kind = {.dtype = TFM_DTYPE_F32,
                                        .cache = TFM_DTYPE_F32,
                                        .heads = 2,
                                        .groups = 1,
                                        .d = 2,
                                        .slots = 1,
                                        .cells = _i ? 2 : 0,
                                        .bidirectional = 1};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct trial t;

    attention_build(&t, 2, &kind);
    trial_set(&t, attention.q, 0, 8, q);
    trial_set(&t, attention.k, 0, 4, k);
    trial_set(&t, attention.v, 0, 4, v);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 8, 1e-5);
    trial_end(&t);
}
END_TEST

/* Fault: the cap stands before the scale or after the bias, or is not there. q k = 10 in cell 0 and 0 in
 * cell 1, V = [1, 0]: the result is the weight of cell 0, seen from row 1. */
START_TEST(cap_place)
{
    static const double ones[] = {1, 1}, k[] = {10, 0}, v[] = {1, 0}, bucket[] = {0, 1, 0};
    static const struct {
        double scale, softcap, bias; /* of distance 0 */
        double want;
    } lines[] = {
        {1, 0, 0, 0.9999546},   /* sigmoid(10) */
        {1, 1, 0, 0.7310586},   /* sigmoid(tanh 10) */
        {0.1, 1, 0, 0.6816997}, /* sigmoid(tanh 1) */
        {1, 5, 0, 0.9919989},   /* sigmoid(5 tanh 2) */
        {1, 1, 2, 0.2689414},   /* sigmoid(tanh 10 - 2) */
    };
    const struct tfm_rows rows = trial_rows(2, 0);
    struct attention_kind kind = scalar(2);
    const double bias[] = {0, lines[_i].bias};
    struct trial t;
    double y;

    kind.scale = lines[_i].scale;
    kind.softcap = lines[_i].softcap;
    kind.buckets = 2;
    kind.span = 1;
    attention_build(&t, 2, &kind);
    trial_set(&t, attention.q, 0, 2, ones);
    trial_set(&t, attention.k, 0, 2, k);
    trial_set(&t, attention.v, 0, 2, v);
    trial_set(&t, attention.rel_bias, 0, 2, bias);
    trial_set(&t, attention.rel_bucket, 0, 3, bucket);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_get(&t, t.output, 1, 1, &y);
    ck_assert_double_eq_tol(y, lines[_i].want, 1e-6);
    trial_end(&t);
}
END_TEST

/* Fault: the distance has the other sign, is not clamped, is that of rows instead of positions, or the
 * bias of another head is taken. All scores 0, bias of head 0 = log of 1, 2, 4, 8, 16 for distances -2 to
 * 2, of head 1 = 0; V row j = j, of 4 rows. Row 0 has weights 4, 8, 16, 16, row 3 has 1, 1, 2, 4. */
START_TEST(bias_by_distance)
{
    static const double values[] = {0, 1, 2, 3}, bucket[] = {0, 1, 2, 3, 4};
    static const double want[] = {88.0 / 44, 1.5, 68.0 / 30, 1.5, 34.0 / 15, 1.5, 17.0 / 8, 1.5};
    const struct attention_kind kind = {.dtype = TFM_DTYPE_F32,
                                        .cache = TFM_DTYPE_F32,
                                        .heads = 2,
                                        .groups = 1,
                                        .d = 1,
                                        .slots = 1,
                                        .cells = _i ? 4 : 0,
                                        .bidirectional = 1,
                                        .buckets = 5,
                                        .span = 2};
    struct tfm_rows rows = trial_rows(4, 0);
    struct trial t;

    attention_build(&t, 4, &kind);
    trial_set_all(&t, attention.q, 0);
    for (size_t i = 0; i < 5; i++) {
        const double pair[] = {log(ldexp(1, (int)i)), 0};
        trial_set(&t, attention.rel_bias, 2 * i, 2, pair);
    }
    trial_set(&t, attention.rel_bucket, 0, 5, bucket);
    trial_set(&t, attention.v, 0, 4, values);
    ck_assert(trial_open(&t, 0));
    if (_i == 2) { /* rows 2 and 3 in a run of their own, as positions 2 and 3 */
        rows = trial_rows(2, 0);
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_set(&t, attention.v, 0, 2, values + 2);
        rows = trial_rows(2, 2);
    }
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, _i == 2 ? want + 4 : want, _i == 2 ? 4 : 8, 1e-6);
    trial_end(&t);
}
END_TEST

/* A20. Fault: mask, position, bias or cache offset wrong at the border of two chunks. Causal, so that all
 * splits of a prompt give the same rows, on the reference the same bits. */
START_TEST(a20_chunks)
{
    static const uint32_t splits[][9] = {{1, 1, 1, 1, 1, 1, 1, 60},
                                         {3, 4, 60},
                                         {1, 66},
                                         {63, 4},
                                         {64, 3},
                                         {65, 2},
                                         {8, 9, 31, 19},
                                         {2, 1, 63, 1}};
    static const int windows[] = {0, 1, 2, 5, 33, 64, 100};
    enum { TOTAL = 67 };

    for (size_t w = 0; w < 7; w++) {
        const struct attention_kind kind = {.dtype = TFM_DTYPE_F32,
                                            .cache = types[w % 2].cache,
                                            .heads = 6,
                                            .groups = 3,
                                            .d = 24,
                                            .slots = 1,
                                            .cells = TOTAL,
                                            .window = windows[w],
                                            .softcap = w % 3 ? 2 : 0,
                                            .buckets = w % 2 ? 7 : 0,
                                            .span = 20};
        const struct tfm_rows whole = trial_rows(TOTAL, 0);
        struct trial t;
        attention_build(&t, TOTAL, &kind);
        struct tfm_tensor *const inputs[] = {attention.q, attention.k, attention.v};
        const size_t row = tfm__drive_bytes(t.output, 1), width = (size_t)(kind.heads * kind.d);
        unsigned char *source[3], *once = malloc(TOTAL * row);
        double *want = malloc(TOTAL * width * sizeof *want);
        ck_assert(once && want);
        attention_refill(&t, 3, 2);
        ck_assert(trial_open(&t, 0));
        attention_attend(&t, &whole);
        memcpy(once, t.data[t.output->id], TOTAL * row);
        tfm_dtype_to_f64(TFM_DTYPE_F32, once, 0, TOTAL * width, want);
        for (int i = 0; i < 3; i++) {
            source[i] = malloc(tfm__drive_bytes(inputs[i], TOTAL));
            ck_assert_ptr_nonnull(source[i]);
            memcpy(source[i], t.data[inputs[i]->id], tfm__drive_bytes(inputs[i], TOTAL));
        }
        memset(t.data[attention.k_cache->id], 0xff, tfm__drive_bytes(attention.k_cache, 1));
        memset(t.data[attention.v_cache->id], 0xff, tfm__drive_bytes(attention.v_cache, 1));
        uint32_t first = 0;
        for (int p = 0; p < 9 && splits[_i][p]; p++) {
            const uint32_t part = splits[_i][p];
            const struct tfm_rows rows = trial_rows(part, (int32_t)first);
            for (int i = 0; i < 3; i++)
                memcpy(t.data[inputs[i]->id], source[i] + tfm__drive_bytes(inputs[i], first),
                       tfm__drive_bytes(inputs[i], part));
            attention_attend(&t, &rows);
            trial_compare(&t, want + first * width, part * width);
            if (trial_is_reference())
                ck_assert_int_eq(memcmp(once + first * row, t.data[t.output->id], part * row), 0);
            first += part;
        }
        ck_assert_uint_eq(first, TOTAL);
        for (int i = 0; i < 3; i++)
            free(source[i]);
        free(once);
        free(want);
        trial_end(&t);
    }
}
END_TEST

/* Fault: a kv head is read as if it belonged to other query heads. GQA of H/G is MHA whose K and V repeat
 * each kv head H/G times; on the reference with the same bits. */
START_TEST(gqa_is_mha_of_repeated_heads)
{
    static const struct {
        int64_t heads, groups;
    } sizes[] = {{8, 2}, {9, 3}, {8, 1}};
    enum { N = 9, D = 7 };
    const int64_t H = sizes[_i / 3].heads, G = sizes[_i / 3].groups;
    const int kind_of = _i % 3; /* causal with cache; bidirectional without; window, cap and bias */
    struct attention_kind kind = {.dtype = TFM_DTYPE_F32,
                                  .cache = TFM_DTYPE_F32,
                                  .heads = H,
                                  .groups = G,
                                  .d = D,
                                  .slots = 1,
                                  .cells = kind_of == 1 ? 0 : N,
                                  .bidirectional = kind_of == 1,
                                  .window = kind_of == 2 ? 4 : 0,
                                  .softcap = kind_of == 2 ? 1.5 : 0,
                                  .buckets = kind_of == 2 ? 4 : 0,
                                  .span = 3};
    const struct tfm_rows rows = trial_rows(N, 0);
    struct trial few, many;
    double a[N * 9 * D], b[N * 9 * D];

    attention_build(&few, N, &kind);
    attention_refill(&few, 1, 2);
    ck_assert(trial_open(&few, 0));
    attention_attend(&few, &rows);
    trial_get(&few, few.output, 0, (size_t)(N * H * D), a);
    const struct attention gqa = attention;
    kind.groups = H;
    attention_build(&many, N, &kind);
    for (int64_t n = 0; n < N; n++) {
        for (int64_t h = 0; h < H; h++) {
            const size_t from = (size_t)((n * G + h / (H / G)) * D), to = (size_t)((n * H + h) * D);
            double vector[D];
            trial_get(&few, gqa.k, from, D, vector);
            trial_set(&many, attention.k, to, D, vector);
            trial_get(&few, gqa.v, from, D, vector);
            trial_set(&many, attention.v, to, D, vector);
            trial_get(&few, gqa.q, to, D, vector);
            trial_set(&many, attention.q, to, D, vector);
        }
    }
    for (int64_t i = 0; gqa.rel_bias && i < kind.buckets * H; i++) {
        double bias;
        trial_get(&few, gqa.rel_bias, (size_t)i, 1, &bias);
        trial_set(&many, attention.rel_bias, (size_t)i, 1, &bias);
    }
    ck_assert(trial_open(&many, 0));
    trial_run(&many, &rows, TFM_STATUS_OK);
    trial_get(&many, many.output, 0, (size_t)(N * H * D), b);
    for (int64_t i = 0; i < N * H * D; i++)
        ck_assert(fabs(a[i] - b[i]) <= (trial_is_reference() ? 0 : 2e-5));
    trial_end(&few);
    trial_end(&many);
}
END_TEST

/* Fault: an order creeps in where there is none, or is lost where there is one. Without positions and mask
 * a permutation of the rows permutes the results; with a causal mask, a window or a bias by distance it
 * does not. */
START_TEST(permutation)
{
    enum { N = 33, H = 4, D = 6 };
    const struct attention_kind kinds[] = {{.bidirectional = 1},
                                           {.bidirectional = 0},
                                           {.bidirectional = 1, .window = 5},
                                           {.bidirectional = 1, .buckets = 4, .span = 8}};
    struct attention_kind kind = kinds[_i];
    const struct tfm_rows rows = trial_rows(N, 0);
    double plain[N * H * D], permuted[N * H * D], largest = 0, apart = 0;
    struct trial t;

    kind.dtype = TFM_DTYPE_F32;
    kind.heads = H;
    kind.groups = 2;
    kind.d = D;
    kind.slots = 1;
    attention_build(&t, N, &kind);
    struct tfm_tensor *const inputs[] = {attention.q, attention.k, attention.v};
    attention_refill(&t, 1, 2);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_get(&t, t.output, 0, N * H * D, plain);
    for (int i = 0; i < 3; i++) { /* row n moves to 7 n mod 33 */
        const size_t width = (size_t)tfm_tensor_row_elements(inputs[i]);
        double values[N * H * D];
        trial_get(&t, inputs[i], 0, N * width, values);
        for (size_t n = 0; n < N; n++)
            trial_set(&t, inputs[i], 7 * n % N * width, width, values + n * width);
    }
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_get(&t, t.output, 0, N * H * D, permuted);
    for (size_t i = 0; i < N * H * D; i++) {
        const size_t n = i / (H * D);
        largest = fmax(largest, fabs(plain[i]));
        apart = fmax(apart, fabs(plain[i] - permuted[7 * n % N * H * D + i % (H * D)]));
    }
    if (_i == 0)
        ck_assert_msg(apart <= 1e-5 * largest, "%s: apart by %g of %g", t.what, apart, largest);
    else
        ck_assert_msg(apart > 0.1 * largest, "%s: apart by only %g of %g", t.what, apart, largest);
    trial_end(&t);
}
END_TEST

/* ---- A17: rotated queries and keys of a batch ---- */

enum { A17_HEADS = 4, A17_GROUPS = 2, A17_D = 8, A17_CELLS = 8 };

static struct tfm_tensor *pos, *table;

static void build_rotated(struct trial *t, uint32_t rows, int64_t slots)
{
    trial_begin(t, rows, "rope and attention, %lld slots", (long long)slots);
    t->capacity.sequences = (uint32_t)slots;
    memset(&attention, 0, sizeof attention);
    attention.q = trial_input(t, "q", TFM_DTYPE_F32, 3, A17_HEADS, A17_D);
    attention.k = trial_input(t, "k", TFM_DTYPE_F32, 3, A17_GROUPS, A17_D);
    attention.v = trial_input(t, "v", TFM_DTYPE_F32, 3, A17_GROUPS, A17_D);
    pos = trial_input(t, "pos", TFM_DTYPE_I32, 1, 0, 0);
    table = trial_buffer(t, "table", TFM_DTYPE_F32, 3, A17_CELLS, A17_D / 2, 2);
    for (int p = 0; p < A17_CELLS; p++) {
        for (int i = 0; i < A17_D / 2; i++) {
            const double angle = p * pow(10000, -2.0 * i / A17_D), cs[] = {cos(angle), sin(angle)};
            trial_set(t, table, (size_t)((p * A17_D / 2 + i) * 2), 2, cs);
        }
    }
    attention.k_cache =
        trial_state(t, "k_cache", TFM_DTYPE_F32, slots, A17_CELLS, A17_GROUPS, A17_D);
    attention.v_cache =
        trial_state(t, "v_cache", TFM_DTYPE_F32, slots, A17_CELLS, A17_GROUPS, A17_D);
    trial_output(t, tfm_op_gqa_attention(
                        t->graph, tfm_op_rope(t->graph, attention.q, pos, table, TFM_ROPE_HALVES),
                        tfm_op_rope(t->graph, attention.k, pos, table, TFM_ROPE_HALVES),
                        attention.v, attention.k_cache, attention.v_cache, 0));
}

/* What a layer would make of a token: values that depend on its id alone. */
static void set_token(struct trial *t, size_t row, int id, int position)
{
    struct tfm_tensor *const inputs[] = {attention.q, attention.k, attention.v};
    const double p = position;

    for (int i = 0; i < 3; i++) {
        const size_t width = (size_t)tfm_tensor_row_elements(inputs[i]);
        for (size_t e = 0; e < width; e++) {
            const double value = 4 * trial_random((uint64_t)(id * 1000 + i * 100) + e) - 2;
            trial_set(t, inputs[i], row * width + e, 1, &value);
        }
    }
    trial_set(t, pos, row, 1, &p);
}

/* A17. Fault: positions are counted from the padded start or shared by all rows; the padding is a key.
 * [[5, 6, 7], [PAD, 8, 9]] has no row for the padding: two sequences of 3 and 2 rows. The second equals
 * [8, 9] alone, in the prompt and in three single steps (ids 10, 11, 12). */
START_TEST(a17_left_padding)
{
    static const int32_t slot[] = {0, 1}, start[] = {0, 3}, next[] = {0, 1}, none[] = {0, 0};
    enum { WIDTH = A17_HEADS * A17_D };
    struct tfm_rows both = {5, 2, 0, slot, start, none, NULL}, one = trial_rows(2, 0);
    double together[5 * WIDTH], alone[2 * WIDTH];
    struct trial batch, single;

    build_rotated(&batch, 5, 2);
    const struct attention first = attention;
    struct tfm_tensor *const first_pos = pos;
    for (int i = 0; i < 3; i++)
        set_token(&batch, (size_t)i, 5 + i, i);
    for (int i = 0; i < 2; i++)
        set_token(&batch, (size_t)(3 + i), 8 + i, i);
    ck_assert(trial_open(&batch, 0));
    trial_run(&batch, &both, TFM_STATUS_OK);
    trial_get(&batch, batch.output, 0, 5 * WIDTH, together);

    build_rotated(&single, 2, 1);
    const struct attention second = attention;
    struct tfm_tensor *const second_pos = pos;
    for (int i = 0; i < 2; i++)
        set_token(&single, (size_t)i, 8 + i, i);
    ck_assert(trial_open(&single, 0));
    trial_run(&single, &one, TFM_STATUS_OK);
    trial_get(&single, single.output, 0, 2 * WIDTH, alone);
    const double slack = trial_is_reference() ? 0 : 1e-5;
    for (int i = 0; i < 2 * WIDTH; i++)
        ck_assert(fabs(together[3 * WIDTH + i] - alone[i]) <= slack);

    for (int step = 0; step < 3; step++) {
        const int32_t past[] = {3 + step, 2 + step};
        attention = first;
        pos = first_pos;
        set_token(&batch, 0, 20 + step, 3 + step);
        set_token(&batch, 1, 10 + step, 2 + step);
        both = (struct tfm_rows){2, 2, 0, slot, next, past, NULL};
        trial_run(&batch, &both, TFM_STATUS_OK);
        trial_get(&batch, batch.output, 0, 2 * WIDTH, together);
        attention = second;
        pos = second_pos;
        set_token(&single, 0, 10 + step, 2 + step);
        one = trial_rows(1, 2 + step);
        trial_run(&single, &one, TFM_STATUS_OK);
        trial_get(&single, single.output, 0, WIDTH, alone);
        for (int i = 0; i < WIDTH; i++)
            ck_assert(fabs(together[WIDTH + i] - alone[i]) <= slack);
    }
    trial_end(&batch);
    trial_end(&single);
}
END_TEST

/* ---- what does not fit ---- */

/* Fault: without a cache the past is made up, or rows of no sequence are read. The core looks first
 * (tests/core/test_rows.c), the reference again. */
START_TEST(rows_without_cache)
{
    static const struct {
        uint32_t n_seq;
        int32_t start[2], past[2];
        enum tfm_status status;
    } lines[] = {
        {2, {0, 2}, {0, 0}, TFM_STATUS_OK},
        {2, {0, 2}, {0, 1}, TFM_STATUS_INVALID_ARGUMENT},
        {2, {0, 2}, {-1, 0}, TFM_STATUS_OUT_OF_RANGE},
        {0, {0, 0}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
        {2, {0, 6}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
        {2, {1, 2}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
    };
    static const int32_t slot[] = {-7, -7}; /* there are none */
    const struct tfm_rows rows = {5,   lines[_i].n_seq, 0, slot, lines[_i].start, lines[_i].past,
                                  NULL};
    struct attention_kind kind = scalar(0);
    struct trial t;

    if (!trial_is_reference())
        return;
    kind.slots = 2;
    attention_build(&t, 5, &kind);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, lines[_i].status);
    trial_end(&t);
}
END_TEST

/* Fault: a bucket that is none reads foreign memory. The core looks when it compiles
 * (tests/core/test_values.c), the reference again. */
START_TEST(bucket_out_of_range)
{
    static const double bad[] = {-1, 3, 2147483647};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct attention_kind kind = scalar(0);
    struct trial t;

    kind.buckets = 3;
    kind.span = 4;
    attention_build(&t, 2, &kind);
    ck_assert_int_eq(attention.rel_bucket->limit, 3);
    ck_assert_int_eq(attention.rel_bucket->is_position, 0);
    if (trial_is_reference()) {
        trial_set(&t, attention.rel_bucket, 8, 1, &bad[_i]);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OUT_OF_RANGE);
    }
    trial_end(&t);
}
END_TEST

/* Fault: an attribute or a bias that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        int bidirectional, window;
        double softcap;
        enum tfm_dtype bias, bucket;
        int bias_rank, bucket_rank;
        int64_t bias_heads, distances;
        enum tfm_status status;
        const char *words;
    } lines[] = {
        {2, 0, 0, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 4, 9, TFM_STATUS_INVALID_ARGUMENT,
         "gqa_attention|bidirectional|'q' [N, 4, 8]"},
        {0, -1, 0, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 4, 9, TFM_STATUS_INVALID_ARGUMENT,
         "window|'q' [N, 4, 8]"},
        {0, 0, -2, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 4, 9, TFM_STATUS_INVALID_ARGUMENT,
         "softcap|'q' [N, 4, 8]"},
        {0, 0, NAN, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 4, 9, TFM_STATUS_INVALID_ARGUMENT,
         "softcap"},
        {0, 0, INFINITY, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 4, 9, TFM_STATUS_INVALID_ARGUMENT,
         "softcap"},
        {0, 0, 0, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 2, 9, TFM_STATUS_SHAPE,
         "'q' [N, 4, 8]|'rel_bias' [5, 2]"},
        {0, 0, 0, TFM_DTYPE_F32, TFM_DTYPE_I32, 1, 1, 4, 9, TFM_STATUS_SHAPE, "'rel_bias' [5]"},
        {0, 0, 0, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 1, 4, 8, TFM_STATUS_SHAPE,
         "2 M + 1|'rel_bias' [5, 4]|'rel_bucket' [8] i32"},
        {0, 0, 0, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 2, 4, 9, TFM_STATUS_SHAPE,
         "'rel_bucket' [9, 3]"},
        {0, 0, 0, TFM_DTYPE_F16, TFM_DTYPE_I32, 2, 1, 4, 9, TFM_STATUS_DTYPE,
         "'rel_bias' [5, 4] f16"},
        {0, 0, 0, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, 4, 9, TFM_STATUS_DTYPE,
         "'rel_bucket' [9] f32"},
    };
    struct trial t;

    trial_begin(&t, 4, "gqa_attention refusal %d", _i);
    struct tfm_tensor *q = trial_input(&t, "q", TFM_DTYPE_F32, 3, 4, 8);
    const struct tfm_attention config = {
        .bidirectional = lines[_i].bidirectional,
        .window = lines[_i].window,
        .softcap = lines[_i].softcap,
        .rel_bias = trial_parameter(&t, "rel_bias", lines[_i].bias, lines[_i].bias_rank, 5,
                                    lines[_i].bias_heads),
        .rel_bucket = trial_buffer(&t, "rel_bucket", lines[_i].bucket, lines[_i].bucket_rank,
                                   lines[_i].distances, 3, 0),
    };
    ck_assert_ptr_null(tfm_op_attention(t.graph, q, q, q, &config));
    trial_refused(&t, lines[_i].status, lines[_i].words);
}
END_TEST

/* Fault: half of a pair of inputs is taken for none, and the other half dropped. */
START_TEST(refused_halves)
{
    struct trial t;

    trial_begin(&t, 4, "gqa_attention half %d", _i);
    struct tfm_tensor *q = trial_input(&t, "q", TFM_DTYPE_F32, 3, 4, 8);
    struct tfm_tensor *cache = trial_state(&t, "cache", TFM_DTYPE_F32, 1, 4, 4, 8);
    struct tfm_tensor *bias = trial_parameter(&t, "bias", TFM_DTYPE_F32, 2, 5, 4);
    struct tfm_tensor *bucket = trial_buffer(&t, "bucket", TFM_DTYPE_I32, 1, 9, 0, 0);
    const struct tfm_attention halves[] = {
        {.k_cache = cache}, {.v_cache = cache}, {.rel_bias = bias}, {.rel_bucket = bucket}};
    ck_assert_ptr_null(tfm_op_attention(t.graph, q, q, q, &halves[_i]));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT,
                  _i < 2 ? "k_cache and v_cache|'cache' [1, 4, 4, 8]" : "rel_bias and rel_bucket");
}
END_TEST

/* Fault: a node that uses nothing new does not look as it did, so that older plugins are not asked. */
START_TEST(node_of_old)
{
    struct attention_kind kind = scalar(4);
    struct trial t;

    attention_build(&t, 4, &kind);
    const struct tfm_node *node = tfm_graph_node(t.graph, 0);
    ck_assert_uint_eq(node->n_inputs, 5);
    ck_assert(node->attrs.window == 0 && node->attrs.softcap == 0);
    ck_assert(node->attrs.bidirectional == 0);
    trial_end(&t);
    kind.cells = 0;
    attention_build(&t, 4, &kind);
    ck_assert_uint_eq(tfm_graph_node(t.graph, 0)->n_inputs, 3);
    trial_end(&t);
}
END_TEST

void attention_mask_cases(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "gqa_attention masks");
    TCase *rule = trial_rule_tcase(suite, "gqa_attention masks rule");

    tcase_add_loop_test(tcase, combinations, 0, 12);
    tcase_add_loop_test(tcase, a21_head_sizes, 0, 26);
    tcase_add_loop_test(tcase, a15_windows, 0, 12);
    tcase_add_loop_test(tcase, a16_fully_masked, 0, 16);
    tcase_add_test(tcase, nan_is_no_mask);
    tcase_add_loop_test(tcase, heads_share_keys, 0, 2);
    tcase_add_loop_test(tcase, cap_place, 0, 5);
    tcase_add_loop_test(tcase, bias_by_distance, 0, 3);
    tcase_add_loop_test(tcase, a20_chunks, 0, 8);
    tcase_add_loop_test(tcase, gqa_is_mha_of_repeated_heads, 0, 9);
    tcase_add_loop_test(tcase, permutation, 0, 4);
    tcase_add_test(tcase, a17_left_padding);
    tcase_add_loop_test(tcase, rows_without_cache, 0, 6);
    tcase_add_loop_test(tcase, bucket_out_of_range, 0, 3);
    tcase_add_loop_test(rule, refusals, 0, 11);
    tcase_add_loop_test(rule, refused_halves, 0, 4);
    tcase_add_test(rule, node_of_old);
}
