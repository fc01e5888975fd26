/* SPDX-License-Identifier: MIT
 * Written GGUF files, read back by the reader: every type of metadata, every dtype against roundings worked
 * out here, rotary rows both ways; what must be refused; and files that cannot be written. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include <tfm/gguf_write.h>

static struct tfm_gguf_writer *writer;
static void *memory;
static struct tfm_gguf *gguf;

static void setup(void)
{
    ck_assert_int_eq(tfm_gguf_writer_create(&writer, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_gguf_writer_destroy(writer);
    tfm_gguf_close(gguf);
    free(memory);
}

static void reopen(void)
{
    struct tfm_error err = {0};
    size_t size = 0;

    ck_assert_msg(tfm_gguf_writer_bytes(writer, &memory, &size, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_msg(tfm_gguf_open_memory(memory, size, "written", &gguf, &err) == TFM_STATUS_OK, "%s",
                  err.text);
}

/* Catches: a number of the wrong width or sign, an array without its type, a copy that loses strings. */
START_TEST(metadata)
{
    const struct tfm_text texts[] = {{"one", 3}, {"", 0}, {"t\0o", 3}};
    struct tfm_text views[3], text;
    const int32_t ints[] = {-1, 0, INT32_MAX};
    struct tfm_gguf_writer *second = NULL;
    struct tfm_gguf_array array;
    uint64_t number;
    int64_t element;
    double real;
    int truth;

    tfm_gguf_writer_uint(writer, "a.u8", TFM_GGUF_U8, 255);
    tfm_gguf_writer_uint(writer, "a.i16", TFM_GGUF_I16, 32767);
    tfm_gguf_writer_uint(writer, "a.u64", TFM_GGUF_U64, UINT64_MAX);
    tfm_gguf_writer_float(writer, "b.float", 0.1F);
    tfm_gguf_writer_bool(writer, "b.bool", 2);
    tfm_gguf_writer_text(writer, "b.text", "x\0y", 3);
    tfm_gguf_writer_texts(writer, "b.texts", texts, 3);
    tfm_gguf_writer_ints(writer, "b.ints", ints, 3);
    for (int copied = 0; copied < 2; copied++) {
        reopen();
        if (copied)
            ck_assert_int_eq(tfm_gguf_uint(gguf, "a.u8", &number, NULL), TFM_STATUS_NOT_FOUND);
        if (!copied) {
            ck_assert_int_eq(tfm_gguf_uint(gguf, "a.u8", &number, NULL), TFM_STATUS_OK);
            ck_assert_uint_eq(number, 255);
            ck_assert_int_eq(tfm_gguf_uint(gguf, "a.i16", &number, NULL), TFM_STATUS_OK);
            ck_assert_uint_eq(number, 32767);
            ck_assert_int_eq(tfm_gguf_uint(gguf, "a.u64", &number, NULL), TFM_STATUS_OK);
            ck_assert_uint_eq(number, UINT64_MAX);
        }
        ck_assert_int_eq(tfm_gguf_float(gguf, "b.float", &real, NULL), TFM_STATUS_OK);
        ck_assert_double_eq(real, (double)0.1F);
        ck_assert_int_eq(tfm_gguf_bool(gguf, "b.bool", &truth, NULL), TFM_STATUS_OK);
        ck_assert_int_eq(truth, 1);
        ck_assert_int_eq(tfm_gguf_string(gguf, "b.text", &text, NULL), TFM_STATUS_OK);
        ck_assert_uint_eq(text.size, 3);
        ck_assert_mem_eq(text.data, "x\0y", 3);
        ck_assert_int_eq(tfm_gguf_get_array(gguf, "b.texts", &array, NULL), TFM_STATUS_OK);
        ck_assert_uint_eq(array.count, 3);
        ck_assert_int_eq(tfm_gguf_array_text(&array, views, NULL), TFM_STATUS_OK);
        for (int i = 0; i < 3; i++) {
            ck_assert_uint_eq(views[i].size, texts[i].size);
            ck_assert_int_eq(memcmp(views[i].data, texts[i].data, texts[i].size), 0);
        }
        ck_assert_int_eq(tfm_gguf_get_array(gguf, "b.ints", &array, NULL), TFM_STATUS_OK);
        for (size_t i = 0; i < 3; i++) {
            ck_assert_int_eq(tfm_gguf_array_int(&array, i, &element, NULL), TFM_STATUS_OK);
            ck_assert_int_eq(element, ints[i]);
        }
        if (!copied) { /* the same once more, from what begins with "b." */
            ck_assert_int_eq(tfm_gguf_writer_create(&second, NULL), TFM_STATUS_OK);
            tfm_gguf_writer_copy(second, gguf, "b.");
            tfm_gguf_writer_destroy(writer);
            writer = second;
            tfm_gguf_close(gguf);
            free(memory);
        }
    }
}
END_TEST

enum { ROWS = 3, ROW = 64 };

static float values[ROWS * ROW];

static void fill(void)
{
    uint32_t state = 12345;

    for (int i = 0; i < ROWS * ROW; i++) {
        state = state * 1664525U + 1013904223U;
        values[i] = ((float)(state >> 8) / (float)(1 << 24) - 0.5F) * (i < ROW ? 0.01F : 8.0F);
    }
    for (int i = 0; i < 32; i++) /* a block of zeros, and one of one value */
        values[ROW + i] = 0;
    for (int i = 32; i < 64; i++)
        values[ROW + i] = -1.5F;
}

static float half(float x) /* rounded to f16 and back: checked by the tests of the dtypes */
{
    uint16_t bits;
    float back;
    tfm_dtype_from_f32(TFM_DTYPE_F16, &x, &bits, 0, 1);
    tfm_dtype_to_f32(TFM_DTYPE_F16, &bits, 0, 1, &back);
    return back;
}

/* What the format's own quantizers make of a block: q8_0 d = max |x| / 127, q = x / d to the nearest; q4_1
 * m = min, d = (max - min) / 15, q = (x - m) / d + 1/2 cut off. d and m are stored as f16, but the division
 * takes the unrounded d. */
static void expect_block(enum tfm_dtype dtype, const float *x, float want[32])
{
    float low = x[0], high = x[0];

    for (int i = 1; i < 32; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    if (dtype == TFM_DTYPE_Q8_0) {
        const float d = (high > -low ? high : -low) / 127.0F, inverse = d != 0 ? 1.0F / d : 0;
        for (int i = 0; i < 32; i++)
            want[i] = roundf(x[i] * inverse) * half(d);
    } else {
        const float d = (high - low) / 15.0F, inverse = d != 0 ? 1.0F / d : 0;
        for (int i = 0; i < 32; i++) {
            const int q = (int)((x[i] - low) * inverse + 0.5F);
            want[i] = (float)(q < 15 ? q : 15) * half(d) + half(low);
        }
    }
}

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_Q8_0, TFM_DTYPE_Q4_1};

/* Catches: another rounding than the format's, rows or blocks in another order, a wrong offset. */
START_TEST(tensors)
{
    const int64_t shape[2] = {ROWS, ROW}, one[1] = {3};
    float back[ROWS * ROW], want[ROWS * ROW];
    const enum tfm_dtype dtype = dtypes[_i];

    fill();
    const struct tfm_gguf_source source = {.dtype = TFM_DTYPE_F32, .data = values};
    tfm_gguf_writer_tensor(writer, "first", TFM_DTYPE_F32, 1, one, &source);
    tfm_gguf_writer_tensor(writer, "matrix", dtype, 2, shape, &source);
    tfm_gguf_writer_tensor(writer, "last", TFM_DTYPE_F16, 1, one, &source);
    reopen();
    const struct tfm_gguf_tensor *tensor = tfm_gguf_find(gguf, "matrix");
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(tensor->dtype, dtype);
    ck_assert_int_eq(tensor->rank, 2);
    ck_assert_int_eq(tensor->shape[0], ROWS);
    ck_assert_int_eq(tensor->shape[1], ROW);
    tfm_dtype_to_f32(dtype, tensor->data, 0, ROWS * ROW, back);
    if (tfm_dtype_info(dtype)->dtype_class == TFM_DTYPE_BLOCK) {
        for (int at = 0; at < ROWS * ROW; at += 32)
            expect_block(dtype, values + at, want + at);
    } else {
        unsigned char bits[sizeof values];
        tfm_dtype_from_f32(dtype, values, bits, 0, ROWS * ROW);
        ck_assert_mem_eq(tensor->data, bits, tensor->bytes);
        tfm_dtype_to_f32(dtype, bits, 0, ROWS * ROW, want);
    }
    for (int i = 0; i < ROWS * ROW; i++)
        ck_assert_msg(back[i] == want[i], "value %d: %g, must be %g", i, (double)back[i],
                      (double)want[i]);
    ck_assert_ptr_nonnull(tfm_gguf_find(gguf, "first"));
    tensor = tfm_gguf_find(gguf, "last");
    tfm_dtype_to_f32(TFM_DTYPE_F16, tensor->data, 0, 3, back);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(back[i], half(values[i]));
}
END_TEST

/* Rows of heads of 4: row i of a head in halves order is pair i % 2, element i / 2.
 * Catches: halves and pairs mistaken for each other, or the way back for the way there. */
START_TEST(rotary_rows)
{
    static const int to_pairs[] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11};
    static const int of_six[2][6] = {{0, 3, 1, 4, 2, 5}, {0, 2, 4, 1, 3, 5}};
    const int64_t shape[2] = {12, 1}, six[2] = {6, 1};
    float rows[12], f16[12];

    for (int i = 0; i < 12; i++)
        rows[i] = (float)i;
    struct tfm_gguf_source source = {TFM_DTYPE_F32, rows, 4};
    tfm_gguf_writer_tensor(writer, "copied", TFM_DTYPE_F32, 2, shape, &source);
    tfm_gguf_writer_tensor(writer, "converted", TFM_DTYPE_F16, 2, shape, &source);
    source.pair_rows = 6;
    tfm_gguf_writer_tensor(writer, "there", TFM_DTYPE_F32, 2, six, &source);
    source.pair_rows = -6;
    tfm_gguf_writer_tensor(writer, "back", TFM_DTYPE_F32, 2, six, &source);
    reopen();
    const float *copied = tfm_gguf_find(gguf, "copied")->data;
    tfm_dtype_to_f32(TFM_DTYPE_F16, tfm_gguf_find(gguf, "converted")->data, 0, 12, f16);
    for (int i = 0; i < 12; i++) {
        ck_assert_float_eq(copied[i], (float)to_pairs[i]);
        ck_assert_float_eq(f16[i], (float)to_pairs[i]);
    }
    const float *there = tfm_gguf_find(gguf, "there")->data,
                *back = tfm_gguf_find(gguf, "back")->data;
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(there[i], (float)of_six[0][i]);
        ck_assert_float_eq(back[i], (float)of_six[1][i]);
    }
}
END_TEST

static const struct {
    const char *name;
    enum tfm_dtype dtype, from;
    int32_t rank;
    int64_t shape[4], pair_rows;
    enum tfm_status status;
} bad_tensors[] = {
    {"", TFM_DTYPE_F32, TFM_DTYPE_F32, 1, {1}, 0, TFM_STATUS_INVALID_ARGUMENT},
    {"0123456789012345678901234567890123456789012345678901234567890123",
     TFM_DTYPE_F32,
     TFM_DTYPE_F32,
     1,
     {1},
     0,
     TFM_STATUS_INVALID_ARGUMENT},
    {"there", TFM_DTYPE_F32, TFM_DTYPE_F32, 1, {1}, 0, TFM_STATUS_INVALID_ARGUMENT},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 0, {1}, 0, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 5, {1}, 0, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 2, {1, 0}, 0, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 2, {-1, 1}, 0, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_Q8_0, TFM_DTYPE_F32, 2, {32, 33}, 0, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 3, {INT64_MAX, INT64_MAX, INT64_MAX}, 0, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 2, {8, 1}, 3, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_F32, TFM_DTYPE_F32, 2, {8, 1}, 6, TFM_STATUS_SHAPE},
    {"a", TFM_DTYPE_I32, TFM_DTYPE_F32, 1, {1}, 0, TFM_STATUS_DTYPE},
    {"a", TFM_DTYPE_COUNT, TFM_DTYPE_F32, 1, {1}, 0, TFM_STATUS_DTYPE},
};

/* Catches: a file that no reader takes. The first fault is the one that is told. */
START_TEST(tensors_that_are_refused)
{
    const struct tfm_gguf_source good = {TFM_DTYPE_F32, values, 0};
    struct tfm_gguf_source source = {bad_tensors[_i].from, values, bad_tensors[_i].pair_rows};
    struct tfm_error err = {0};
    size_t size;

    tfm_gguf_writer_tensor(writer, "there", TFM_DTYPE_F32, 1, &(int64_t){1}, &good);
    tfm_gguf_writer_tensor(writer, bad_tensors[_i].name, bad_tensors[_i].dtype,
                           bad_tensors[_i].rank, bad_tensors[_i].shape, &source);
    tfm_gguf_writer_text(writer, "", "", 0);
    ck_assert_int_eq(tfm_gguf_writer_bytes(writer, &memory, &size, &err), bad_tensors[_i].status);
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(tfm_gguf_writer_save(writer, "refused.gguf", &err), bad_tensors[_i].status);
    ck_assert_int_ne(access("refused.gguf", F_OK), 0);
}
END_TEST

START_TEST(keys_that_are_refused)
{
    struct tfm_error err = {0};
    size_t size;

    if (_i == 0)
        tfm_gguf_writer_bool(writer, "", 1);
    if (_i == 1) {
        tfm_gguf_writer_bool(writer, "twice", 1);
        tfm_gguf_writer_text(writer, "twice", "", 0);
    }
    if (_i == 2)
        tfm_gguf_writer_uint(writer, "wide", TFM_GGUF_U8, 256);
    if (_i == 3)
        tfm_gguf_writer_uint(writer, "wide", TFM_GGUF_I32, UINT64_C(1) << 31);
    if (_i == 4)
        tfm_gguf_writer_uint(writer, "type", TFM_GGUF_F32, 1);
    ck_assert_int_eq(tfm_gguf_writer_bytes(writer, &memory, &size, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* ---- files ---- */

static char folder[] = "gguf-write-XXXXXX";

static void enter_folder(void)
{
    setup();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    unlink("new.gguf");
    unlink("link.gguf");
    ck_assert_int_eq(chdir(".."), 0);
    ck_assert_msg(rmdir(folder) == 0, "something was left behind: %s", strerror(errno));
    teardown();
}

static enum tfm_status save(const char *path)
{
    struct tfm_error err = {0};
    const enum tfm_status status = tfm_gguf_writer_save(writer, path, &err);

    if (status != TFM_STATUS_OK)
        ck_assert_msg(strstr(err.text, path) != NULL, "%s", err.text);
    return status;
}

/* Catches: other bytes in a file than in memory, a link or a mode that is lost, a temporary file that
 * stays. */
START_TEST(files)
{
    struct stat facts;
    struct tfm_error err = {0};

    fill();
    tfm_gguf_writer_tensor(writer, "a", TFM_DTYPE_Q8_0, 2, (const int64_t[]){ROWS, ROW},
                           &(struct tfm_gguf_source){TFM_DTYPE_F32, values, 0});
    FILE *old = fopen("new.gguf", "w");
    ck_assert_ptr_nonnull(old);
    fclose(old);
    ck_assert_int_eq(chmod("new.gguf", 0640), 0);
    ck_assert_int_eq(symlink("new.gguf", "link.gguf"), 0);
    ck_assert_int_eq(save("link.gguf"), TFM_STATUS_OK);
    ck_assert_int_eq(lstat("link.gguf", &facts), 0);
    ck_assert(S_ISLNK(facts.st_mode));
    ck_assert_int_eq(lstat("new.gguf", &facts), 0);
    ck_assert_int_eq(facts.st_mode & 0777, 0640);
    reopen();
    ck_assert_int_eq((int64_t)tfm_gguf_size(gguf), facts.st_size);
    tfm_gguf_close(gguf);
    gguf = NULL;
    ck_assert_msg(tfm_gguf_open("new.gguf", &gguf, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(save("/dev/null"), TFM_STATUS_OK);
}
END_TEST

/* Catches: success told although nothing can be written. */
START_TEST(files_that_cannot_be_written)
{
    ck_assert_int_eq(save("."), TFM_STATUS_IO);
    ck_assert_int_eq(save("nowhere/a.gguf"), TFM_STATUS_IO);
    ck_assert_int_eq(save("/dev/full"), TFM_STATUS_IO);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf_write");
    TCase *tcase = tcase_create("memory"), *in_folder = tcase_create("files");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, metadata);
    tcase_add_loop_test(tcase, tensors, 0, (int)(sizeof dtypes / sizeof *dtypes));
    tcase_add_test(tcase, rotary_rows);
    tcase_add_loop_test(tcase, tensors_that_are_refused, 0,
                        (int)(sizeof bad_tensors / sizeof *bad_tensors));
    tcase_add_loop_test(tcase, keys_that_are_refused, 0, 5);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(in_folder, enter_folder, leave_folder);
    tcase_add_test(in_folder, files);
    tcase_add_test(in_folder, files_that_cannot_be_written);
    suite_add_tcase(suite, in_folder);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
