/* SPDX-License-Identifier: MIT
 * safetensors files: what is read, what must be refused, what is written. Hostile files are made from a
 * header and bytes; every truncation and every other value of every byte of a small file either opens, with all
 * tensors inside of the memory, or is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include <tfm/safetensors.h>

/* A file: length, header, n zero bytes of data. It ends where its memory ends, so that the sanitizer sees a
 * byte behind. */
static unsigned char *make(const char *header, size_t n, size_t *size)
{
    const size_t length = strlen(header);
    unsigned char *file = malloc(8 + length + n);

    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, length);
    memset(file + 8 + length, 0, n);
    *size = 8 + length + n;
    return file;
}

#define F32_2 "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"

/* A27 and its neighbours. says NULL = the file is fine. */
static const struct {
    const char *header;
    size_t data;
    const char *says;
} cases[] = {
    {"{}", 0, NULL},
    {"{\"__metadata__\":{}}", 0, NULL},
    {"{\"__metadata__\":{\"a\":\"b\"},\"x\":" F32_2 "[0,8]}}     ", 8, NULL},
    {"{\"x\":" F32_2 "[8,16]},\"a\":" F32_2 "[0,8]}}", 16, NULL}, /* in another order */
    {"{\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8, NULL},
    {"{\"e\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[8,8]},\"x\":" F32_2 "[0,8]}}", 8,
     NULL},
    {"{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, NULL},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[10,10],\"data_offsets\":[0,4]}}", 4, "400"},
    {"{\"x\":" F32_2 "[8,4]}}", 8, "bytes 8 to 4"},
    {"{\"x\":" F32_2 "[8]}}", 8, "two whole numbers"},
    {"{\"x\":" F32_2 "[0,8,16]}}", 8, "two whole numbers"},
    {"{\"x\":" F32_2 "[-8,0]}}", 8, "two whole numbers"},
    {"{\"x\":" F32_2 "[0,8.0]}}", 8, "two whole numbers"},
    {"{\"x\":" F32_2 "[0,18446744073709551624]}}", 8, "no JSON"},
    {"{\"x\":" F32_2 "[9223372036854775800,9223372036854775807]}}", 8, "bytes 92233720368547758"},
    {"{\"x\":" F32_2 "[0,8]},\"y\":" F32_2 "[4,12]}}", 12, "share data"},
    {"{\"x\":" F32_2 "[0,8]},\"y\":" F32_2 "[0,8]}}", 8, "share data"},
    {"{\"x\":" F32_2 "[0,8]},\"y\":" F32_2 "[12,20]}}", 20, "hole"},
    {"{\"x\":" F32_2 "[4,12]}}", 12, "hole"},
    {"{\"x\":" F32_2 "[0,8]}}", 9, "1 bytes behind"},
    {"{\"x\":" F32_2 "[0,8]}}", 7, "truncated"},
    {"{}", 1, "1 bytes behind"},
    {"{\"x\":" F32_2 "[0,8]},\"x\":" F32_2 "[8,16]}}", 16, "no JSON"}, /* twice */
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}", 0,
     "overflows"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "extent 0"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
     "more than 8"},
    {"{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "shape"},
    {"{\"x\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "'F33'"},
    {"{\"x\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
    {"{\"x\":[0,8]}", 8, "no JSON object"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
    {"[]", 0, "'{'"},
    {" {}", 0, "'{'"},
    {"{} x", 0, "no JSON"},
    {"{\"x\":", 0, "no JSON"},
    {"{\"\\u0000\":{}}", 0, "no JSON"},
    {"{\"\xff\":{}}", 0, "no JSON"},
};

/* Catches: a range that is believed, and a good file that is refused. */
START_TEST(headers)
{
    size_t size;
    unsigned char *data = make(cases[_i].header, cases[_i].data, &size);
    struct tfm_safetensors *file = NULL;
    struct tfm_error err = {0};
    const enum tfm_status status = tfm_safetensors_open_memory(data, size, "made", &file, &err);

    ck_assert_msg(status == (cases[_i].says ? TFM_STATUS_FORMAT : TFM_STATUS_OK), "%s", err.text);
    if (cases[_i].says) {
        ck_assert_ptr_null(file);
        ck_assert_msg(strstr(err.text, cases[_i].says) && strstr(err.text, "made"), "%s", err.text);
    }
    tfm_safetensors_close(file);
    free(data);
}
END_TEST

static const struct {
    uint64_t length;
    size_t size;
    const char *says;
} lengths[] = {
    {UINT64_MAX, 64, "at most 100000000"},
    {100000001, 64, "at most 100000000"},
    {57, 64, "truncated"},
    {0, 8, "'{'"},
    {1, 9, "'{'"},
    {0, 7, "7 bytes"},
    {0, 0, "0 bytes"},
    {UINT64_MAX - 7, 64, "at most 100000000"},
};

START_TEST(header_lengths)
{
    unsigned char *data = calloc(lengths[_i].size + 1, 1);
    struct tfm_safetensors *file = NULL;
    struct tfm_error err = {0};

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < 8 && i < lengths[_i].size; i++)
        data[i] = (unsigned char)(lengths[_i].length >> (8 * i));
    memset(data + 8 * (lengths[_i].size > 8), '{', lengths[_i].size > 8 ? 1 : 0);
    ck_assert_int_eq(tfm_safetensors_open_memory(data, lengths[_i].size, "made", &file, &err),
                     TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, lengths[_i].says) != NULL, "%s", err.text);
    free(data);
}
END_TEST

/* Touches everything that an opened file gives away. */
static void use(const struct tfm_safetensors *file, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < tfm_safetensors_count(file); i++) {
        const struct tfm_safetensor *tensor = tfm_safetensors_at(file, i);
        const unsigned char *at = tensor->data;
        ck_assert(at >= data && at <= data + size && tensor->bytes <= (size_t)(data + size - at));
        ck_assert_ptr_eq(tfm_safetensors_find(file, tensor->name), tensor);
        ck_assert_ptr_nonnull(tensor->type_name);
        size_t n = 1;
        for (int32_t k = 0; k < tensor->rank; k++)
            n *= (size_t)tensor->shape[k];
        float values[64];
        if (tensor->known && n <= 64)
            tfm_dtype_to_f32(tensor->dtype, tensor->data, 0, n, values);
    }
}

static const char small[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[16,22]}}";

/* Catches: a read outside of the file, whatever a byte of it says. */
START_TEST(every_byte_changed)
{
    size_t size, opened = 0;
    unsigned char *data = make(small, 22, &size);

    for (size_t at = 0; at < size - 22; at++) {
        const unsigned char before = data[at];
        for (unsigned value = 0; value < 256; value++) {
            struct tfm_safetensors *file = NULL;
            data[at] = (unsigned char)value;
            if (tfm_safetensors_open_memory(data, size, "made", &file, NULL) == TFM_STATUS_OK) {
                use(file, data, size);
                opened++;
            }
            tfm_safetensors_close(file);
        }
        data[at] = before;
    }
    /* letters of names, and the file as it is: enough to know that it was not all refused */
    ck_assert_uint_gt(opened, 1000);
    free(data);
}
END_TEST

START_TEST(every_truncation)
{
    size_t size;
    unsigned char *whole = make(small, 22, &size);

    for (size_t n = 0; n <= size; n++) {
        struct tfm_safetensors *file = NULL;
        unsigned char *data = malloc(n + 1); /* no byte of it behind n is touched */
        ck_assert_ptr_nonnull(data);
        memcpy(data + 1, whole, n);
        ck_assert_int_eq(tfm_safetensors_open_memory(data + 1, n, "made", &file, NULL),
                         n == size ? TFM_STATUS_OK : TFM_STATUS_FORMAT);
        if (file)
            use(file, data + 1, n);
        tfm_safetensors_close(file);
        free(data);
    }
    free(whole);
}
END_TEST

/* A28: a header of 61 bytes, so that the tensor begins at byte 69.
 * Catches: an aligned load from an unaligned place (under the sanitizer). */
START_TEST(unaligned_data)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}    ";
    const float want[4] = {1, 2, 3, 4};
    struct tfm_safetensors *file = NULL;
    float got[4];
    size_t size;

    char padded[62];
    snprintf(padded, sizeof padded, "%-61s", header);
    unsigned char *data = make(padded, 16, &size);
    memcpy(data + 69, want, 16);
    ck_assert_int_eq(tfm_safetensors_open_memory(data, size, "made", &file, NULL), TFM_STATUS_OK);
    ck_assert_ptr_eq(tfm_safetensors_find(file, "a")->data, data + 69);
    tfm_dtype_to_f32(TFM_DTYPE_F32, tfm_safetensors_find(file, "a")->data, 0, 4, got);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(got[i], want[i]);
    tfm_safetensors_close(file);
    free(data);
}
END_TEST

/* ---- writing ---- */

static char folder[] = "safetensors-XXXXXX";

static void enter_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    unlink("a.safetensors");
    ck_assert_int_eq(chdir(".."), 0);
    ck_assert_msg(rmdir(folder) == 0, "something was left behind: %s", strerror(errno));
}

static const int64_t shapes[][2] = {{3, 1}, {4, 2}};
static const float floats[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint16_t halves[3] = {0x3c00, 0x4000, 0x4200}; /* 1, 2, 3 */

/* Catches: names out of order, data that are not aligned, rows of a head in the wrong order, metadata lost. */
START_TEST(what_is_written)
{
    const struct tfm_safetensors_source sources[] = {
        {"z", TFM_DTYPE_F16, 1, shapes[0], TFM_DTYPE_F16, halves, 0},
        {"y", TFM_DTYPE_F16, 1, shapes[0], TFM_DTYPE_F32, floats + 1, 0}, /* 1, 2, 3 too */
        {"b", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0},
        {"a \"quoted\" \xc3\xa9", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, -4},
    };
    const float turned[8] = {0, 1, 4, 5, 2, 3, 6, 7};
    struct tfm_safetensors *file = NULL;
    struct tfm_error err = {0};
    struct stat facts;

    ck_assert_msg(tfm_safetensors_save("a.safetensors", sources, 4, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_msg(tfm_safetensors_open("a.safetensors", &file, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_uint_eq(tfm_safetensors_count(file), 4);
    ck_assert_str_eq(tfm_safetensors_metadata(file, "format"), "pt");
    ck_assert_ptr_null(tfm_safetensors_metadata(file, "other"));
    ck_assert_int_eq(stat("a.safetensors", &facts), 0);
    ck_assert_int_eq(facts.st_size, (int64_t)tfm_safetensors_size(file));
    const char *names[] = {sources[3].name, "b", "y", "z"};
    for (size_t i = 0; i < 4; i++) {
        const struct tfm_safetensor *tensor = tfm_safetensors_at(file, i);
        ck_assert_str_eq(tensor->name, names[i]);
        ck_assert_uint_eq((uintptr_t)tensor->data % tfm_dtype_info(tensor->dtype)->bytes, 0);
    }
    ck_assert_mem_eq(tfm_safetensors_at(file, 0)->data, turned, sizeof turned);
    ck_assert_mem_eq(tfm_safetensors_at(file, 1)->data, floats, sizeof floats);
    ck_assert_mem_eq(tfm_safetensors_at(file, 2)->data, halves, sizeof halves);
    ck_assert_mem_eq(tfm_safetensors_at(file, 3)->data, halves, sizeof halves);
    ck_assert_int_eq(tfm_safetensors_at(file, 1)->shape[0], 4);
    ck_assert_int_eq(tfm_safetensors_at(file, 1)->shape[1], 2);
    tfm_safetensors_close(file);
}
END_TEST

static const struct {
    const char *path;
    struct tfm_safetensors_source second;
    enum tfm_status status;
} bad[] = {
    {"a.safetensors",
     {"b", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0},
     TFM_STATUS_INVALID_ARGUMENT},
    {"a.safetensors",
     {"", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0},
     TFM_STATUS_INVALID_ARGUMENT},
    {"a.safetensors",
     {"\xff", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0},
     TFM_STATUS_INVALID_ARGUMENT},
    {"a.safetensors",
     {"q", TFM_DTYPE_Q8_0, 2, shapes[1], TFM_DTYPE_Q8_0, floats, 0},
     TFM_STATUS_DTYPE},
    {"a.safetensors",
     {"q", TFM_DTYPE_F32, 9, shapes[1], TFM_DTYPE_F32, floats, 0},
     TFM_STATUS_SHAPE},
    {"a.safetensors",
     {"q", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 3},
     TFM_STATUS_SHAPE},
    {"a.safetensors",
     {"q", TFM_DTYPE_I32, 2, shapes[1], TFM_DTYPE_F32, floats, 0},
     TFM_STATUS_DTYPE},
    {"/dev/full", {"q", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0}, TFM_STATUS_IO},
    {"nowhere/a", {"q", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0}, TFM_STATUS_IO},
};

START_TEST(what_cannot_be_written)
{
    const struct tfm_safetensors_source sources[] = {
        {"b", TFM_DTYPE_F32, 2, shapes[1], TFM_DTYPE_F32, floats, 0}, bad[_i].second};
    struct tfm_error err = {0};

    ck_assert_msg(tfm_safetensors_save(bad[_i].path, sources, 2, &err) == bad[_i].status, "%s",
                  err.text);
    ck_assert_msg(strstr(err.text, bad[_i].path) != NULL, "%s", err.text);
    ck_assert_int_ne(access("a.safetensors", F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *reading = tcase_create("reading"), *writing = tcase_create("writing");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(reading, 60);
    tcase_add_loop_test(reading, headers, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(reading, header_lengths, 0, (int)(sizeof lengths / sizeof *lengths));
    tcase_add_test(reading, every_byte_changed);
    tcase_add_test(reading, every_truncation);
    tcase_add_test(reading, unaligned_data);
    suite_add_tcase(suite, reading);
    tcase_add_checked_fixture(writing, enter_folder, leave_folder);
    tcase_add_test(writing, what_is_written);
    tcase_add_loop_test(writing, what_cannot_be_written, 0, (int)(sizeof bad / sizeof *bad));
    suite_add_tcase(suite, writing);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
