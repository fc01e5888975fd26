/* SPDX-License-Identifier: MIT
 * Faults caught: a half or bfloat16 that is rounded twice or the wrong way at any of its 65,536 values, a
 * nibble order or offset of a block type read wrongly, a conversion that needs alignment. */
#include <check.h>
#include <math.h>
#include <string.h>

#include <tfm/dtype.h>

#include "tests/core/runner.h"

static double load(enum tfm_dtype dtype, uint16_t bits)
{
    double value;
    tfm_dtype_to_f64(dtype, &bits, 0, 1, &value);
    return value;
}

static uint16_t store(enum tfm_dtype dtype, double value)
{
    uint16_t bits;
    tfm_dtype_from_f64(dtype, &value, &bits, 0, 1);
    return bits;
}

static const struct {
    enum tfm_dtype dtype;
    uint16_t infinity, one;
    double smallest, largest;
} narrow[] = {
    {TFM_DTYPE_F16, 0x7c00, 0x3c00, 0x1p-24, 65504},
    {TFM_DTYPE_BF16, 0x7f80, 0x3f80, 0x1p-133, 0x1.fep127},
};

/* Every finite value comes back; between two neighbours the midpoint goes to the even one, a hair beside
 * it to the nearer one. That is round to nearest even, completely. */
START_TEST(narrow_floats_round_to_nearest_even)
{
    const enum tfm_dtype dtype = narrow[_i].dtype;

    for (uint32_t h = 0; h < narrow[_i].infinity; h++) {
        const double low = load(dtype, (uint16_t)h);
        ck_assert_uint_eq(store(dtype, low), h);
        ck_assert_uint_eq(store(dtype, -low), h | 0x8000);
        if (h + 1u == narrow[_i].infinity)
            break;
        const double middle = (low + load(dtype, (uint16_t)(h + 1))) / 2;
        ck_assert_uint_eq(store(dtype, middle), h + (h & 1));
        ck_assert_uint_eq(store(dtype, nextafter(middle, 0)), h);
        ck_assert_uint_eq(store(dtype, nextafter(middle, INFINITY)), h + 1);
        ck_assert_uint_eq(store(dtype, -middle), (h + (h & 1)) | 0x8000);
    }
    ck_assert(load(dtype, narrow[_i].one) == 1.0);
    ck_assert(load(dtype, 1) == narrow[_i].smallest);
    ck_assert(load(dtype, (uint16_t)(narrow[_i].infinity - 1)) == narrow[_i].largest);
    ck_assert(isinf(load(dtype, narrow[_i].infinity)));
    ck_assert_uint_eq(store(dtype, INFINITY), narrow[_i].infinity);
    ck_assert_uint_eq(store(dtype, 1e300), narrow[_i].infinity);
    ck_assert_uint_eq(store(dtype, 1e-300), 0);
    ck_assert(isnan(load(dtype, store(dtype, (double)NAN))));
    /* just under the midpoint of the largest value and infinity */
    ck_assert_uint_eq(store(dtype, narrow[_i].largest * (1 + 1e-9)), narrow[_i].infinity - 1u);
}
END_TEST

/* One block of each type by hand: d = 0.5 (0x3800), m = -1 (0xbc00). */
START_TEST(blocks_by_hand)
{
    unsigned char q4[20] = {0x00, 0x38, 0x00, 0xbc}, q40[18] = {0x00, 0x38}, q8[34] = {0x00, 0x38};
    float values[32];

    for (int j = 0; j < 16; j++) {
        q4[4 + j] = (unsigned char)(j | (15 - j) << 4);
        q40[2 + j] = q4[4 + j];
    }
    for (int j = 0; j < 32; j++)
        q8[2 + j] = (unsigned char)(signed char)(j * 8 - 128);
    tfm_dtype_to_f32(TFM_DTYPE_Q4_1, q4, 0, 32, values);
    for (int j = 0; j < 16; j++) {
        ck_assert(values[j] == (float)j * 0.5f - 1);
        ck_assert(values[j + 16] == (float)(15 - j) * 0.5f - 1);
    }
    tfm_dtype_to_f32(TFM_DTYPE_Q4_0, q40, 0, 32, values);
    for (int j = 0; j < 16; j++) {
        ck_assert(values[j] == (float)(j - 8) * 0.5f);
        ck_assert(values[j + 16] == (float)(7 - j) * 0.5f);
    }
    tfm_dtype_to_f32(TFM_DTYPE_Q8_0, q8, 0, 32, values);
    for (int j = 0; j < 32; j++)
        ck_assert(values[j] == (float)(j * 8 - 128) * 0.5f);
}
END_TEST

/* Quantizing and reading back stays within half a step of the block's range; zero blocks stay zero. */
START_TEST(blocks_quantize)
{
    static const struct {
        enum tfm_dtype dtype;
        double step; /* of the range [-1, 1] */
    } types[] = {
        {TFM_DTYPE_Q4_0, 1.0 / 8}, {TFM_DTYPE_Q4_1, 2.0 / 15}, {TFM_DTYPE_Q8_0, 1.0 / 127}};
    const size_t n = 4 * 32;
    unsigned char bytes[4 * 34 + 1];
    double in[4 * 32], out[4 * 32];
    uint32_t x = 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        in[i] = i / 32 == 2 ? 0 : (double)(x >> 8) / 0x1p23 - 1;
    }
    /* an odd address, so that a read through a wider pointer is found by the sanitizers */
    tfm_dtype_from_f64(types[_i].dtype, in, bytes + 1, 0, n);
    tfm_dtype_to_f64(types[_i].dtype, bytes + 1, 0, n, out);
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_le(fabs(out[i] - in[i]), types[_i].step * 1.01 + 1e-3);
        if (i / 32 == 2)
            ck_assert(out[i] == 0);
    }
    /* a range that begins inside the array */
    double part[32];
    tfm_dtype_to_f64(types[_i].dtype, bytes + 1, 32, 32, part);
    ck_assert_int_eq(memcmp(part, out + 32, sizeof part), 0);
}
END_TEST

START_TEST(integers_clamp)
{
    const double in[] = {1.9, -1.9, 1e10, -1e10, (double)NAN};
    const int32_t want[] = {1, -1, INT32_MAX, INT32_MIN, 0};
    int32_t out[5];
    tfm_dtype_from_f64(TFM_DTYPE_I32, in, out, 0, 5);
    ck_assert_int_eq(memcmp(out, want, sizeof want), 0);
}
END_TEST

START_TEST(names)
{
    enum tfm_dtype dtype = TFM_DTYPE_F32;
    for (int i = 0; i < TFM_DTYPE_COUNT; i++) {
        ck_assert_int_eq(tfm_dtype_parse(tfm_dtype_name((enum tfm_dtype)i), &dtype), TFM_STATUS_OK);
        ck_assert_int_eq((int)dtype, i);
    }
    ck_assert_int_eq(tfm_dtype_parse("q9", &dtype), TFM_STATUS_NOT_FOUND);
    ck_assert_str_eq(tfm_dtype_name(TFM_DTYPE_COUNT), "?");
    ck_assert_ptr_null(tfm_dtype_info((enum tfm_dtype) - 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dtype");
    TCase *tcase = tests_case(suite, "dtype");
    tcase_add_loop_test(tcase, narrow_floats_round_to_nearest_even, 0, 2);
    tcase_add_test(tcase, blocks_by_hand);
    tcase_add_loop_test(tcase, blocks_quantize, 0, 3);
    tcase_add_test(tcase, integers_clamp);
    tcase_add_test(tcase, names);
    return tests_run(suite);
}
