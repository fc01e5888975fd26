/* SPDX-License-Identifier: MIT
 * Token files: what is written is read, what is damaged is refused; and the order of windows: each once an epoch,
 * every epoch another, the same from any place on, held-out ones never. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include <tfm/dataset.h>

#include "tests/folder.h"
static struct tfm_dataset *dataset;

static void leave_folder(void)
{
    tfm_dataset_close(dataset);
    folder_leave((const char *const[]){"a.tok", "b.tok"}, 2);
}

/* n ids that count up, modulo the vocabulary, in pieces of odd sizes. */
static void make(const char *path, uint64_t vocab, size_t n)
{
    struct tfm_dataset_writer *writer = NULL;
    struct tfm_error err = {0};

    ck_assert_msg(tfm_dataset_writer_create(path, vocab, 77, &writer, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    for (size_t at = 0, piece; at < n; at += piece) {
        int32_t ids[777];
        piece = n - at < 777 ? n - at : 777;
        for (size_t i = 0; i < piece; i++)
            ids[i] = (int32_t)((at + i) % vocab);
        ck_assert_int_eq(tfm_dataset_writer_add(writer, ids, piece, &err), TFM_STATUS_OK);
    }
    ck_assert_msg(tfm_dataset_writer_finish(writer, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_dataset_writer_destroy(writer);
}

static void reopen(const char *path)
{
    struct tfm_error err = {0};
    tfm_dataset_close(dataset);
    dataset = NULL;
    ck_assert_msg(tfm_dataset_open(path, &dataset, &err) == TFM_STATUS_OK, "%s", err.text);
}

static const struct {
    uint64_t vocab;
    size_t n;
} sizes[] = {{300, 0}, {300, 1}, {300, 100000}, {65536, 70000}, {65537, 70000}, {1, 5}};

/* Catches: an id cut to 16 bits, a piece lost at the end of a buffer, a file that depends on how ids came. */
START_TEST(what_is_written)
{
    const uint64_t vocab = sizes[_i].vocab;
    int32_t ids[100];
    struct tfm_error err = {0};

    make("a.tok", vocab, sizes[_i].n);
    reopen("a.tok");
    ck_assert_uint_eq(tfm_dataset_count(dataset), sizes[_i].n);
    ck_assert_uint_eq(tfm_dataset_vocab(dataset), vocab);
    ck_assert_uint_eq(tfm_dataset_tokenizer(dataset), 77);
    for (size_t at = 0; at + 100 <= sizes[_i].n; at += 100) {
        ck_assert_int_eq(tfm_dataset_read(dataset, at, 100, ids, &err), TFM_STATUS_OK);
        for (size_t i = 0; i < 100; i++)
            ck_assert_int_eq(ids[i], (int32_t)((at + i) % vocab));
    }
    ck_assert_int_eq(tfm_dataset_read(dataset, sizes[_i].n, 1, ids, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_dataset_read(dataset, 1, SIZE_MAX, ids, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_dataset_expect(dataset, vocab, 77, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_dataset_expect(dataset, vocab + 1, 77, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_dataset_expect(dataset, vocab, 78, &err), TFM_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* Catches: a file that is there before it is whole, and one that stays after a failure. */
START_TEST(writers_that_fail)
{
    struct tfm_dataset_writer *writer = NULL;
    struct tfm_error err = {0};
    const int32_t bad[] = {3, 300}, negative[] = {-1}, good[] = {1, 2};

    make("a.tok", 300, 10);
    ck_assert_int_eq(tfm_dataset_writer_create("a.tok", 300, 77, &writer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_dataset_writer_add(writer, bad, 2, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_dataset_writer_add(writer, negative, 1, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_dataset_writer_add(writer, good, 2, &err), TFM_STATUS_OK);
    reopen("a.tok"); /* the old one still */
    ck_assert_uint_eq(tfm_dataset_count(dataset), 10);
    ck_assert_int_eq(tfm_dataset_writer_finish(writer, &err), TFM_STATUS_OK);
    tfm_dataset_writer_destroy(writer);
    reopen("a.tok");
    ck_assert_uint_eq(tfm_dataset_count(dataset), 2); /* nothing of what was refused */
    ck_assert_int_eq(tfm_dataset_writer_create("a.tok", 300, 77, &writer, &err), TFM_STATUS_OK);
    tfm_dataset_writer_destroy(writer);
    ck_assert_int_eq(tfm_dataset_writer_create("/dev/null", 300, 77, &writer, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_dataset_writer_create("nowhere/a", 300, 77, &writer, &err), TFM_STATUS_IO);
    ck_assert_int_eq(tfm_dataset_writer_create("b.tok", 0, 77, &writer, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* Catches: ids that are taken for others, or others for them, also those that are not written out yet. */
START_TEST(the_same_ids)
{
    static const struct {
        uint64_t vocab, tokenizer;
        int32_t last;
        size_t n;
        int same;
    } rows[] = {{300, 77, 5, 7, 1}, {300, 77, 5, 7, 1}, {300, 77, 6, 7, 0},
                {300, 77, 5, 6, 0}, {300, 78, 5, 7, 0}, {301, 77, 5, 7, 0}};
    int32_t ids[] = {1, 2, 3, 4, 0, 1, 5};
    struct tfm_error err = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tfm_dataset_writer *writer = NULL;
        ck_assert_int_eq(
            tfm_dataset_writer_create("b.tok", rows[i].vocab, rows[i].tokenizer, &writer, &err),
            TFM_STATUS_OK);
        ids[6] = rows[i].last;
        ck_assert_int_eq(tfm_dataset_writer_add(writer, ids, rows[i].n, &err), TFM_STATUS_OK);
        if (i == 0) {
            ck_assert_int_eq(tfm_dataset_writer_finish(writer, &err), TFM_STATUS_OK);
            reopen("b.tok");
        } else {
            ck_assert_int_eq(tfm_dataset_writer_same(writer, dataset), rows[i].same);
        }
        tfm_dataset_writer_destroy(writer);
    }
}
END_TEST

/* Every truncation, one byte more, and every byte changed. Only the checksum of the tokenizer may be another.
 * Catches: a file that is believed. */
START_TEST(damaged_files)
{
    enum { SIZE = 48 + 2 * 20 };
    unsigned char whole[SIZE + 1] = {0}, data[SIZE + 1];
    struct tfm_error err = {0};
    int32_t ids[20];

    make("a.tok", 300, 20);
    FILE *file = fopen("a.tok", "rb");
    ck_assert(file && fread(whole, 1, sizeof whole, file) == SIZE);
    fclose(file);
    for (int kind = 0; kind < SIZE + 2 + SIZE; kind++) {
        size_t size = kind < SIZE + 2 ? (size_t)kind : SIZE;
        const int at = kind - SIZE - 2;
        if (size == SIZE && at < 0)
            continue;
        memcpy(data, whole, sizeof data);
        if (at >= 0)
            data[at] ^= at % 2 ? 0x01 : 0x80;
        file = fopen("b.tok", "wb");
        ck_assert(file && fwrite(data, 1, size, file) == size);
        fclose(file);
        struct tfm_dataset *damaged = NULL;
        const enum tfm_status status = tfm_dataset_open("b.tok", &damaged, &err);
        /* bytes 16 to 23 are the vocabulary: more tokens than ids is no fault of the ids */
        if (status == TFM_STATUS_OK) {
            ck_assert_msg(at >= 16 && at < 32, "byte %d", at);
            ck_assert_int_eq(tfm_dataset_read(damaged, 0, 20, ids, &err), TFM_STATUS_OK);
            ck_assert_int_eq(tfm_dataset_expect(damaged, 300, 77, &err),
                             TFM_STATUS_INVALID_ARGUMENT);
        } else {
            ck_assert_msg(status == TFM_STATUS_FORMAT && strstr(err.text, "b.tok"), "%s", err.text);
        }
        tfm_dataset_close(damaged);
    }
    ck_assert_int_eq(tfm_dataset_open("nowhere.tok", &dataset, &err), TFM_STATUS_IO);
    ck_assert_int_eq(tfm_dataset_open(".", &dataset, &err), TFM_STATUS_IO);
}
END_TEST

/* An id outside of the vocabulary under a right checksum.
 * Catches: an id that indexes behind a table. */
START_TEST(a_foreign_id)
{
    struct tfm_error err = {0};

    make("a.tok", 300, 300);
    FILE *file = fopen("a.tok", "r+b");
    ck_assert(file && fseek(file, 16, SEEK_SET) == 0 && fputc(43, file) == 43); /* 299 tokens */
    fclose(file);
    ck_assert_int_eq(tfm_dataset_open("a.tok", &dataset, &err), TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, "id 299 is 299") != NULL, "%s", err.text);
}
END_TEST

static const uint64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4096, 5000};

/* Catches: a window left out or seen twice in an epoch, epochs in the same order, an order that is none. */
START_TEST(epochs)
{
    const uint64_t n = counts[_i];
    const struct tfm_windows windows = {8, n, 0, 42}, other = {8, n, 0, 43};
    uint64_t *seen = calloc(n, sizeof *seen), same_epoch = 0, same_seed = 0, in_order = 0;

    ck_assert_ptr_nonnull(seen);
    for (uint64_t place = 0; place < 3 * n; place++) {
        const uint64_t at = tfm_windows_at(&windows, place);
        ck_assert_uint_lt(at, n);
        ck_assert_uint_eq(seen[at], place / n);
        seen[at]++;
        same_epoch += at == tfm_windows_at(&windows, place + n);
        same_seed += at == tfm_windows_at(&other, place);
        in_order += at == place % n;
    }
    if (n >= 1000) { /* of random orders about one place in n agrees */
        ck_assert_uint_lt(same_epoch, 30);
        ck_assert_uint_lt(same_seed, 30);
        ck_assert_uint_lt(in_order, 30);
    }
    free(seen);
}
END_TEST

/* Worked out by a second program. The order is part of what a checkpoint means: it must not change from one version to
 * the next. */
START_TEST(order_is_kept)
{
    static const uint64_t want[] = {7, 6, 8, 5, 9, 4, 2, 1, 0, 3, 8, 1, 2, 0, 4, 9, 3, 7, 6, 5};
    const struct tfm_windows windows = {8, 10, 0, 1};

    for (uint64_t place = 0; place < sizeof want / sizeof *want; place++)
        ck_assert_uint_eq(tfm_windows_at(&windows, place), want[place]);
}
END_TEST

/* Catches: targets that are not the next ids, a held-out window that is trained on, a position that does not
 * bring training to the same place. */
START_TEST(windows_of_a_file)
{
    enum { T = 7, N = 1000 };
    struct tfm_windows windows = {0};
    struct tfm_error err = {0};
    int32_t inputs[4 * T], targets[4 * T], again[4 * T];
    uint64_t place = 0;

    make("a.tok", N, N); /* id = place in the file */
    reopen("a.tok");
    ck_assert_int_eq(tfm_windows_split(dataset, T, 0.1, 5, &windows, &err), TFM_STATUS_OK);
    ck_assert_uint_eq(windows.train + windows.held, (N - 1) / T);
    ck_assert_uint_eq(windows.held, 14);
    const int32_t border = (int32_t)windows.train * T;
    for (int step = 0; step < 100; step++) {
        uint64_t saved = place;
        ck_assert_int_eq(tfm_windows_train(&windows, dataset, &place, 4, inputs, targets, &err),
                         TFM_STATUS_OK);
        ck_assert_uint_eq(place, saved + 4);
        for (int i = 0; i < 4 * T; i++) {
            ck_assert_int_eq(targets[i], inputs[i] + 1);
            ck_assert_int_lt(inputs[i], border);
            if (i % T)
                ck_assert_int_eq(inputs[i], inputs[i - 1] + 1);
        }
        ck_assert_int_eq(tfm_windows_train(&windows, dataset, &saved, 4, again, targets, &err),
                         TFM_STATUS_OK);
        ck_assert_mem_eq(again, inputs, sizeof inputs);
    }
    ck_assert_int_eq(tfm_windows_held(&windows, dataset, 10, 4, inputs, targets, &err),
                     TFM_STATUS_OK);
    ck_assert_int_eq(inputs[0], border + 10 * T);
    ck_assert_int_eq(targets[4 * T - 1], border + 14 * T);
    ck_assert_int_eq(tfm_windows_held(&windows, dataset, 11, 4, inputs, targets, &err),
                     TFM_STATUS_OUT_OF_RANGE);
}
END_TEST

static const struct {
    size_t n, length;
    double held;
    enum tfm_status status;
} splits[] = {
    {0, 8, 0, TFM_STATUS_OUT_OF_RANGE},
    {8, 8, 0, TFM_STATUS_OUT_OF_RANGE},
    {9, 8, 0, TFM_STATUS_OK},
    {9, 8, 0.01, TFM_STATUS_OUT_OF_RANGE},
    {17, 8, 0.01, TFM_STATUS_OK},
    {17, 8, 0.99, TFM_STATUS_OUT_OF_RANGE},
    {17, 0, 0, TFM_STATUS_INVALID_ARGUMENT},
    {17, 8, 1, TFM_STATUS_INVALID_ARGUMENT},
    {17, 8, -0.1, TFM_STATUS_INVALID_ARGUMENT},
};

START_TEST(texts_that_are_too_small)
{
    struct tfm_windows windows = {0};
    struct tfm_error err = {0};

    make("a.tok", 300, splits[_i].n);
    reopen("a.tok");
    ck_assert_msg(tfm_windows_split(dataset, splits[_i].length, splits[_i].held, 1, &windows,
                                    &err) == splits[_i].status,
                  "%s", err.text);
    ck_assert((windows.train > 0) == (splits[_i].status == TFM_STATUS_OK));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dataset");
    TCase *tcase = tcase_create("dataset");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_loop_test(tcase, what_is_written, 0, (int)(sizeof sizes / sizeof *sizes));
    tcase_add_test(tcase, writers_that_fail);
    tcase_add_test(tcase, the_same_ids);
    tcase_add_test(tcase, damaged_files);
    tcase_add_test(tcase, a_foreign_id);
    tcase_add_loop_test(tcase, epochs, 0, (int)(sizeof counts / sizeof *counts));
    tcase_add_test(tcase, order_is_kept);
    tcase_add_test(tcase, windows_of_a_file);
    tcase_add_loop_test(tcase, texts_that_are_too_small, 0, (int)(sizeof splits / sizeof *splits));
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
