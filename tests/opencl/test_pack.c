/* SPDX-License-Identifier: MIT
 * The packed form of weights, without OpenCL: nothing of a file's bytes is lost or moved to a wrong
 * place. */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/internal.h"
#include "tests/core/runner.h"

static const struct type {
    enum tfm_dtype dtype;
    size_t block, bytes; /* values and bytes of a block */
    size_t columns;      /* smallest row */
} types[] = {
    {TFM_DTYPE_F32, 1, 4, 1},     {TFM_DTYPE_F16, 1, 2, 1},     {TFM_DTYPE_BF16, 1, 2, 1},
    {TFM_DTYPE_Q4_0, 32, 18, 32}, {TFM_DTYPE_Q4_1, 32, 20, 32}, {TFM_DTYPE_Q8_0, 32, 34, 32},
};
enum { TYPES = sizeof types / sizeof *types };

static unsigned char *random_bytes(size_t n)
{
    unsigned char *bytes = malloc(n);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)(rand() >> 7);
    return bytes;
}

/* Fault: a byte of a row lost, doubled or written over another; the last panel cut or not padded. */
START_TEST(unpack_gives_the_bytes_back)
{
    static const size_t rows[] = {1, 3, 7, 15, 16, 17, 31, 32, 33, 65};
    const struct type *t = &types[_i];

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (size_t c = 1; c <= 3; c++) {
            const size_t columns = c * t->columns, bytes = columns / t->block * t->bytes * rows[r];
            const size_t panels = (rows[r] + 15) / 16;
            const size_t packed_bytes = panels * tfm__cl_panel_bytes(t->dtype, columns);
            unsigned char *file = random_bytes(bytes), *back = calloc(bytes, 1);
            unsigned char *packed = random_bytes(packed_bytes + 1);
            const unsigned char guard = packed[packed_bytes];
            ck_assert_uint_eq(packed_bytes, columns / t->block * t->bytes * panels * 16);
            /* in two pieces, the later one first, as a pool of threads may do it */
            tfm__cl_pack(t->dtype, file, rows[r], columns, panels / 2, panels, packed);
            tfm__cl_pack(t->dtype, file, rows[r], columns, 0, panels / 2, packed);
            ck_assert_uint_eq(packed[packed_bytes], guard);
            tfm__cl_unpack(t->dtype, packed, rows[r], columns, 0, panels, back);
            ck_assert_mem_eq(file, back, bytes);
            free(file);
            free(back);
            free(packed);
        }
    }
}
END_TEST

/* Fault: padding rows left as they were: the kernels compute with them (NaN * 0 is NaN). */
START_TEST(padding_rows_are_zero)
{
    const struct type *t = &types[_i];
    const size_t columns = 2 * t->columns, rows = 19;
    const size_t panel = tfm__cl_panel_bytes(t->dtype, columns);
    unsigned char *file = calloc(rows * columns, t->bytes), *packed = malloc(2 * panel);

    ck_assert(file && packed);
    memset(packed, 0xff, 2 * panel);
    tfm__cl_pack(t->dtype, file, rows, columns, 0, 2, packed);
    for (size_t i = 0; i < 2 * panel; i++)
        ck_assert_uint_eq(packed[i], 0);
    free(file);
    free(packed);
}
END_TEST

/* Fault: the form drifts from what kernels/step.h promises to every kernel: 16 scales, 16 minima,
 * then for each j the bytes 4j..4j+3 of the 16 rows side by side. */
START_TEST(q4_1_lies_as_the_kernels_read_it)
{
    enum { ROWS = 16, COLUMNS = 64, BLOCK = 20 };
    unsigned char file[ROWS * 2 * BLOCK], packed[2 * TFM_PANEL_Q4_1];

    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (unsigned char)(i * 31 + i / 256);
    ck_assert_uint_eq(tfm__cl_panel_bytes(TFM_DTYPE_Q4_1, COLUMNS), sizeof packed);
    tfm__cl_pack(TFM_DTYPE_Q4_1, file, ROWS, COLUMNS, 0, 1, packed);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t b = 0; b < 2; b++) {
            const unsigned char *from = file + (row * 2 + b) * BLOCK;
            const unsigned char *to = packed + b * TFM_PANEL_Q4_1;
            ck_assert_mem_eq(to + 2 * row, from, 2);
            ck_assert_mem_eq(to + 32 + 2 * row, from + 2, 2);
            for (size_t j = 0; j < 4; j++)
                ck_assert_mem_eq(to + 64 + 64 * j + 4 * row, from + 4 + 4 * j, 4);
        }
    }
}
END_TEST

/* Fault: a plain type is not lane by lane. */
START_TEST(f32_lies_as_the_kernels_read_it)
{
    enum { ROWS = 16, COLUMNS = 3 };
    float file[ROWS * COLUMNS], packed[ROWS * COLUMNS];

    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        file[i] = (float)i;
    tfm__cl_pack(TFM_DTYPE_F32, file, ROWS, COLUMNS, 0, 1, packed);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t k = 0; k < COLUMNS; k++)
            ck_assert_float_eq(packed[k * 16 + row], (float)(row * COLUMNS + k));
    }
}
END_TEST

/* Fault: a type or a row that has no packed form is packed all the same. */
START_TEST(what_has_no_packed_form_is_refused)
{
    ck_assert_uint_eq(tfm__cl_panel_bytes(TFM_DTYPE_F64, 32), 0);
    ck_assert_uint_eq(tfm__cl_panel_bytes(TFM_DTYPE_I32, 32), 0);
    ck_assert_uint_eq(tfm__cl_panel_bytes((enum tfm_dtype)1000, 32), 0);
    ck_assert_uint_eq(tfm__cl_panel_bytes(TFM_DTYPE_Q4_1, 48), 0);
    ck_assert_uint_eq(tfm__cl_panel_bytes(TFM_DTYPE_Q8_0, 33), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack");
    TCase *tcase = tests_case(suite, "pack");

    tcase_add_loop_test(tcase, unpack_gives_the_bytes_back, 0, TYPES);
    tcase_add_loop_test(tcase, padding_rows_are_zero, 0, TYPES);
    tcase_add_test(tcase, q4_1_lies_as_the_kernels_read_it);
    tcase_add_test(tcase, f32_lies_as_the_kernels_read_it);
    tcase_add_test(tcase, what_has_no_packed_form_is_refused);
    return tests_run(suite);
}
