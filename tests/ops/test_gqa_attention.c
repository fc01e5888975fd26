/* SPDX-License-Identifier: MIT
 * gqa_attention, causal over a cache: head sizes, groups, cache dtypes, prompts in chunks, many sequences,
 * guards; cases A15, A16, A18, A20, A21. Masks and biases are in attention_masks.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/attention.h"

static struct tfm_tensor *q, *k, *v, *k_cache, *v_cache;

struct heads {
    int64_t h, g, d;
};

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, enum tfm_dtype cache,
                  struct heads n, int64_t slots, int64_t cells, double factor)
{
    const struct attention_kind kind = {.dtype = dtype,
                                        .cache = cache,
                                        .heads = n.h,
                                        .groups = n.g,
                                        .d = n.d,
                                        .slots = slots,
                                        .cells = cells,
                                        .scale = factor};

    attention_build(t, rows, &kind);
    q = attention.q;
    k = attention.k;
    v = attention.v;
    k_cache = attention.k_cache;
    v_cache = attention.v_cache;
}

static const struct {
    enum tfm_dtype dtype, cache;
} types[] = {
    {TFM_DTYPE_F32, TFM_DTYPE_F32}, {TFM_DTYPE_F32, TFM_DTYPE_F16}, {TFM_DTYPE_F64, TFM_DTYPE_F64}};

/* A21. Fault: a head size or a length that is no multiple of the vector or tile is cut or padded with
 * what lies behind it. A prompt, then two single steps. */
START_TEST(a21_head_sizes)
{
    static const int64_t sizes[] = {1, 4, 24, 48, 64, 80, 96, 128, 3, 31, 65};
    static const uint32_t lengths[] = {1, 5, 63, 65};
    const struct heads n = {6, 2, sizes[_i / 3]};

    for (size_t l = 0; l < 4; l++) {
        struct trial t;
        build(&t, lengths[l], types[_i % 3].dtype, types[_i % 3].cache, n, 1, 70, 0);
        if (trial_open(&t, l == 1 ? TFM__DRIVE_ELEMENT_OFFSETS : 0)) {
            struct tfm_rows rows = trial_rows(lengths[l], 0);
            attention_refill(&t, l, 2);
            attention_attend(&t, &rows);
            for (int32_t step = 0; step < 2; step++) {
                rows = trial_rows(1, (int32_t)lengths[l] + step);
                attention_refill(&t, 100 + l + (uint64_t)step, 2);
                attention_attend(&t, &rows);
            }
        }
        trial_end(&t);
    }
}
END_TEST

/* Fault: a buffer for one head is too small. Other backends may refuse such heads. */
START_TEST(largest_heads)
{
    static const int64_t sizes[] = {256, 1023, 1024};
    const struct heads n = {2, 1, sizes[_i]};
    const struct tfm_rows rows = trial_rows(9, 0);
    struct trial t;

    build(&t, 9, TFM_DTYPE_F32, TFM_DTYPE_F16, n, 1, 9, 0);
    t.may_refuse = 1;
    if (trial_open(&t, 0))
        attention_attend(&t, &rows);
    trial_end(&t);
}
END_TEST

/* A15. Fault: the mask is aligned at the first query instead of at the positions. */
START_TEST(a15_query_after_past)
{
    static const double values[] = {0, 1, 2, 3, 4, 5, 6}, want[] = {2, 2.5, 3};
    const struct heads n = {1, 1, 1};
    struct tfm_rows rows = trial_rows(4, 0);
    struct trial t;

    build(&t, 4, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 1, 7, 0);
    trial_set_all(&t, q, 0);
    ck_assert(trial_open(&t, 0));
    trial_set(&t, v, 0, 4, values);
    trial_run(&t, &rows, TFM_STATUS_OK);
    rows = trial_rows(3, 4);
    trial_set(&t, v, 0, 3, values + 4);
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 3, 1e-6);
    trial_end(&t);
}
END_TEST

/* A16. Fault: a sequence without rows takes the rows of its neighbour, or divides by nothing. */
START_TEST(a16_empty_sequences)
{
    static const int32_t slot[] = {1, 3, 0, 2}, start[] = {0, 0, 2, 2}, past[] = {9, 0, 4, 0};
    const struct heads n = {4, 2, 8};
    struct tfm_rows rows = {4, 4, 0, slot, start, past, NULL};
    struct trial t;

    build(&t, 4, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 4, 10, 0);
    ck_assert(trial_open(&t, 0));
    attention_refill(&t, 1, 1);
    attention_attend(&t, &rows);
    static const int32_t all_at_last[] = {0, 0, 0, 0}, none_at_end[] = {0, 2, 4, 4};
    rows.start = all_at_last;
    attention_attend(&t, &rows);
    rows.start = none_at_end;
    static const int32_t nothing_past[] = {0, 0, 5, 6};
    rows.past = nothing_past;
    attention_attend(&t, &rows);
    rows = (struct tfm_rows){0, 0, 0, NULL, NULL, NULL, NULL};
    attention_attend(&t, &rows);
    trial_end(&t);
}
END_TEST

/* Fault: rows of one sequence see another's cells, or go to another's slot. */
START_TEST(many_sequences)
{
    static const int32_t slot[] = {4, 0, 3, 1, 2}, start[] = {0, 33, 34, 34, 41};
    static const int32_t again[] = {0, 1, 2, 3, 4}, steps[] = {1, 1, 1, 1, 1};
    static const int32_t zero[] = {0, 0, 0, 0, 0};
    const struct heads n = {9, 3, 16};
    struct tfm_rows rows = {65, 5, 0, slot, start, zero, NULL};
    int32_t past[5];
    struct trial t;

    build(&t, 65, types[_i].dtype, types[_i].cache, n, 5, 40, 0);
    if (trial_open(&t, 0)) {
        attention_refill(&t, 1, 2);
        attention_attend(&t, &rows);
        for (int s = 0; s < 5; s++)
            past[s] = (s < 4 ? start[s + 1] : 65) - start[s];
        rows = (struct tfm_rows){5, 5, 0, slot, again, past, NULL};
        for (int step = 0; step < 3; step++) {
            attention_refill(&t, 2 + (uint64_t)step, 2);
            attention_attend(&t, &rows);
            for (int s = 0; s < 5; s++)
                past[s] += steps[s];
        }
    }
    trial_end(&t);
}
END_TEST

/* A18. Fault: query head h reads kv head h mod G, or h / G. */
START_TEST(a18_groups)
{
    static const struct heads sizes[] = {{8, 2, 4}, {9, 3, 4}, {8, 1, 4}, {6, 6, 4}, {71, 1, 4}};
    const struct heads n = sizes[_i];
    const struct tfm_rows rows = trial_rows(3, 0);
    struct trial t;

    build(&t, 3, TFM_DTYPE_F32, TFM_DTYPE_F16, n, 1, 3, 0);
    for (size_t i = 0; i < trial_count(&t, v); i++) {
        const double value = 10 * (double)((int64_t)i / n.d % n.g + 1);
        trial_set(&t, v, i, 1, &value);
    }
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    for (int64_t i = 0; i < 3 * n.h * n.d; i++) {
        double y;
        trial_get(&t, t.output, (size_t)i, 1, &y);
        ck_assert_double_eq_tol(y, 10 * (double)(i / n.d % n.h / (n.h / n.g) + 1), 1e-5);
    }
    attention_refill(&t, 5, 1);
    attention_attend(&t, &rows);
    trial_end(&t);
}
END_TEST

/* A20. Fault: a mask, position or cache offset is wrong at the border of two chunks. All splits of a
 * prompt give the same rows, on the reference the same bits. */
START_TEST(a20_chunks)
{
    static const struct {
        uint32_t total, parts[8];
    } splits[] = {
        {7, {1, 1, 1, 1, 1, 1, 1}},
        {7, {3, 4}},
        {7, {1, 6}},
        {130, {63, 67}},
        {130, {64, 66}},
        {130, {65, 65}},
        {130, {1, 129}},
        {130, {129, 1}},
        {130, {2, 1, 63, 64}},
        {130, {8, 9, 31, 33, 49}},
    };
    static const int caches[] = {0, 1};
    const struct heads n = {6, 3, 24};
    const uint32_t total = splits[_i].total;

    for (size_t c = 0; c < 2; c++) {
        struct trial t;
        build(&t, total, TFM_DTYPE_F32, types[caches[c]].cache, n, 1, total, 0);
        const size_t bytes = tfm__drive_bytes(t.output, total), row = tfm__drive_bytes(t.output, 1);
        const struct tfm_rows whole = trial_rows(total, 0);
        struct tfm_tensor *inputs[] = {q, k, v};
        unsigned char *source[3], *once = malloc(bytes);
        double *want = malloc(trial_count(&t, t.output) * sizeof *want);
        ck_assert(once && want);
        ck_assert(trial_open(&t, 0));
        attention_refill(&t, 3, 2);
        attention_attend(&t, &whole);
        memcpy(once, t.data[t.output->id], bytes);
        for (int i = 0; i < 3; i++) {
            source[i] = malloc(tfm__drive_bytes(inputs[i], total));
            ck_assert_ptr_nonnull(source[i]);
            memcpy(source[i], t.data[inputs[i]->id], tfm__drive_bytes(inputs[i], total));
        }
        memset(t.data[k_cache->id], 0xff, tfm__drive_bytes(k_cache, 1));
        memset(t.data[v_cache->id], 0xff, tfm__drive_bytes(v_cache, 1));
        uint32_t first = 0;
        for (int p = 0; p < 8 && splits[_i].parts[p]; p++) {
            const uint32_t part = splits[_i].parts[p];
            const struct tfm_rows rows = trial_rows(part, (int32_t)first);
            for (int i = 0; i < 3; i++)
                memcpy(t.data[inputs[i]->id], source[i] + tfm__drive_bytes(inputs[i], first),
                       tfm__drive_bytes(inputs[i], part));
            attention_attend(&t, &rows);
            tfm_dtype_to_f64(t.output->dtype, once + first * row, 0, part * row / sizeof(float),
                             want);
            trial_compare(&t, want, part * row / sizeof(float));
            if (trial_is_reference())
                ck_assert_int_eq(memcmp(once + first * row, t.data[t.output->id], part * row), 0);
            first += part;
        }
        ck_assert_uint_eq(first, total);
        for (int i = 0; i < 3; i++)
            free(source[i]);
        free(once);
        free(want);
        trial_end(&t);
    }
}
END_TEST

/* Fault: the split of a long context, or of the loop over rows and heads, changes a result. */
START_TEST(long_context)
{
    const struct heads n = {9, 3, 64};
    struct trial t;

    build(&t, 300, TFM_DTYPE_F32, types[_i].cache, n, 1, 603, 0);
    ck_assert(trial_open(&t, 0));
    struct tfm_rows rows = trial_rows(300, 0);
    attention_refill(&t, 1, 1);
    attention_attend(&t, &rows);
    rows = trial_rows(300, 300);
    attention_refill(&t, 2, 1);
    attention_attend(&t, &rows);
    rows = trial_rows(3, 600);
    attention_refill(&t, 3, 1);
    attention_attend(&t, &rows);
    if (trial_is_reference()) {
        const size_t bytes = tfm__drive_bytes(t.output, 3);
        unsigned char *bits = malloc(bytes);
        ck_assert_ptr_nonnull(bits);
        memcpy(bits, t.data[t.output->id], bytes);
        trial_shut(&t);
        ck_assert(trial_open(&t, TFM__DRIVE_WHOLE));
        trial_run(&t, &rows, TFM_STATUS_OK);
        ck_assert_int_eq(memcmp(bits, t.data[t.output->id], bytes), 0);
        free(bits);
    }
    trial_end(&t);
}
END_TEST

/* Fault: running the same rows again reads the cells of the first time as past. */
START_TEST(same_rows_again)
{
    const struct heads n = {4, 4, 8};
    const struct tfm_rows rows = trial_rows(5, 2);
    struct trial t;

    build(&t, 5, TFM_DTYPE_F32, TFM_DTYPE_F16, n, 1, 9, 0);
    ck_assert(trial_open(&t, 0));
    const struct tfm_rows before = trial_rows(2, 0);
    attention_refill(&t, 1, 1);
    attention_attend(&t, &before);
    for (int again = 0; again < 3; again++) {
        const struct tfm_rows same = trial_rows(5, 2);
        attention_refill(&t, 2, 1);
        attention_attend(&t, &same);
    }
    attention_refill(&t, 3, 1); /* other values in the same cells */
    attention_attend(&t, &rows);
    trial_end(&t);
}
END_TEST

/* Fault: exp is taken without the largest score, or of scores in a narrow type. Scores reach +-5e5. */
START_TEST(large_scores)
{
    const struct heads n = {2, 1, 64};
    const struct tfm_rows rows = trial_rows(33, 0);
    struct trial t;

    build(&t, 33, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 1, 33, 0);
    ck_assert(trial_open(&t, 0));
    attention_refill(&t, 1, 400);
    attention_attend(&t, &rows);
    trial_end(&t);
}
END_TEST

/* Fault: a given scale is left out, or multiplies 1/sqrt(d). */
START_TEST(given_scale)
{
    static const double scales[] = {1, 0.25, -0.5};
    const struct heads n = {4, 2, 16};
    const struct tfm_rows rows = trial_rows(7, 0);
    struct trial t;

    build(&t, 7, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 1, 7, scales[_i]);
    ck_assert(trial_open(&t, 0));
    attention_refill(&t, 1, 2);
    attention_attend(&t, &rows);
    trial_end(&t);
}
END_TEST

/* Fault: rows that do not fit write outside the caches. The core looks first; the reference again. */
START_TEST(rows_that_do_not_fit)
{
    static const struct {
        int32_t slot[2], start[2], past[2];
        enum tfm_status status;
    } rows[] = {
        {{0, 1}, {0, 2}, {0, 6}, TFM_STATUS_CONTEXT_FULL},
        {{0, 2}, {0, 2}, {0, 0}, TFM_STATUS_OUT_OF_RANGE},
        {{-1, 1}, {0, 2}, {0, 0}, TFM_STATUS_OUT_OF_RANGE},
        {{0, 1}, {0, 2}, {-1, 0}, TFM_STATUS_OUT_OF_RANGE},
        {{0, 1}, {1, 2}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
        {{0, 1}, {0, 6}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
        {{0, 1}, {0, -1}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
    };
    const struct heads n = {2, 1, 4};
    const struct tfm_rows run = {5, 2, 0, rows[_i].slot, rows[_i].start, rows[_i].past, NULL};
    struct trial t;

    if (!trial_is_reference())
        return;
    build(&t, 5, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 2, 8, 0);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &run, rows[_i].status);
    trial_end(&t);
}
END_TEST

/* Fault: a shape, dtype or scale that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype q, k, cache, v_cache;
        int64_t h, g, d, k_d, cache_g, v_cells;
        double scale;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 9, 2, 4, 4, 2, 8, 0,
         TFM_STATUS_SHAPE, "gqa_attention|'q' [N, 9, 4]|'k' [N, 2, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 8, 2, 4, 5, 2, 8, 0,
         TFM_STATUS_SHAPE, "'q' [N, 8, 4]|'k' [N, 2, 5]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 8, 2, 4, 4, 4, 8, 0,
         TFM_STATUS_SHAPE, "'k' [N, 2, 4]|'k_cache' [3, 8, 4, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 8, 2, 4, 4, 2, 9, 0,
         TFM_STATUS_SHAPE, "'k_cache' [3, 8, 2, 4]|'v_cache' [3, 9, 2, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 2, 1025, 1025, 2, 8, 0,
         TFM_STATUS_SHAPE, "1..1024|[N, 2, 1025]"},
        {TFM_DTYPE_F16, TFM_DTYPE_F16, TFM_DTYPE_F16, TFM_DTYPE_F16, 8, 2, 4, 4, 2, 8, 0,
         TFM_STATUS_DTYPE, "'q' [N, 8, 4] f16"},
        {TFM_DTYPE_F32, TFM_DTYPE_F64, TFM_DTYPE_F32, TFM_DTYPE_F32, 8, 2, 4, 4, 2, 8, 0,
         TFM_STATUS_DTYPE, "f32|f64"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F16, 8, 2, 4, 4, 2, 8, 0,
         TFM_STATUS_DTYPE, "f32|f16"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_BF16, TFM_DTYPE_BF16, 8, 2, 4, 4, 2, 8, 0,
         TFM_STATUS_DTYPE, "bf16"},
        {TFM_DTYPE_F64, TFM_DTYPE_F64, TFM_DTYPE_F32, TFM_DTYPE_F32, 8, 2, 4, 4, 2, 8, 0,
         TFM_STATUS_DTYPE, "f64"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 8, 2, 4, 4, 2, 8, INFINITY,
         TFM_STATUS_INVALID_ARGUMENT, "scale"},
    };
    struct trial t;

    trial_begin(&t, 4, "gqa_attention refusal %d", _i);
    q = trial_input(&t, "q", rows[_i].q, 3, rows[_i].h, rows[_i].d);
    k = trial_input(&t, "k", rows[_i].k, 3, rows[_i].g, rows[_i].k_d);
    v = trial_input(&t, "v", rows[_i].k, 3, rows[_i].g, rows[_i].k_d);
    k_cache = trial_state(&t, "k_cache", rows[_i].cache, 3, 8, rows[_i].cache_g, rows[_i].k_d);
    v_cache = trial_state(&t, "v_cache", rows[_i].v_cache, 3, rows[_i].v_cells, rows[_i].cache_g,
                          rows[_i].k_d);
    ck_assert_ptr_null(tfm_op_gqa_attention(t.graph, q, k, v, k_cache, v_cache, rows[_i].scale));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

/* Fault: one cache for keys and values, or a cache that a run would lose. */
START_TEST(refused_caches)
{
    struct trial t;
    const struct heads n = {2, 1, 4};

    build(&t, 4, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 1, 4, 0);
    ck_assert_ptr_null(tfm_op_gqa_attention(t.graph, q, k, v, k_cache, k_cache, 0));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT, "two tensors");

    static const int64_t shape[] = {1, 4, 1, 4};
    build(&t, 4, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 1, 4, 0);
    struct tfm_tensor *constant = tfm_graph_buffer(t.graph, "c", TFM_DTYPE_F32, 4, shape);
    ck_assert_ptr_null(tfm_op_gqa_attention(t.graph, q, k, v, constant, v_cache, 0));
    trial_refused(&t, TFM_STATUS_SHAPE, "state|'c' [1, 4, 1, 4]");
}
END_TEST

/* Fault: a backend that reads the attributes finds none. */
START_TEST(attributes)
{
    struct trial t;
    const struct heads n = {6, 2, 4};

    build(&t, 4, TFM_DTYPE_F32, TFM_DTYPE_F32, n, 1, 4, 0.5);
    const struct tfm_attrs *attrs = &tfm_graph_node(t.graph, 0)->attrs;
    ck_assert(attrs->heads == 6 && attrs->kv_heads == 2 && attrs->head_dim == 4);
    ck_assert(attrs->scale == 0.5);
    trial_end(&t);
}
END_TEST

void tfm__cases_gqa_attention(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "gqa_attention");
    TCase *rule = trial_rule_tcase(suite, "gqa_attention rule");

    tcase_add_loop_test(tcase, a21_head_sizes, 0, 33);
    tcase_add_loop_test(tcase, largest_heads, 0, 3);
    tcase_add_test(tcase, a15_query_after_past);
    tcase_add_test(tcase, a16_empty_sequences);
    tcase_add_loop_test(tcase, many_sequences, 0, 3);
    tcase_add_loop_test(tcase, a18_groups, 0, 5);
    tcase_add_loop_test(tcase, a20_chunks, 0, 10);
    tcase_add_loop_test(tcase, long_context, 0, 2);
    tcase_add_test(tcase, same_rows_again);
    tcase_add_test(tcase, large_scores);
    tcase_add_loop_test(tcase, given_scale, 0, 3);
    tcase_add_loop_test(tcase, rows_that_do_not_fit, 0, 7);
    tcase_add_loop_test(rule, refusals, 0, 11);
    tcase_add_test(rule, refused_caches);
    tcase_add_test(rule, attributes);
    attention_mask_cases(suite);
}
