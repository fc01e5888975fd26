/* SPDX-License-Identifier: MIT
 * The sampler: extreme options and logits, and its choices against the plainest form of the filters. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <check.h>

#include <tfm/sampler.h>

#include "tests/llm/alloc_watch.h"

#define ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

static struct tfm_sampler *create(size_t vocab, double temperature, int64_t top_k, double top_p,
                                  uint64_t seed)
{
    const struct tfm_sampler_options options = {temperature, top_k, top_p, seed};
    struct tfm_sampler *sampler = NULL;
    struct tfm_error err;

    ck_assert_msg(tfm_sampler_create(vocab, &options, &sampler, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    return sampler;
}

/* One row: which indices may come out, as bits; all of them must, in 2000 draws. */
static const struct {
    const char *what;
    double temperature;
    int64_t top_k;
    double top_p;
    float logits[4];
    unsigned allowed;
} choices[] = {
    {"A32: T 0 is greedy", 0, 0, 1, {1, 3, 2, 0}, 1 << 1},
    {"A32: T 1e-6", 1e-6, 0, 1, {1, 3, 2, 0}, 1 << 1},
    {"A32: T 1e-30", 1e-30, 0, 1, {1, 3, 2, 0}, 1 << 1},
    {"T the smallest double", 5e-324, 0, 1, {1, 3, 2, 0}, 1 << 1},
    {"A32: banned, T 0", 0, 0, 1, {-INFINITY, 3, 2, 3}, 1 << 1},
    {"A32: banned, T 1", 1, 0, 1, {-INFINITY, 3, 2, -INFINITY}, 1 << 1 | 1 << 2},
    {"A32: banned, T huge", 1e300, 0, 1, {-INFINITY, 3, 2, -INFINITY}, 1 << 1 | 1 << 2},
    {"banned, top-k above what is left",
     1e300,
     3,
     1,
     {-INFINITY, 3, -INFINITY, -9},
     1 << 1 | 1 << 3},
    {"banned, top-p", 1e300, 0, 0.999, {-INFINITY, 3, -INFINITY, -9}, 1 << 1 | 1 << 3},
    {"all but one banned", 1, 0, 0.5, {-INFINITY, -INFINITY, -INFINITY, -9}, 1 << 3},
    {"ties, T 0: the lowest index", 0, 0, 1, {2, 5, 5, 5}, 1 << 1},
    {"ties at the edge of top-k: the lowest", 1e300, 2, 1, {2, 5, 5, 5}, 1 << 1 | 1 << 2},
    {"negative zero is zero", 0, 0, 1, {-0.0f, 0.0f, -1, -1}, 1 << 0},
    {"lowest and largest float", 1, 0, 1, {-FLT_MAX, FLT_MAX, -FLT_MAX, 0}, 1 << 1},
    {"T huge, far apart", 1e300, 0, 1, {-FLT_MAX, FLT_MAX, 0, 1}, 15},
    {"one is infinite", 1, 0, 1, {0, INFINITY, 3, 4}, 1 << 1},
    {"two are infinite", 1, 0, 0.9, {0, INFINITY, 3, INFINITY}, 1 << 1 | 1 << 3},
    {"A33: top-k 0 is off", 1e300, 0, 1, {0, 0, 5, 1}, 15},
    {"A33: top-k -1 is off", 1e300, -1, 1, {0, 0, 5, 1}, 15},
    {"top-k lowest is off", 1e300, INT64_MIN, 1, {0, 0, 5, 1}, 15},
    {"A33: top-k 1", 1e300, 1, 1, {0, 0, 5, 1}, 1 << 2},
    {"top-k 2", 1e300, 2, 1, {0, 0, 5, 1}, 1 << 2 | 1 << 3},
    {"top-k 3", 1e300, 3, 1, {0, 0, 5, 1}, 1 << 0 | 1 << 2 | 1 << 3},
    {"A33: top-k 4 is all", 1e300, 4, 1, {0, 0, 5, 1}, 15},
    {"A33: top-k 1000 is all", 1e300, 1000, 1, {0, 0, 5, 1}, 15},
    {"top-k largest is all", 1e300, INT64_MAX, 1, {0, 0, 5, 1}, 15},
    {"A33: top-p 0 keeps the best", 1e300, 0, 0, {0, 0, 5, 1}, 1 << 2},
    {"A33: top-p 1e-9 keeps the best", 1e300, 0, 1e-9, {0, 0, 5, 1}, 1 << 2},
    {"top-p the smallest double", 1e300, 0, 5e-324, {0, 0, 5, 1}, 1 << 2},
    {"A33: top-p 1 is off", 1e300, 0, 1, {0, 0, 5, 1}, 15},
    {"top-p 7 is off", 1e300, 0, 7, {0, 0, 5, 1}, 15},
    {"top-p infinite is off", 1e300, 0, INFINITY, {0, 0, 5, 1}, 15},
    {"top-p 0.5 of four equal ones: two", 1, 0, 0.5, {3, 3, 3, 3}, 1 << 0 | 1 << 1},
    {"top-p just above one half: three", 1, 0, 0.5000001, {3, 3, 3, 3}, 7},
    {"top-p just below 1", 1e300, 0, 0.999999, {0, 0, 5, 1}, 15},
    {"top-p of what top-k kept", 1, 2, 0.6, {3, 3, 3, 3}, 1 << 0 | 1 << 1},
    {"top-p of what temperature made", 1e300, 0, 0.7, {0, 0, 5, 1}, 1 << 0 | 1 << 2 | 1 << 3},
};

/* Catches: a division by 0, an overflow, an "off" value taken for a number, an empty choice, a filter that
 * keeps one too few or too many, a banned token that comes out. */
START_TEST(choices_that_are_allowed)
{
    struct tfm_sampler *s =
        create(4, choices[_i].temperature, choices[_i].top_k, choices[_i].top_p, 42);
    float logits[4];
    unsigned seen = 0;
    struct tfm_error err;

    memcpy(logits, choices[_i].logits, sizeof logits);
    for (int draw = 0; draw < 2000; draw++) {
        int32_t id = -1;
        if (tfm_sampler_next(s, logits, &id, &err) != TFM_STATUS_OK || id < 0 || id > 3)
            ck_abort_msg("%s: %d, %s", choices[_i].what, id, err.text);
        seen |= 1U << id;
    }
    ck_assert_msg(seen == choices[_i].allowed, "%s: seen %x, not %x", choices[_i].what, seen,
                  choices[_i].allowed);
    ck_assert_int_eq(memcmp(logits, choices[_i].logits, sizeof logits), 0);
    tfm_sampler_destroy(s);
}
END_TEST

static const struct {
    size_t vocab;
    double temperature, top_p;
    const char *says[2];
} bad_options[] = {
    {4, -1, 1, {"temperature", "-1"}},
    {4, -1e-300, 1, {"temperature", "-1e-300"}},
    {4, NAN, 1, {"temperature", "nan"}},
    {4, INFINITY, 1, {"temperature", "inf"}},
    {4, 1, -0.1, {"top_p", "-0.1"}},
    {4, 0, NAN, {"top_p", "nan"}},
    {0, 1, 1, {"vocabulary", "0 tokens"}},
    {(size_t)INT32_MAX + 1, 0, 1, {"vocabulary", "2147483648"}},
};

/* Catches: options without sense taken, or refused without their name and value. */
START_TEST(options_that_are_refused)
{
    const struct tfm_sampler_options options = {bad_options[_i].temperature, 0,
                                                bad_options[_i].top_p, 1};
    struct tfm_sampler *s = NULL;
    struct tfm_error err;

    ck_assert_int_eq(tfm_sampler_create(bad_options[_i].vocab, &options, &s, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_null(s);
    ck_assert_msg(strstr(err.text, bad_options[_i].says[0]) &&
                      strstr(err.text, bad_options[_i].says[1]),
                  "%s", err.text);
}
END_TEST

/* Catches: NaN that wins or loses every comparison, a choice out of nothing, an id that is touched. */
START_TEST(logits_without_sense)
{
    static const struct {
        float logits[3];
        const char *says;
    } rows[] = {
        {{1, NAN, NAN}, "logit 1"},
        {{1, 2, NAN}, "logit 2"},
        {{NAN, INFINITY, 1}, "logit 0"},
        {{-INFINITY, -INFINITY, -INFINITY}, "none of 3 logits is finite"},
        {{INFINITY, INFINITY, -INFINITY}, "none of 3 logits is finite"},
    };
    for (int r = 0; r < ROWS(rows); r++)
        for (int greedy = 0; greedy < 2; greedy++) {
            struct tfm_sampler *s = create(3, greedy ? 0 : 1, 2, 0.9, 1);
            int32_t id = 4711;
            struct tfm_error err;
            ck_assert_int_eq(tfm_sampler_next(s, rows[r].logits, &id, &err),
                             TFM_STATUS_OUT_OF_RANGE);
            ck_assert_int_eq(id, 4711);
            ck_assert_msg(strstr(err.text, rows[r].says) != NULL, "%s", err.text);
            ck_assert_int_eq(tfm_sampler_next(s, (const float[]){0, 9, 0}, &id, &err),
                             TFM_STATUS_OK); /* still usable */
            ck_assert_str_eq(err.text, "");
            tfm_sampler_destroy(s);
        }
}
END_TEST

/* ---- against the plain form ---- */
static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double random_unit(void)
{
    return (double)(random_bits() >> 11) * 0x1p-53;
}

static const float *sorted_logits;

static int by_rank(const void *a, const void *b)
{
    int i = *(const int *)a, j = *(const int *)b;
    float x = sorted_logits[i], y = sorted_logits[j];
    return x > y ? -1 : x < y ? 1 : i - j;
}

/* Which may come out, by sorting everything. Returns how many. */
static size_t keep_plainly(const float *logits, size_t n, double temperature, int64_t top_k,
                           double top_p, char *keep)
{
    int *order = calloc(n, sizeof *order);
    size_t count = 0, kept = 0;
    double sum = 0, up_to = 0;

    ck_assert_ptr_nonnull(order);
    for (size_t i = 0; i < n; i++)
        order[i] = (int)i;
    sorted_logits = logits;
    qsort(order, n, sizeof *order, by_rank);
    count = top_k > 0 && (size_t)top_k < n ? (size_t)top_k : n;
    memset(keep, 0, n);
    for (size_t i = 0; i < count; i++)
        sum += exp(((double)logits[order[i]] - (double)logits[order[0]]) / temperature);
    for (; kept < count && (kept == 0 || top_p >= 1 || up_to < top_p * sum); kept++) {
        keep[order[kept]] = 1;
        up_to += exp(((double)logits[order[kept]] - (double)logits[order[0]]) / temperature);
    }
    free(order);
    return kept;
}

/* Catches: any difference between the selection and sorting: a pivot lost, ties taken in another order, a
 * threshold one off, probabilities not in proportion. Equal draws of many more than once would show it. */
START_TEST(like_the_plain_filters)
{
    random_state = 0x2545f4914f6cdd1dULL + (uint64_t)_i;
    for (int round = 0; round < 100; round++) {
        size_t n = 1 + (size_t)(random_bits() % 60), kept, seen = 0;
        double temperature = 1 + 3 * random_unit(), top_p = 0.05 + 1.1 * random_unit();
        int64_t top_k = (int64_t)(random_bits() % (n + 5)) - 2;
        float logits[64];
        char keep[64], met[64] = {0};
        struct tfm_sampler *s;
        for (size_t i = 0; i < n; i++) /* few values make many ties */
            logits[i] = (float)(random_bits() % (round % 2 ? 5 : 1000)) / (round % 2 ? 3 : 300);
        kept = keep_plainly(logits, n, temperature, top_k, top_p, keep);
        s = create(n, temperature, top_k, top_p, random_bits());
        for (int draw = 0; draw < 20000 && seen < kept; draw++) {
            int32_t id = -1;
            if (tfm_sampler_next(s, logits, &id, NULL) != TFM_STATUS_OK || !keep[id])
                ck_abort_msg("round %d: %d of %zu, T %g, k %d, p %g is not kept", round, id, n,
                             temperature, (int)top_k, top_p);
            seen += !met[id];
            met[id] = 1;
        }
        if (seen != kept)
            ck_abort_msg("round %d: %zu of %zu seen, T %g, k %d, p %g", round, seen, kept,
                         temperature, (int)top_k, top_p);
        tfm_sampler_destroy(s);
    }
}
END_TEST

/* Catches: one too many or too few where a sum of weights is exactly top_p: n equal tokens, j / n of them. */
START_TEST(exact_shares)
{
    static const float logits[64] = {0};

    for (size_t n = 2; n <= 64; n *= 2)
        for (size_t j = 1; j < n; j++) {
            struct tfm_sampler *s = create(n, 1, 0, (double)j / (double)n, j);
            int last = 0;
            for (int draw = 0; draw < 1000; draw++) {
                int32_t id = 0;
                if (tfm_sampler_next(s, logits, &id, NULL) != TFM_STATUS_OK || (size_t)id >= j)
                    ck_abort_msg("%zu of %zu: %d", j, n, id);
                last |= (size_t)id == j - 1;
            }
            if (!last)
                ck_abort_msg("%zu of %zu: the last one never comes", j, n);
            tfm_sampler_destroy(s);
        }
}
END_TEST

/* Catches: temperature that multiplies, filtered mass not given to the rest, a generator that is not even.
 * Bounds are 5 standard deviations. */
START_TEST(frequencies)
{
    enum { DRAWS = 200000 };
    static const struct {
        double temperature;
        int64_t top_k;
        double top_p;
    } rows[] = {{1, 0, 1}, {2, 0, 1}, {0.5, 0, 1}, {1, 3, 1}, {1, 0, 0.8}, {1.5, 4, 0.95}};
    static const float logits[] = {0.5f, 2, -1, 1, 1.5f};
    char keep[5];
    double weights[5], sum = 0;
    size_t counts[5] = {0};
    struct tfm_sampler *s = create(5, rows[_i].temperature, rows[_i].top_k, rows[_i].top_p, 7);

    keep_plainly(logits, 5, rows[_i].temperature, rows[_i].top_k, rows[_i].top_p, keep);
    for (size_t i = 0; i < 5; i++)
        sum += weights[i] = keep[i] ? exp((double)logits[i] / rows[_i].temperature) : 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        int32_t id = 0;
        if (tfm_sampler_next(s, logits, &id, NULL) != TFM_STATUS_OK)
            ck_abort_msg("draw %d", draw);
        counts[id]++;
    }
    for (size_t i = 0; i < 5; i++) {
        double p = weights[i] / sum, expected = p * DRAWS;
        ck_assert_msg(fabs((double)counts[i] - expected) <= 5 * sqrt(expected * (1 - p)) + 1e-9,
                      "token %zu: %zu, expected %.0f", i, counts[i], expected);
    }
    tfm_sampler_destroy(s);
}
END_TEST

/* Catches: a hidden source of chance, a seed that is not used, state shared by samplers. */
START_TEST(the_seed_decides)
{
    enum { N = 1000, DRAWS = 64 };
    static float logits[N];
    struct tfm_sampler *a = create(N, 1, 200, 0.9, 5), *b = create(N, 1, 200, 0.9, 5),
                       *c = create(N, 1, 200, 0.9, 6);
    int same = 0;

    for (size_t i = 0; i < N; i++)
        logits[i] = (float)(i * 7919 % 1000) / 500;
    for (int draw = 0; draw < DRAWS; draw++) {
        int32_t x, y, z;
        ck_assert_int_eq(tfm_sampler_next(a, logits, &x, NULL), TFM_STATUS_OK);
        ck_assert_int_eq(tfm_sampler_next(c, logits, &z, NULL), TFM_STATUS_OK);
        ck_assert_int_eq(tfm_sampler_next(b, logits, &y, NULL), TFM_STATUS_OK);
        ck_assert_int_eq(x, y);
        same += x == z;
    }
    ck_assert_int_lt(same, DRAWS / 4);
    tfm_sampler_destroy(a);
    tfm_sampler_destroy(b);
    tfm_sampler_destroy(c);
}
END_TEST

/* Catches: an allocation in a decode step, and time that grows with the square of the vocabulary: sorted
 * either way, all equal, all but a few equal. */
START_TEST(large_vocabularies)
{
    enum { N = 400000, SHAPES = 5 };
    static const struct {
        int64_t top_k;
        double top_p;
    } rows[] = {{0, 1}, {40, 1}, {N / 2, 1}, {0, 0.95}, {1000, 0.5}};
    float *logits = malloc(N * sizeof *logits);
    struct tfm_sampler *s = create(N, 0.8, rows[_i].top_k, rows[_i].top_p, 3);
    clock_t begin = clock();

    ck_assert_ptr_nonnull(logits);
    random_state = 99;
    for (int shape = 0; shape < SHAPES; shape++) {
        struct alloc_watch watch;
        int32_t id = -1;
        enum tfm_status status;
        for (size_t i = 0; i < N; i++)
            logits[i] = shape == 0   ? (float)i / N
                        : shape == 1 ? -(float)i / N
                        : shape == 2 ? 1
                        : shape == 3 ? (float)(i % 1000 == 0)
                                     : (float)random_unit() * 20;
        alloc_watch_begin(-1);
        status = tfm_sampler_next(s, logits, &id, NULL);
        watch = alloc_watch_end();
        ck_assert_int_eq(status, TFM_STATUS_OK);
        ck_assert_uint_eq(watch.count, 0);
        ck_assert(id >= 0 && id < N);
    }
    ck_assert(clock() - begin < 10 * CLOCKS_PER_SEC);
    tfm_sampler_destroy(s);
    free(logits);
}
END_TEST

/* Catches: a leak or a half-made sampler when memory runs out. */
START_TEST(out_of_memory_anywhere)
{
    const struct tfm_sampler_options options = {1, 0, 0.9, 1};
    struct tfm_sampler *s = NULL;
    enum tfm_status status = TFM_STATUS_NOMEM;
    long failing = 0;

    for (; status != TFM_STATUS_OK; failing++) {
        alloc_watch_begin(failing);
        status = tfm_sampler_create(100, &options, &s, NULL);
        alloc_watch_end();
        ck_assert(status == TFM_STATUS_OK || (status == TFM_STATUS_NOMEM && !s));
    }
    ck_assert_int_eq(failing, 4);
    tfm_sampler_destroy(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampler");
    TCase *tcase = tcase_create("choices");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, choices_that_are_allowed, 0, ROWS(choices));
    tcase_add_loop_test(tcase, options_that_are_refused, 0, ROWS(bad_options));
    tcase_add_test(tcase, logits_without_sense);
    tcase_add_loop_test(tcase, like_the_plain_filters, 0, 5);
    tcase_add_test(tcase, exact_shares);
    tcase_add_loop_test(tcase, frequencies, 0, 6);
    tcase_add_test(tcase, the_seed_decides);
    tcase_add_loop_test(tcase, large_vocabularies, 0, 5);
    tcase_add_test(tcase, out_of_memory_anywhere);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
