/* SPDX-License-Identifier: MIT
 * The GGUF reader: what it reads from an honest file, and that nothing in a dishonest one hurts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/llm/alloc_watch.h"
#include "tests/llm/gguf_builder.h"
#include "tests/llm/gguf_hostile.h"

static const char *const fruits[] = {"apple", "", "c\xc3\xa9rise"};
static const float weights[] = {1, 2, 3, 4, 5, 6};

/* A small file with every type of value. */
static struct gguf_builder *honest(void)
{
    static const int16_t small[] = {-5, 0, 32767};
    static const uint64_t large[] = {0, UINT64_C(1) << 63};
    static const double reals[] = {0.5, -1e300};
    struct gguf_builder *b = gguf_builder_create();

    gguf_builder_string(b, "general.architecture", "llama");
    gguf_builder_uint(b, "u8", TFM_GGUF_U8, 200);
    gguf_builder_uint(b, "i8", TFM_GGUF_I8, 100);
    gguf_builder_uint(b, "u16", TFM_GGUF_U16, 60000);
    gguf_builder_uint(b, "i16", TFM_GGUF_I16, 30000);
    gguf_builder_uint(b, "u32", TFM_GGUF_U32, 4000000000U);
    gguf_builder_uint(b, "i32", TFM_GGUF_I32, 2000000000U);
    gguf_builder_uint(b, "u64", TFM_GGUF_U64, UINT64_MAX);
    gguf_builder_uint(b, "i64", TFM_GGUF_I64, INT64_MAX);
    gguf_builder_uint(b, "negative", TFM_GGUF_I32, (uint64_t)-7);
    gguf_builder_uint(b, "lowest", TFM_GGUF_I64, UINT64_C(1) << 63);
    gguf_builder_float(b, "f32", TFM_GGUF_F32, 1e-5f);
    gguf_builder_float(b, "f64", TFM_GGUF_F64, 1e-5);
    gguf_builder_bool(b, "yes", 1);
    gguf_builder_bool(b, "no", 0);
    gguf_builder_string(b, "empty", "");
    gguf_builder_strings(b, "fruits", fruits, 3);
    gguf_builder_array(b, "small", TFM_GGUF_I16, small, 3);
    gguf_builder_array(b, "large", TFM_GGUF_U64, large, 2);
    gguf_builder_array(b, "reals", TFM_GGUF_F64, reals, 2);
    gguf_builder_array(b, "nothing", TFM_GGUF_U32, NULL, 0);
    gguf_builder_tensor(b, "matrix", 2, (const uint64_t[]){3, 2}, 0, weights, sizeof weights);
    gguf_builder_tensor(b, "vector", 1, (const uint64_t[]){32}, 6, NULL, 22);
    gguf_builder_tensor(b, "four", 4, (const uint64_t[]){32, 1, 2, 3}, 3, NULL, 120);
    return b;
}

/* Opens the builder's file from a copy of exactly its size, so that a sanitizer sees any step beyond. The
 * memory is to be freed after the gguf was closed. */
static enum tfm_status open_built(struct gguf_builder *b, unsigned char **data,
                                  struct tfm_gguf **gguf, struct tfm_error *err)
{
    size_t size;
    unsigned char *file = gguf_builder_finish(b, &size);

    *data = malloc(size);
    ck_assert_ptr_nonnull(*data);
    memcpy(*data, file, size);
    free(file);
    return tfm_gguf_open_memory(*data, size, "made.gguf", gguf, err);
}

static struct tfm_gguf *opened;
static unsigned char *opened_data;

static void open_honest(void)
{
    struct gguf_builder *b = honest();
    struct tfm_error err;

    ck_assert_msg(open_built(b, &opened_data, &opened, &err) == TFM_STATUS_OK, "%s", err.text);
    gguf_builder_destroy(b);
}

static void close_honest(void)
{
    tfm_gguf_close(opened);
    free(opened_data);
}

enum { N_INTEGERS = 17 };

/* Catches: a width or a sign read wrong, a type accepted that is another. */
START_TEST(integers_of_any_width)
{
    static const struct {
        const char *key;
        enum tfm_status status;
        uint64_t value;
    } rows[] = {
        {"u8", TFM_STATUS_OK, 200},          {"i8", TFM_STATUS_OK, 100},
        {"u16", TFM_STATUS_OK, 60000},       {"i16", TFM_STATUS_OK, 30000},
        {"u32", TFM_STATUS_OK, 4000000000U}, {"i32", TFM_STATUS_OK, 2000000000U},
        {"u64", TFM_STATUS_OK, UINT64_MAX},  {"i64", TFM_STATUS_OK, INT64_MAX},
        {"negative", TFM_STATUS_FORMAT, 0},  {"lowest", TFM_STATUS_FORMAT, 0},
        {"f32", TFM_STATUS_FORMAT, 0},       {"yes", TFM_STATUS_FORMAT, 0},
        {"empty", TFM_STATUS_FORMAT, 0},     {"small", TFM_STATUS_FORMAT, 0},
        {"u", TFM_STATUS_NOT_FOUND, 0},      {"u321", TFM_STATUS_NOT_FOUND, 0},
        {"", TFM_STATUS_NOT_FOUND, 0},
    };
    _Static_assert(sizeof rows / sizeof *rows == N_INTEGERS, "rows");
    uint64_t value = 4711;
    struct tfm_error err;

    ck_assert_msg(tfm_gguf_uint(opened, rows[_i].key, &value, &err) == rows[_i].status, "%s",
                  rows[_i].key);
    ck_assert_uint_eq(value, rows[_i].status == TFM_STATUS_OK ? rows[_i].value : 4711);
    if (rows[_i].status != TFM_STATUS_OK) {
        ck_assert_ptr_nonnull(strstr(err.text, "made.gguf"));
        ck_assert_ptr_nonnull(strstr(err.text, rows[_i].key));
    }
}
END_TEST
/* Catches: f64 read as f32, an integer taken for a float, an output touched on failure. */
START_TEST(other_values)
{
    double real = 42;
    int flag = 42;
    struct tfm_text text = {"untouched", 9};
    struct tfm_error err;

    ck_assert(tfm_gguf_float(opened, "u32", &real, &err) == TFM_STATUS_FORMAT && real == 42);
    ck_assert_ptr_nonnull(strstr(err.text, "u32"));
    ck_assert(tfm_gguf_float(opened, "f32", &real, &err) == TFM_STATUS_OK);
    ck_assert_double_eq(real, (double)1e-5f);
    ck_assert_str_eq(err.text, "");
    ck_assert(tfm_gguf_float(opened, "f64", &real, NULL) == TFM_STATUS_OK);
    ck_assert_double_eq(real, 1e-5);
    ck_assert(tfm_gguf_bool(opened, "u8", &flag, NULL) == TFM_STATUS_FORMAT && flag == 42);
    ck_assert(tfm_gguf_bool(opened, "yes", &flag, NULL) == TFM_STATUS_OK && flag == 1);
    ck_assert(tfm_gguf_bool(opened, "no", &flag, NULL) == TFM_STATUS_OK && flag == 0);
    ck_assert(tfm_gguf_string(opened, "u8", &text, NULL) == TFM_STATUS_FORMAT && text.size == 9);
    ck_assert(tfm_gguf_string(opened, "empty", &text, NULL) == TFM_STATUS_OK && text.size == 0);
    ck_assert(tfm_gguf_string(opened, "general.architecture", &text, NULL) == TFM_STATUS_OK);
    ck_assert(text.size == 5 && memcmp(text.data, "llama", 5) == 0);
}
END_TEST

/* Catches: elements of one type read as another, an index past the end, strings out of step. */
START_TEST(arrays)
{
    struct tfm_gguf_array array;
    struct tfm_text texts[3];
    int64_t integer = 42;
    double real = 42;
    struct tfm_error err;

    ck_assert(tfm_gguf_get_array(opened, "u8", &array, &err) == TFM_STATUS_FORMAT);
    ck_assert(tfm_gguf_get_array(opened, "fruits", &array, &err) == TFM_STATUS_OK);
    ck_assert(array.type == TFM_GGUF_STRING && array.count == 3);
    ck_assert(tfm_gguf_array_int(&array, 0, &integer, &err) == TFM_STATUS_FORMAT && integer == 42);
    ck_assert(tfm_gguf_array_float(&array, 0, &real, &err) == TFM_STATUS_FORMAT && real == 42);
    ck_assert(tfm_gguf_array_text(&array, texts, &err) == TFM_STATUS_OK);
    for (size_t i = 0; i < 3; i++)
        ck_assert(texts[i].size == strlen(fruits[i]) &&
                  memcmp(texts[i].data, fruits[i], texts[i].size) == 0);

    ck_assert(tfm_gguf_get_array(opened, "small", &array, &err) == TFM_STATUS_OK);
    ck_assert(tfm_gguf_array_text(&array, texts, &err) == TFM_STATUS_FORMAT);
    ck_assert(tfm_gguf_array_float(&array, 0, &real, &err) == TFM_STATUS_FORMAT);
    ck_assert(tfm_gguf_array_int(&array, 0, &integer, &err) == TFM_STATUS_OK && integer == -5);
    ck_assert(tfm_gguf_array_int(&array, 2, &integer, &err) == TFM_STATUS_OK && integer == 32767);
    ck_assert(tfm_gguf_array_int(&array, 3, &integer, &err) == TFM_STATUS_OUT_OF_RANGE);
    ck_assert(tfm_gguf_array_int(&array, SIZE_MAX, &integer, &err) == TFM_STATUS_OUT_OF_RANGE);
    ck_assert(integer == 32767);

    ck_assert(tfm_gguf_get_array(opened, "large", &array, &err) == TFM_STATUS_OK);
    ck_assert(tfm_gguf_array_int(&array, 1, &integer, &err) == TFM_STATUS_OUT_OF_RANGE);
    ck_assert(tfm_gguf_get_array(opened, "reals", &array, &err) == TFM_STATUS_OK);
    ck_assert(tfm_gguf_array_int(&array, 0, &integer, &err) == TFM_STATUS_FORMAT);
    ck_assert(tfm_gguf_array_float(&array, 1, &real, &err) == TFM_STATUS_OK && real == -1e300);
    ck_assert(tfm_gguf_get_array(opened, "nothing", &array, &err) == TFM_STATUS_OK);
    ck_assert(array.count == 0);
    ck_assert(tfm_gguf_array_int(&array, 0, &integer, &err) == TFM_STATUS_OUT_OF_RANGE);
}
END_TEST

/* Catches: dims not reversed, bytes or data of the wrong place, an unread type taken for a known one. */
START_TEST(tensors)
{
    const struct tfm_gguf_tensor *t = tfm_gguf_find(opened, "matrix");

    ck_assert_uint_eq(tfm_gguf_tensor_count(opened), 3);
    ck_assert_ptr_null(tfm_gguf_tensor(opened, 3));
    ck_assert_ptr_null(tfm_gguf_find(opened, "matri"));
    ck_assert_ptr_null(tfm_gguf_find(opened, "matrix2"));
    ck_assert_ptr_eq(t, tfm_gguf_tensor(opened, 0));
    ck_assert(t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3);
    ck_assert(t->known && t->dtype == TFM_DTYPE_F32 && t->bytes == 24);
    ck_assert_str_eq(t->type_name, "F32");
    ck_assert_int_eq(memcmp(t->data, weights, sizeof weights), 0);

    t = tfm_gguf_find(opened, "vector");
    ck_assert(t && !t->known && t->file_type == 6 && t->bytes == 22);
    ck_assert_str_eq(t->type_name, "Q5_0");
    t = tfm_gguf_find(opened, "four");
    ck_assert(t && t->known && t->dtype == TFM_DTYPE_Q4_1 && t->bytes == 120);
    ck_assert(t->rank == 4 && t->shape[0] == 3 && t->shape[1] == 2 && t->shape[2] == 1 &&
              t->shape[3] == 32);
    ck_assert_ptr_eq((const unsigned char *)t->data + 120, opened_data + tfm_gguf_size(opened));
}
END_TEST

/* Catches: every fault of the table: accepted, or refused without saying where; time or memory out of
 * proportion (A23). */
START_TEST(hostile_files)
{
    const struct gguf_hostile *row = &gguf_hostile[_i];
    struct gguf_builder *b = gguf_builder_create();
    struct tfm_gguf *gguf = NULL;
    struct tfm_error err;
    unsigned char *data;
    enum tfm_status status;
    struct alloc_watch watch;
    clock_t begin = clock();
    size_t size;

    row->make(b);
    free(gguf_builder_finish(b, &size));
    alloc_watch_begin(-1);
    status = open_built(b, &data, &gguf, &err);
    watch = alloc_watch_end();
    ck_assert_msg(clock() - begin < CLOCKS_PER_SEC, "%s: took too long", row->what);
    ck_assert_msg(watch.largest <= 4 * size + 4096, "%s: allocated %zu bytes for a file of %zu",
                  row->what, watch.largest, size);
    if (!row->says[0]) {
        ck_assert_msg(status == TFM_STATUS_OK, "%s: %s", row->what, err.text);
    } else {
        ck_assert_msg(status == TFM_STATUS_FORMAT, "%s: status %s", row->what,
                      tfm_status_name(status));
        ck_assert_ptr_null(gguf);
        ck_assert_msg(strncmp(err.text, "made.gguf: ", 11) == 0 && strstr(err.text, ", byte ") &&
                          strstr(err.text, row->says[0]) && strstr(err.text, row->says[1]),
                      "%s: %s", row->what, err.text);
    }
    tfm_gguf_close(gguf);
    free(data);
    gguf_builder_destroy(b);
}
END_TEST

/* Reads everything that there is, as a user would. Returns something of all of it. */
static double read_everything(const struct tfm_gguf *gguf)
{
    static const char *const keys[] = {"general.architecture",
                                       "u8",
                                       "i8",
                                       "u16",
                                       "i16",
                                       "u32",
                                       "i32",
                                       "u64",
                                       "i64",
                                       "negative",
                                       "lowest",
                                       "f32",
                                       "f64",
                                       "yes",
                                       "no",
                                       "empty",
                                       "fruits",
                                       "small",
                                       "large",
                                       "reals",
                                       "nothing"};
    double sum = 0, real;
    uint64_t number;
    int64_t integer;
    int flag;
    struct tfm_text text;
    struct tfm_gguf_array array;

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        if (tfm_gguf_uint(gguf, keys[k], &number, NULL) == TFM_STATUS_OK)
            sum += (double)number;
        if (tfm_gguf_float(gguf, keys[k], &real, NULL) == TFM_STATUS_OK)
            sum += real;
        if (tfm_gguf_bool(gguf, keys[k], &flag, NULL) == TFM_STATUS_OK)
            sum += flag;
        if (tfm_gguf_string(gguf, keys[k], &text, NULL) == TFM_STATUS_OK)
            for (size_t i = 0; i < text.size; i++)
                sum += text.data[i];
        if (tfm_gguf_get_array(gguf, keys[k], &array, NULL) != TFM_STATUS_OK)
            continue;
        for (size_t i = 0; i < array.count; i++) {
            if (tfm_gguf_array_int(&array, i, &integer, NULL) == TFM_STATUS_OK)
                sum += (double)integer;
            if (tfm_gguf_array_float(&array, i, &real, NULL) == TFM_STATUS_OK)
                sum += real;
        }
        if (array.type == TFM_GGUF_STRING) {
            struct tfm_text *texts = calloc(array.count + 1, sizeof *texts);
            ck_assert_ptr_nonnull(texts);
            ck_assert(tfm_gguf_array_text(&array, texts, NULL) == TFM_STATUS_OK);
            for (size_t i = 0; i < array.count; i++)
                sum += texts[i].size ? texts[i].data[texts[i].size - 1] : 0;
            free(texts);
        }
    }
    for (size_t i = 0; i < tfm_gguf_tensor_count(gguf); i++) {
        const struct tfm_gguf_tensor *t = tfm_gguf_tensor(gguf, i);
        for (size_t j = 0; j < t->bytes; j++)
            sum += ((const unsigned char *)t->data)[j];
    }
    return sum;
}

/* Catches: a read past the end in any field (with a sanitizer), and a cut that goes unnoticed (A25). */
START_TEST(every_truncation)
{
    struct gguf_builder *b = honest();
    struct tfm_error err;
    size_t size;
    unsigned char *file = gguf_builder_finish(b, &size);

    for (size_t cut = 0; cut < size; cut++) {
        struct tfm_gguf *gguf = NULL;
        unsigned char *part = malloc(cut ? cut : 1);
        ck_assert_ptr_nonnull(part);
        memcpy(part, file, cut);
        ck_assert_msg(tfm_gguf_open_memory(part, cut, "cut", &gguf, &err) == TFM_STATUS_FORMAT,
                      "cut to %zu of %zu bytes", cut, size);
        ck_assert_ptr_null(gguf);
        free(part);
    }
    free(file);
    gguf_builder_destroy(b);
}
END_TEST

/* Catches: trust in any single byte before the data: a crash, undefined behaviour, an allocation out of
 * proportion; whatever is accepted must be readable to its end. */
START_TEST(every_byte_changed)
{
    struct gguf_builder *b = honest();
    size_t size, header;
    unsigned char *file = gguf_builder_finish(b, &size);
    struct tfm_gguf *gguf;
    size_t accepted = 0;

    ck_assert(tfm_gguf_open_memory(file, size, "whole", &gguf, NULL) == TFM_STATUS_OK);
    header = (size_t)((const unsigned char *)tfm_gguf_tensor(gguf, 0)->data - file);
    ck_assert(isfinite(read_everything(gguf)));
    tfm_gguf_close(gguf);
    for (size_t at = 0; at < header; at++)
        for (int change = 0; change < 11; change++) {
            unsigned char before = file[at];
            struct alloc_watch watch;
            enum tfm_status status;
            file[at] = change < 8    ? (unsigned char)(before ^ 1 << change)
                       : change == 8 ? 0
                       : change == 9 ? 0xff
                                     : (unsigned char)~before;
            alloc_watch_begin(-1);
            status = tfm_gguf_open_memory(file, size, "changed", &gguf, NULL);
            watch = alloc_watch_end();
            ck_assert_uint_le(watch.largest, 8 * size);
            if (status == TFM_STATUS_OK) {
                volatile double sink = read_everything(gguf);
                (void)sink;
                accepted++;
                tfm_gguf_close(gguf);
            } else {
                ck_assert_int_eq(status, TFM_STATUS_FORMAT);
            }
            file[at] = before;
        }
    ck_assert_uint_gt(accepted, 0); /* values and names may be anything */
    free(file);
    gguf_builder_destroy(b);
}
END_TEST

/* Catches: a pointer that was never set freed on the way out, a leak (with a sanitizer). */
START_TEST(out_of_memory_anywhere)
{
    struct gguf_builder *b = honest();
    size_t size;
    unsigned char *file = gguf_builder_finish(b, &size);
    enum tfm_status status = TFM_STATUS_NOMEM;
    long failing = 0;

    for (; status != TFM_STATUS_OK; failing++) {
        struct tfm_gguf *gguf = NULL;
        alloc_watch_begin(failing);
        status = tfm_gguf_open_memory(file, size, "made", &gguf, NULL);
        alloc_watch_end();
        if (status != TFM_STATUS_OK) {
            ck_assert_int_eq(status, TFM_STATUS_NOMEM);
            ck_assert_ptr_null(gguf);
        }
        tfm_gguf_close(gguf);
    }
    ck_assert_int_gt(failing, 4);
    free(file);
    gguf_builder_destroy(b);
}
END_TEST

/* Catches: quadratic search for duplicates, and a look-up that finds a neighbour. */
START_TEST(many_keys_and_tensors)
{
    enum { N = 50000 };
    struct gguf_builder *b = gguf_builder_create();
    struct tfm_gguf *gguf;
    struct tfm_error err;
    unsigned char *data;
    clock_t begin;
    char name[32];

    for (unsigned i = 0; i < N; i++) { /* in no order, each once */
        snprintf(name, sizeof name, "n%u", i * 7919 % 50021);
        gguf_builder_uint(b, name, TFM_GGUF_U32, i);
        gguf_builder_tensor(b, name, 1, (const uint64_t[]){i % 3}, 24, NULL, i % 3);
    }
    begin = clock();
    ck_assert_msg(open_built(b, &data, &gguf, &err) == TFM_STATUS_OK, "%s", err.text);
    for (unsigned i = 0; i < N; i++) {
        uint64_t value;
        snprintf(name, sizeof name, "n%u", i * 7919 % 50021);
        ck_assert(tfm_gguf_uint(gguf, name, &value, NULL) == TFM_STATUS_OK && value == i);
        ck_assert_ptr_eq(tfm_gguf_find(gguf, name), tfm_gguf_tensor(gguf, i));
    }
    ck_assert(clock() - begin < 5 * CLOCKS_PER_SEC);
    tfm_gguf_close(gguf);
    free(data);
    gguf_builder_destroy(b);
}
END_TEST

static char folder[256], path[300];

static void make_folder(void)
{
    const char *parent = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/gguf-test.XXXXXX", parent ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

/* Catches: a mapping that is not the file, dropped pages that do not come back, `drop` taking memory that
 * is no mapping or lies outside. */
START_TEST(from_disk)
{
    enum { BYTES = 3 << 16 };
    struct gguf_builder *b = honest();
    struct tfm_gguf *gguf;
    struct tfm_error err;
    const struct tfm_gguf_tensor *t;
    unsigned char *pattern = malloc(BYTES), *data;

    ck_assert_ptr_nonnull(pattern);
    for (size_t i = 0; i < BYTES; i++)
        pattern[i] = (unsigned char)(i * 31 + (i >> 8));
    gguf_builder_tensor(b, "pages", 1, (const uint64_t[]){BYTES}, 24, pattern, BYTES);
    ck_assert_int_eq(gguf_builder_write(b, path), 0);
    ck_assert_msg(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_str_eq(tfm_gguf_path(gguf), path);
    t = tfm_gguf_find(gguf, "pages");
    ck_assert_int_eq(memcmp(t->data, pattern, BYTES), 0);
    tfm_gguf_drop(gguf, t->data, t->bytes);
    ck_assert_int_eq(memcmp(t->data, pattern, BYTES), 0);
    tfm_gguf_drop(gguf, t->data, SIZE_MAX);
    tfm_gguf_drop(gguf, pattern, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_uint_eq(pattern[i], (unsigned char)(i * 31 + (i >> 8)));
    tfm_gguf_close(gguf);

    ck_assert(open_built(b, &data, &gguf, &err) == TFM_STATUS_OK);
    t = tfm_gguf_find(gguf, "pages");
    tfm_gguf_drop(gguf, t->data, t->bytes);
    ck_assert_int_eq(memcmp(t->data, pattern, BYTES), 0);
    tfm_gguf_close(gguf);
    free(data);
    free(pattern);
    gguf_builder_destroy(b);
}
END_TEST

/* Catches: SIGBUS on a file that was cut (A25), a hang on a FIFO, a folder or an empty file mapped. */
START_TEST(bad_paths)
{
    struct gguf_builder *b = honest();
    struct tfm_gguf *gguf = NULL;
    struct tfm_error err;
    struct stat facts;
    off_t table;

    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_IO);
    ck_assert(strstr(err.text, path) && strstr(err.text, "No such file"));
    ck_assert(tfm_gguf_open(folder, &gguf, &err) == TFM_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "not a regular file"));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_IO);
    unlink(path);
    ck_assert_int_eq(gguf_builder_write(b, path), 0);
    ck_assert_int_eq(stat(path, &facts), 0);
    table = facts.st_size - 120 - 32 - 32 - 32 - 20; /* before the data, and padding */
    ck_assert_int_eq(truncate(path, facts.st_size - 1), 0);
    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_FORMAT);
    ck_assert(strstr(err.text, "tensor 'four'") && strstr(err.text, " 1 bytes are missing"));
    ck_assert_int_eq(truncate(path, table), 0);
    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_FORMAT);
    ck_assert(strstr(err.text, "tensor '") && strstr(err.text, "truncated"));
    ck_assert_int_eq(truncate(path, 20), 0);
    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_FORMAT);
    ck_assert(strstr(err.text, "20 bytes") && strstr(err.text, "truncated"));
    ck_assert_int_eq(truncate(path, 4), 0);
    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_FORMAT);
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert(tfm_gguf_open(path, &gguf, &err) == TFM_STATUS_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "empty"));
    ck_assert_ptr_null(gguf);
    gguf_builder_destroy(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gguf");
    TCase *values = tcase_create("values"), *faults = tcase_create("faults"),
          *files = tcase_create("files");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(values, 60);
    tcase_add_checked_fixture(values, open_honest, close_honest);
    tcase_add_loop_test(values, integers_of_any_width, 0, N_INTEGERS);
    tcase_add_test(values, other_values);
    tcase_add_test(values, arrays);
    tcase_add_test(values, tensors);
    suite_add_tcase(suite, values);

    tcase_set_timeout(faults, 60);
    tcase_add_loop_test(faults, hostile_files, 0, (int)gguf_hostile_count);
    tcase_add_test(faults, every_truncation);
    tcase_add_test(faults, every_byte_changed);
    tcase_add_test(faults, out_of_memory_anywhere);
    tcase_add_test(faults, many_keys_and_tensors);
    suite_add_tcase(suite, faults);

    tcase_set_timeout(files, 60);
    tcase_add_checked_fixture(files, make_folder, remove_folder);
    tcase_add_test(files, from_disk);
    tcase_add_test(files, bad_paths);
    suite_add_tcase(suite, files);

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
