/* SPDX-License-Identifier: MIT
 * Tables of positions. Faults caught: a scaling that is parsed but not used, or used on the wrong pairs
 * (case A11), positions rounded before the product (A12), sin and cos in another order or lost at an odd
 * width (A14), buckets that do not end. */
#include <check.h>

#include <math.h>
#include <string.h>

#include <tfm/positions.h>

#include "tests/core/runner.h"

static void near(const char *what, double got, double want, double relative)
{
    ck_assert_msg(fabs(got - want) <= relative * fabs(want), "%s: %.9g, but %.9g is right", what,
                  got, want);
}

/* ---- rotary frequencies ---- */

static void frequencies(const struct tfm_nn_rope *rope, double *f, double *attn_factor)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_nn_rope_frequencies(rope, f, attn_factor, &err) == TFM_STATUS_OK, "%s",
                  err.text);
}

/* Single frequencies, worked out by hand or by another program from the formulas of the papers. */
START_TEST(frequency_of)
{
    static const float halves[2] = {1, 2};
    static const struct {
        const char *name;
        struct tfm_nn_rope rope;
        int64_t pair;
        double frequency, attn_factor;
    } rows[] = {
        {"base 10000 if none is given", {.dims = 4}, 1, 0.01, 1},
        {"base 1e6", {.dims = 4, .theta = 1e6}, 1, 0.001, 1},
        {"linear", {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_LINEAR, .factor = 4}, 1, 0.0025, 1},
        {"linear, first pair",
         {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_LINEAR, .factor = 4},
         0,
         0.25,
         1},
        /* 10000 * 8^(64/62) */
        {"NTK, first pair", {.dims = 64, .scaling = TFM_NN_ROPE_SCALING_NTK, .factor = 8}, 0, 1, 1},
        {"NTK, last pair: divided by the factor",
         {.dims = 64, .scaling = TFM_NN_ROPE_SCALING_NTK, .factor = 8},
         31,
         1.333521432163324e-4 / 8,
         1},
        {"NTK, pair 16",
         {.dims = 64, .scaling = TFM_NN_ROPE_SCALING_NTK, .factor = 8},
         16,
         3.4189208e-3,
         1},
        {"Llama 3, pair 63",
         {.dims = 128,
          .theta = 5e5,
          .scaling = TFM_NN_ROPE_SCALING_LLAMA3,
          .factor = 8,
          .original_context = 8192,
          .low_freq_factor = 1,
          .high_freq_factor = 4},
         63,
         3.06893e-7,
         1},
        {"Llama 3, pair 32, by standard factors",
         {.dims = 128,
          .theta = 5e5,
          .scaling = TFM_NN_ROPE_SCALING_LLAMA3,
          .factor = 8,
          .original_context = 8192},
         32,
         5.24846e-4,
         1},
        {"Llama 3, a short period stays",
         {.dims = 128,
          .theta = 5e5,
          .scaling = TFM_NN_ROPE_SCALING_LLAMA3,
          .factor = 8,
          .original_context = 8192},
         8,
         0.19392274,
         1},
        {"factors",
         {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_FACTORS, .factors = halves},
         1,
         0.005,
         1},
        {"factors with a magnitude",
         {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_FACTORS, .factors = halves, .attn_factor = 1.5},
         0,
         1,
         1.5},
    };
    double f[64], attn_factor = 0;

    frequencies(&rows[_i].rope, f, &attn_factor);
    near(rows[_i].name, f[rows[_i].pair], rows[_i].frequency, 2e-6);
    near(rows[_i].name, attn_factor, rows[_i].attn_factor, 1e-12);
}
END_TEST

/* YaRN: r = 128, base 10000, factor 16 of a context of 2048. The pairs that turn 32 times and once there:
 * 64 ln(2048 / (32 2 pi)) / ln(10000) = 16.1 and 64 ln(2048 / (2 pi)) / ln(10000) = 40.2, to whole pairs
 * outwards 16 and 41. */
START_TEST(yarn)
{
    const struct tfm_nn_rope rope = {
        .dims = 128, .scaling = TFM_NN_ROPE_SCALING_YARN, .factor = 16, .original_context = 2048};
    struct tfm_nn_rope given = rope;
    double f[64], attn_factor;

    frequencies(&rope, f, &attn_factor);
    near("magnitude 0.1 ln 16 + 1", attn_factor, 1.2772588722239781, 1e-12);
    for (int i = 0; i < 64; i++) {
        const double plain = pow(10000, -i / 64.0);
        const double ramp = i <= 16 ? 0 : i >= 41 ? 1 : (i - 16) / 25.0;
        near("pair", f[i], plain * (1 - ramp) + plain / 16 * ramp, 1e-12);
    }
    given.attn_factor = 1;
    frequencies(&given, f, &attn_factor);
    near("a given magnitude", attn_factor, 1, 0);
    /* given betas move the ramp: pair 31 turns 2048 / (2 pi) * 10000^(-31/64) = 3.76 times */
    given.beta_fast = 3.7;
    given.beta_slow = 3.6;
    frequencies(&given, f, &attn_factor);
    near("pair 31 stays", f[31], pow(10000, -31 / 64.0), 1e-12);
    near("pair 32 is divided", f[32], 0.01 / 16, 1e-12);
}
END_TEST

/* A factor of 1 changes nothing, in any kind that has one. */
START_TEST(factor_of_one)
{
    static const enum tfm_nn_rope_scaling kinds[] = {
        TFM_NN_ROPE_SCALING_LINEAR, TFM_NN_ROPE_SCALING_NTK, TFM_NN_ROPE_SCALING_YARN,
        TFM_NN_ROPE_SCALING_LLAMA3};
    const struct tfm_nn_rope plain = {.dims = 64, .theta = 5e5};
    struct tfm_nn_rope scaled = plain;
    double f[32], g[32], attn_factor;

    scaled.scaling = kinds[_i];
    scaled.factor = 1;
    scaled.original_context = 4096;
    frequencies(&plain, f, &attn_factor);
    frequencies(&scaled, g, &attn_factor);
    near("magnitude", attn_factor, 1, 0);
    for (int i = 0; i < 32; i++)
        near("pair", g[i], f[i], 1e-15);
}
END_TEST

/* The table is the cos and sin of whole positions times these, magnitude included, up to the end. */
START_TEST(scaled_table)
{
    enum { P = 8192, DIMS = 8 };
    const struct tfm_nn_rope rope = {.dims = DIMS,
                                     .theta = 1e5,
                                     .scaling = TFM_NN_ROPE_SCALING_YARN,
                                     .factor = 4,
                                     .original_context = 2048};
    static float table[P * DIMS];
    double f[DIMS / 2], attn_factor;

    frequencies(&rope, f, &attn_factor);
    ck_assert_int_eq(tfm_nn_rope_table_scaled(TFM_DTYPE_F32, P, &rope, table, NULL), TFM_STATUS_OK);
    for (int64_t p = 0; p < P; p += p < 4 ? 1 : 511)
        for (int i = 0; i < DIMS / 2; i++) {
            const float *pair = table + p * DIMS + 2 * i;
            ck_assert_double_le(fabs((double)pair[0] - attn_factor * cos((double)p * f[i])), 1e-7);
            ck_assert_double_le(fabs((double)pair[1] - attn_factor * sin((double)p * f[i])), 1e-7);
        }
}
END_TEST

START_TEST(rope_refusals)
{
    static const float zero[2] = {1, 0}, nan_factor[2] = {(float)NAN, 1};
    static const struct {
        struct tfm_nn_rope rope;
        const char *word;
    } rows[] = {
        {{.dims = 3}, "dims is 3"},
        {{.dims = 0}, "dims is 0"},
        {{.dims = -2}, "dims is -2"},
        {{.dims = 4, .theta = -1}, "theta is -1"},
        {{.dims = 4, .theta = (double)NAN}, "theta"},
        {{.dims = 4, .scaling = (enum tfm_nn_rope_scaling)99}, "scaling is 99"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_LINEAR}, "factor is 0"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_LINEAR, .factor = 0.5}, "factor is 0.5"},
        {{.dims = 2, .scaling = TFM_NN_ROPE_SCALING_NTK, .factor = 2}, "dims is 2"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_YARN, .factor = 2}, "original_context is 0"},
        {{.dims = 4,
          .scaling = TFM_NN_ROPE_SCALING_YARN,
          .factor = 2,
          .original_context = 8,
          .theta = 1},
         "theta is 1"},
        {{.dims = 4,
          .scaling = TFM_NN_ROPE_SCALING_YARN,
          .factor = 2,
          .original_context = 8,
          .beta_fast = 1,
          .beta_slow = 2},
         "beta_fast is 1"},
        {{.dims = 4,
          .scaling = TFM_NN_ROPE_SCALING_YARN,
          .factor = 2,
          .original_context = 8,
          .attn_factor = -1},
         "attn_factor is -1"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_LLAMA3, .factor = 8}, "original_context is 0"},
        {{.dims = 4,
          .scaling = TFM_NN_ROPE_SCALING_LLAMA3,
          .factor = 8,
          .original_context = 8192,
          .low_freq_factor = 4,
          .high_freq_factor = 4},
         "high_freq_factor is 4"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_FACTORS}, "factors are missing"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_FACTORS, .factors = zero}, "factor 1 is 0"},
        {{.dims = 4, .scaling = TFM_NN_ROPE_SCALING_FACTORS, .factors = nan_factor}, "factor 0 is"},
    };
    struct tfm_error err = {0};
    float table[16] = {0};

    ck_assert_int_eq(tfm_nn_rope_table_scaled(TFM_DTYPE_F32, 2, &rows[_i].rope, table, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, rows[_i].word) != NULL, "%s", err.text);
    ck_assert_float_eq(table[0], 0);
}
END_TEST

/* The call of tables without scaling, or with factors. */
START_TEST(rope_table_values)
{
    static const struct {
        double theta;
        int64_t dims, position, pair;
        float factor;
        double angle;
    } rows[] = {
        {1e4, 4, 1, 0, 1, 1.0},      {1e4, 4, 1, 1, 1, 0.01},
        {1e4, 4, 8191, 1, 1, 81.91}, {1e6, 4, 10, 1, 1, 0.01}, /* case A11 */
        {1e5, 64, 515, 0, 1, 515.0}, /* case A12: one bfloat16 step apart from 516 */
        {1e4, 4, 10, 1, 8, 0.1 / 8}, {5e5, 128, 8191, 63, 1, 8191 * 2.4551459e-6},
    };
    float table[8192 * 128], factors[64];
    struct tfm_error err = {0};

    for (int i = 0; i < 64; i++)
        factors[i] = rows[_i].factor;
    ck_assert_msg(tfm_nn_rope_table(TFM_DTYPE_F32, 8192, rows[_i].dims, rows[_i].theta, factors,
                                    table, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    const float *pair = table + (rows[_i].position * (rows[_i].dims / 2) + rows[_i].pair) * 2;
    ck_assert_double_le(fabs((double)pair[0] - cos(rows[_i].angle)), 1e-7);
    ck_assert_double_le(fabs((double)pair[1] - sin(rows[_i].angle)), 1e-7);
}
END_TEST

START_TEST(rope_table_refusals)
{
    static const struct {
        enum tfm_dtype dtype;
        int64_t positions, dims;
        double theta;
        float factor;
        enum tfm_status status;
    } rows[] = {
        {TFM_DTYPE_F16, 4, 4, 1e4, 1, TFM_STATUS_DTYPE},
        {TFM_DTYPE_F32, 4, 3, 1e4, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 0, 1e4, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 0, 4, 1e4, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 4, 0, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 4, (double)NAN, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 4, 1e4, 0, TFM_STATUS_INVALID_ARGUMENT},
    };
    float table[64], factors[2] = {rows[_i].factor, rows[_i].factor};
    ck_assert_int_eq(tfm_nn_rope_table(rows[_i].dtype, rows[_i].positions, rows[_i].dims,
                                       rows[_i].theta, factors, table, NULL),
                     rows[_i].status);
}
END_TEST

/* ---- sinusoidal: case A14 ---- */

START_TEST(sinusoidal)
{
    static const double right[5] = {0.8414710, 0.5403023, 0.0251162, 0.9996845, 0.0006310};
    float table[2 * 5];
    double wide[3 * 4];

    ck_assert_int_eq(tfm_nn_sinusoidal_table(TFM_DTYPE_F32, 2, 5, table, NULL), TFM_STATUS_OK);
    for (int k = 0; k < 5; k++) {
        ck_assert_double_le(fabs((double)table[5 + k] - right[k]), 5.1e-8);
        ck_assert_float_eq(table[k], k % 2 ? 1 : 0);
    }
    ck_assert_int_eq(tfm_nn_sinusoidal_table(TFM_DTYPE_F64, 3, 4, wide, NULL), TFM_STATUS_OK);
    near("sin 2", wide[8], sin(2), 1e-15);
    near("cos 0.02", wide[11], cos(0.02), 1e-15);
    ck_assert_int_eq(tfm_nn_sinusoidal_table(TFM_DTYPE_F32, 0, 4, wide, NULL),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_nn_sinusoidal_table(TFM_DTYPE_F32, 2, -4, wide, NULL),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_nn_sinusoidal_table(TFM_DTYPE_I32, 2, 4, wide, NULL), TFM_STATUS_DTYPE);
}
END_TEST

/* ---- relative buckets ---- */

/* Any sizes: distances one by one, then growing ranges, each bucket reached, the last at max_distance. */
START_TEST(buckets_grow)
{
    static const struct tfm_nn_relative rows[] = {
        {32, 128, 0}, {32, 128, 1}, {8, 20, 0}, {8, 5, 1}, {2, 2, 0}, {4, 1000, 1}, {7, 50, 1},
    };
    const struct tfm_nn_relative *r = &rows[_i];
    const int64_t half = r->bidirectional ? r->buckets / 2 : r->buckets;
    int32_t table[2 * 1000 + 1];

    ck_assert_int_eq(tfm_nn_relative_table(r, table, NULL), TFM_STATUS_OK);
    const int32_t *at = table + r->max_distance;
    for (int64_t d = 0; d <= r->max_distance; d++) {
        if (d < half / 2)
            ck_assert_int_eq(at[-d], d);
        if (d > 0) {
            ck_assert_int_ge(at[-d], at[1 - d]);
            ck_assert_int_eq(at[d], r->bidirectional ? half + at[-d] : 0);
        }
    }
    ck_assert_int_eq(at[-r->max_distance], half - 1);
    ck_assert_int_lt(at[r->max_distance], r->buckets);
}
END_TEST

/* A power exactly opens its bucket: with 8 and 128, distance 8 16^(k/8) for k = 2, 4, 6. */
START_TEST(buckets_at_powers)
{
    static const int32_t rows[][2] = {{15, 9}, {16, 10}, {31, 11}, {32, 12}, {63, 13}, {64, 14}};
    const struct tfm_nn_relative t5 = {32, 128, 1};
    int32_t bucket = -1;

    ck_assert_int_eq(tfm_nn_relative_bucket(&t5, -rows[_i][0], &bucket, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(bucket, rows[_i][1]);
    ck_assert_int_eq(tfm_nn_relative_bucket(&t5, INT64_MIN, &bucket, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(bucket, 15);
}
END_TEST

START_TEST(bucket_refusals)
{
    static const struct tfm_nn_relative rows[] = {
        {1, 10, 0}, {0, 10, 0}, {-4, 10, 0}, {3, 10, 1},         {32, 16, 0},
        {32, 8, 1}, {32, 0, 0}, {32, -1, 1}, {32, INT64_MAX, 0}, {INT64_MAX, INT64_MAX, 0},
    };
    struct tfm_error err = {0};
    int32_t bucket = -7;

    ck_assert_int_eq(tfm_nn_relative_bucket(&rows[_i], 1, &bucket, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(bucket, -7);
    ck_assert_str_ne(err.text, "");
    ck_assert_int_eq(tfm_nn_relative_table(&rows[_i], &bucket, &err), TFM_STATUS_INVALID_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("positions");
    TCase *tcase = tests_case(suite, "positions");
    tcase_add_loop_test(tcase, frequency_of, 0, 12);
    tcase_add_test(tcase, yarn);
    tcase_add_loop_test(tcase, factor_of_one, 0, 4);
    tcase_add_test(tcase, scaled_table);
    tcase_add_loop_test(tcase, rope_refusals, 0, 18);
    tcase_add_loop_test(tcase, rope_table_values, 0, 7);
    tcase_add_loop_test(tcase, rope_table_refusals, 0, 7);
    tcase_add_test(tcase, sinusoidal);
    tcase_add_loop_test(tcase, buckets_grow, 0, 7);
    tcase_add_loop_test(tcase, buckets_at_powers, 0, 6);
    tcase_add_loop_test(tcase, bucket_refusals, 0, 10);
    return tests_run(suite);
}
