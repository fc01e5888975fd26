/* SPDX-License-Identifier: MIT
 * The parts that the comparison with PyTorch trusts: the .npy reader, which must refuse what it does not
 * understand, and the bounds, which must refuse what lies just outside. */
#include <check.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/core/runner.h"
#include "tests/golden/npy.h"
#include "tests/golden/torch_bounds.h"

/* ---- the reader ---- */

/* A file with that header and `bytes` bytes of numbers 0, 1, 2, ...; returns its size. */
static size_t make_file(unsigned char *file, const char *header, size_t bytes)
{
    const size_t length = strlen(header);

    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (unsigned char)(length & 255);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + 10, header, length);
    for (size_t i = 0; i < bytes; i++)
        file[10 + length + i] = (unsigned char)i;
    return 10 + length + bytes;
}

#define HEADER(descr, order, shape) \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

START_TEST(npy_reads)
{
    static const struct {
        const char *header;
        size_t bytes;
        int rank;
        int64_t first, last;
    } rows[] = {
        {HEADER("<f4", "False", "(3,)"), 12, 1, 3, 3},
        {HEADER("<f8", "False", "(2, 5)"), 80, 2, 2, 5},
        {HEADER("<u2", "False", "(1, 2, 3, 4)"), 48, 4, 1, 4},
        {HEADER("<i4", "False", "(1, 7)"), 28, 2, 1, 7},
    };
    unsigned char file[1024];
    struct npy array;

    const size_t size = make_file(file, rows[_i].header, rows[_i].bytes);
    const char *why = npy_parse(file, size, &array);
    ck_assert_msg(!why, "%s", why ? why : "");
    ck_assert_int_eq(array.rank, rows[_i].rank);
    ck_assert_int_eq(array.shape[0], rows[_i].first);
    ck_assert_int_eq(array.shape[array.rank - 1], rows[_i].last);
    ck_assert_uint_eq(array.bytes, rows[_i].bytes);
    ck_assert_uint_eq(((unsigned char *)array.data)[rows[_i].bytes - 1], rows[_i].bytes - 1);
    npy_free(&array);
}
END_TEST

START_TEST(npy_refuses)
{
    static const struct {
        const char *header;
        size_t bytes;
    } rows[] = {
        {HEADER("<f4", "False", "(3,)"), 11},           /* cut off */
        {HEADER("<f4", "False", "(3,)"), 16},           /* too long */
        {HEADER("<f4", "True", "(3,)"), 12},            /* columns first */
        {HEADER(">f4", "False", "(3,)"), 12},           /* big endian */
        {HEADER("<c8", "False", "(3,)"), 24},           /* complex */
        {HEADER("<f4", "False", "()"), 4},              /* a scalar */
        {HEADER("<f4", "False", "(0,)"), 0},            /* empty */
        {HEADER("<f4", "False", "(-3,)"), 12},          /* negative */
        {HEADER("<f4", "False", "(1, 1, 1, 1, 1)"), 4}, /* too many extents */
        {HEADER("<f8", "False", "(16777216, 16777216, 16777216)"), 8},
        {HEADER("<f4", "False", "(3"), 12},
        {HEADER("<f4", "False", "3"), 12},
        {"{'descr': '<f4', 'shape': (3,)}", 12},
        {"", 0},
    };
    unsigned char file[1024];
    struct npy array = {0};

    const size_t size = make_file(file, rows[_i].header, rows[_i].bytes);
    ck_assert_ptr_nonnull(npy_parse(file, size, &array));
    ck_assert_ptr_null(array.data);
    file[6] = 2; /* another version */
    ck_assert_ptr_nonnull(npy_parse(file, size, &array));
    ck_assert_ptr_nonnull(npy_parse(file, 9, &array));
}
END_TEST

/* ---- the bounds ---- */

START_TEST(bounds_hold)
{
    static const struct {
        const char *bound;
        enum tfm_dtype dtype;
        double got, want;
        int holds;
    } rows[] = {
        /* beside a value of 3: the rms of the row is 2.236 for want 1 */
        {"row", TFM_DTYPE_F32, 1 + 2.2e-5, 1, 1},
        {"row", TFM_DTYPE_F32, 1 + 2.3e-5, 1, 0},
        {"row", TFM_DTYPE_F32, (double)NAN, 1, 0},
        {"nmse", TFM_DTYPE_F32, 1 + 9.9e-5, 1, 1}, /* sqrt(1e-9 (1 + 9)) = 1e-4 */
        {"nmse", TFM_DTYPE_F32, 1 + 1.01e-4, 1, 0},
        {"nmse", TFM_DTYPE_F32, (double)NAN, 1, 0},
        {"exact", TFM_DTYPE_F32, 1, 1, 1},
        {"exact", TFM_DTYPE_F32, 1 + 1e-16 * 3, 1, 0},
        {"f64", TFM_DTYPE_F64, 1 + 2e-12, 1, 1},
        {"f64", TFM_DTYPE_F64, 1 + 3e-12, 1, 0},
        /* f16 has steps of 2^-10 above 1, bf16 of 2^-7 */
        {"bits", TFM_DTYPE_F16, 1, 1 + 0x1p-11 - 0x1p-19, 1},
        {"bits", TFM_DTYPE_F16, 1 + 0x1p-10, 1 + 0x1p-11 - 0x1p-19, 0}, /* wrong side of the tie */
        {"bits", TFM_DTYPE_F16, 1 + 0x1p-10, 1 + 0x1p-11 - 0x1p-21, 1}, /* within 1e-3 ulp of it */
        {"bits", TFM_DTYPE_F16, 1, 1 + 0x1p-11 - 0x1p-21, 1},
        {"bits", TFM_DTYPE_F16, 1 + 0x1p-9, 1 + 0x1p-11, 0},
        {"bits", TFM_DTYPE_F16, 0x1p-24, 0x1.2p-24, 1}, /* the smallest step */
        {"bits", TFM_DTYPE_F16, 0x1p-23, 0x1.2p-24, 0},
        {"bits", TFM_DTYPE_F16, (double)NAN, 1, 0},
        {"bits", TFM_DTYPE_BF16, 1, 1 + 0x1p-8 - 0x1p-14, 1},
        {"bits", TFM_DTYPE_BF16, 1 + 0x1p-7, 1 + 0x1p-8 - 0x1p-14, 0},
        {"none", TFM_DTYPE_F32, 1, 1, 0},
    };
    const double got[2] = {rows[_i].got, 3}, want[2] = {rows[_i].want, 3};
    char why[TORCH_WHY] = "";

    ck_assert_int_eq(torch_compare(rows[_i].bound, rows[_i].dtype, got, want, 2, 2, why),
                     rows[_i].holds);
    ck_assert_int_eq(why[0] == '\0', rows[_i].holds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torch parts");
    TCase *tcase = tests_case(suite, "parts");

    tcase_add_loop_test(tcase, npy_reads, 0, 4);
    tcase_add_loop_test(tcase, npy_refuses, 0, 14);
    tcase_add_loop_test(tcase, bounds_hold, 0, 21);
    return tests_run(suite);
}
