/* SPDX-License-Identifier: MIT
 * Checkpoints: what is written is read, the same sections give the same bytes, nothing that is damaged is believed. Two
 * of them in a folder: test_checkpoint_folder.c. */
#include "tests/train/checkpoint_scene.h"

static const size_t pieces[] = {0, 1, 7, 32, 4096};

/* Catches: a section at the wrong place, bytes lost between pieces, data that are not aligned. */
START_TEST(what_is_written)
{
    const void *data = NULL;
    const char *name = NULL;
    size_t size = 0;

    write_parts("a.ckpt", 3, N_PARTS, pieces[_i]);
    OK(tfm_checkpoint_open("a.ckpt", &checkpoint, &err));
    ck_assert_str_eq(tfm_checkpoint_path(checkpoint), "a.ckpt");
    ck_assert_uint_eq(tfm_checkpoint_count(checkpoint), N_PARTS);
    for (size_t s = 0; s < N_PARTS; s++) {
        OK(tfm_checkpoint_at(checkpoint, s, &name, &data, &size, &err));
        ck_assert_str_eq(name, parts[s].name);
        ck_assert_uint_eq(size, parts[s].size);
        OK(tfm_checkpoint_find(checkpoint, parts[s].name, &data, &size, &err));
        ck_assert_uint_eq(size, parts[s].size);
        ck_assert_uint_eq((uintptr_t)data % TFM_CHECKPOINT_ALIGNMENT, 0);
        for (int again = 0; again < 2; again++) { /* also after a drop */
            for (size_t i = 0; i < size; i++)
                ck_assert_uint_eq(((const unsigned char *)data)[i], byte_of(3, s, i));
            tfm_checkpoint_drop(checkpoint, data, size);
        }
    }
    OK(tfm_checkpoint_at(checkpoint, 0, NULL, NULL, NULL, &err));
    ck_assert_int_eq(tfm_checkpoint_at(checkpoint, N_PARTS, &name, &data, &size, &err),
                     TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_checkpoint_find(checkpoint, "m:a", &data, &size, &err),
                     TFM_STATUS_NOT_FOUND);
    ck_assert_msg(strstr(err.text, "\"m:a\"") && strstr(err.text, "a.ckpt"), "%s", err.text);
}
END_TEST

/* Catches: a file that depends on how its bytes came, on the time, or on its name. */
START_TEST(equal_bytes)
{
    static unsigned char one[200000], two[200000];

    write_parts("a.ckpt", 3, N_PARTS, 0);
    const size_t size = read_file("a.ckpt", one, sizeof one);
    write_parts("last.ckpt", 3, N_PARTS, 7);
    ck_assert_uint_eq(read_file("last.ckpt", two, sizeof two), size);
    ck_assert(memcmp(one, two, size) == 0);
}
END_TEST

static unsigned char whole[4096];
static size_t whole_size;

/* A small file in `whole`. */
static void make_small(void)
{
    write_parts("a.ckpt", 1, 6, 0);
    whole_size = read_file("a.ckpt", whole, sizeof whole);
    ck_assert_uint_lt(whole_size, 1500);
}

static enum tfm_status open_mutant(size_t size)
{
    write_file("a.ckpt", mutant, size);
    err.text[0] = '\0';
    const enum tfm_status status = tfm_checkpoint_open("a.ckpt", &checkpoint, &err);
    ck_assert_msg(status == TFM_STATUS_OK || strstr(err.text, "a.ckpt: "), "%s", err.text);
    return status;
}

/* Every truncation, bytes more at the end, one bit of each byte changed: no byte of the file is free.
 * Catches: a file that is believed. */
START_TEST(damaged_files)
{
    make_small();
    memcpy(mutant, whole, sizeof whole);
    for (size_t size = 0; size < whole_size; size++)
        ck_assert_msg(open_mutant(size) == TFM_STATUS_FORMAT, "%zu bytes of %zu", size, whole_size);
    ck_assert_int_eq(open_mutant(whole_size + 1), TFM_STATUS_FORMAT);
    ck_assert_int_eq(open_mutant(whole_size + 64), TFM_STATUS_FORMAT);
    for (size_t at = 0; at < whole_size; at++) {
        mutant[at] ^= (unsigned char)(1u << at % 8);
        ck_assert_msg(open_mutant(whole_size) == TFM_STATUS_FORMAT, "byte %zu", at);
        mutant[at] = whole[at];
    }
    ck_assert_int_eq(open_mutant(whole_size), TFM_STATUS_OK);
}
END_TEST

static const uint64_t numbers[] = {0,
                                   1,
                                   2,
                                   7,
                                   63,
                                   64,
                                   65,
                                   255,
                                   256,
                                   4096,
                                   INT32_MAX,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   INT64_MAX,
                                   UINT64_MAX - 127,
                                   UINT64_MAX - 64,
                                   UINT64_MAX - 63,
                                   UINT64_MAX - 7,
                                   UINT64_MAX - 1,
                                   UINT64_MAX};

/* Each number of the table and the trailer set to numbers at which sums overflow, under checksums that agree.
 * Catches: a size that is believed because the checksum is right. */
START_TEST(numbers_that_lie)
{
    make_small();
    const size_t trailer = whole_size - 64;
    const size_t table = (size_t)tfm__le_load(whole + trailer, 8),
                 table_size = (size_t)tfm__le_load(whole + trailer + 8, 8);

    for (size_t at = table; at < trailer + 32; at += 8)
        for (size_t k = 0; k < 2 * sizeof numbers / sizeof *numbers; k++) {
            const uint64_t was = tfm__le_load(whole + at, 8), number = numbers[k / 2];
            memcpy(mutant, whole, sizeof whole);
            /* as it is, and off by so much */
            tfm__le_store(mutant + at, k % 2 ? was + number : number, 8);
            if (at >= table + table_size && at < trailer)
                continue;
            seal(whole_size);
            if (memcmp(mutant, whole, whole_size) == 0)
                continue;
            const enum tfm_status status = open_mutant(whole_size);
            /* of a name another one may be made */
            if (status == TFM_STATUS_OK) {
                const char *name = NULL;
                int changed = 0;
                for (size_t i = 0; i < tfm_checkpoint_count(checkpoint); i++) {
                    OK(tfm_checkpoint_at(checkpoint, i, &name, NULL, NULL, &err));
                    changed += strcmp(name, parts[i].name) != 0;
                }
                ck_assert_msg(changed == 1 && tfm_checkpoint_count(checkpoint) == 6,
                              "byte %zu, number %zu", at, k);
                tfm_checkpoint_close(checkpoint);
                checkpoint = NULL;
            } else {
                ck_assert_int_eq(status, TFM_STATUS_FORMAT);
            }
        }
}
END_TEST

/* Catches: a second section of a name, which a reader by name would never see; a version that is guessed at. */
START_TEST(well_formed_but_refused)
{
    make_small();
    memcpy(mutant, whole, sizeof whole);
    unsigned char *m = memmem(mutant, whole_size, "m:a.b", 5), *e;
    ck_assert_ptr_nonnull(m);
    e = memmem(mutant, whole_size, "empty", 5);
    ck_assert_ptr_nonnull(e);
    memcpy(e, "m:a.b", 5);
    seal(whole_size);
    ck_assert_int_eq(open_mutant(whole_size), TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, "two sections are named \"m:a.b\""), "%s", err.text);

    memcpy(mutant, whole, sizeof whole);
    mutant[8] = 2;
    seal(whole_size);
    ck_assert_int_eq(open_mutant(whole_size), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "version 2") && strstr(err.text, "version 1"), "%s", err.text);

    /* one bit of the data of a section: it is named */
    memcpy(mutant, whole, sizeof whole);
    ck_assert_uint_eq(mutant[64 + 64], byte_of(1, 1, 0));
    mutant[64 + 64] ^= 1;
    ck_assert_int_eq(open_mutant(whole_size), TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, "section \"counters\""), "%s", err.text);

    ck_assert_int_eq(tfm_checkpoint_open("nowhere.ckpt", &checkpoint, &err), TFM_STATUS_IO);
    ck_assert_int_eq(tfm_checkpoint_open(".", &checkpoint, &err), TFM_STATUS_IO);
    ck_assert_ptr_null(checkpoint);
}
END_TEST

/* Catches: a writer that takes what its reader refuses, or leaves something behind. */
START_TEST(writers_that_refuse)
{
    struct tfm_checkpoint_writer *writer = NULL;
    char name[TFM_CHECKPOINT_NAME_MAX + 2];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    OK(tfm_checkpoint_writer_create("a.ckpt", &writer, &err));
    ck_assert_int_eq(tfm_checkpoint_section(writer, "", "x", 1, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_checkpoint_section(writer, name, "x", 1, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    OK(tfm_checkpoint_section(writer, name + 1, "x", 1, &err));
    ck_assert_int_eq(tfm_checkpoint_section(writer, name + 1, "x", 1, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "there already"), "%s", err.text);
    OK(tfm_checkpoint_section_begin(writer, "two", 2, &err));
    ck_assert_int_eq(tfm_checkpoint_section_put(writer, "abc", 3, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    OK(tfm_checkpoint_section_put(writer, "a", 1, &err));
    ck_assert_int_eq(tfm_checkpoint_section_put(writer, "bc", SIZE_MAX, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_checkpoint_section(writer, "three", "x", 1, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "\"two\" has 1 of its 2 bytes"), "%s", err.text);
    ck_assert_int_eq(tfm_checkpoint_writer_finish(writer, &err), TFM_STATUS_INVALID_ARGUMENT);
    OK(tfm_checkpoint_section_put(writer, "b", 1, &err));
    OK(tfm_checkpoint_writer_finish(writer, &err));
    tfm_checkpoint_writer_destroy(writer);
    OK(tfm_checkpoint_open("a.ckpt", &checkpoint, &err));
    ck_assert_uint_eq(tfm_checkpoint_count(checkpoint), 2);

    OK(tfm_checkpoint_writer_create("last.ckpt", &writer, &err));
    OK(tfm_checkpoint_section(writer, "x", "x", 1, &err));
    tfm_checkpoint_writer_destroy(writer); /* never finished */
    ck_assert_int_ne(access("last.ckpt", F_OK), 0);
    ck_assert_int_eq(tfm_checkpoint_writer_create("./previous.ckpt", &writer, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_checkpoint_writer_create("/dev/null", &writer, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_checkpoint_writer_create(".", &writer, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_checkpoint_writer_create("nowhere/last.ckpt", &writer, &err),
                     TFM_STATUS_IO);
    ck_assert_msg(strstr(err.text, "nowhere/last.ckpt"), "%s", err.text);
}
END_TEST

/* Sums of xxhash 0.8.1 (`xxhsum -H1`) for the first bytes of 0, 1, 2, ...
 * Catches: a checksum that is ours alone, so that no other program can check a file. */
START_TEST(known_sums)
{
    static const struct {
        size_t size;
        uint64_t sum;
    } want[] = {
        {0, UINT64_C(0xef46db3751d8e999)},   {1, UINT64_C(0xe934a84adb052768)},
        {3, UINT64_C(0xe5c7bb4533bc65dd)},   {4, UINT64_C(0xffced8604453cc1e)},
        {5, UINT64_C(0xdd0274386e26030c)},   {8, UINT64_C(0x884a173614b81b8d)},
        {12, UINT64_C(0x424af23f1f08dca5)},  {31, UINT64_C(0xc346d2b59b4d8ee1)},
        {32, UINT64_C(0xcbf59c5116ff32b4)},  {33, UINT64_C(0x0c535d1acafb8ead)},
        {63, UINT64_C(0xe26aa9e2a95f8e4f)},  {64, UINT64_C(0xf7c67301db6713f0)},
        {100, UINT64_C(0x6ac1e58032166597)}, {255, UINT64_C(0x0f7d97507caad693)},
    };
    unsigned char bytes[256];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        ck_assert_uint_eq(tfm__xxh64_of(bytes, want[k].size), want[k].sum);
        for (size_t cut = 0; cut <= want[k].size; cut++) {
            struct tfm__xxh64 sum;
            tfm__xxh64_init(&sum);
            tfm__xxh64_add(&sum, bytes, cut);
            tfm__xxh64_add(&sum, bytes + cut, want[k].size - cut);
            ck_assert_uint_eq(tfm__xxh64_result(&sum), want[k].sum);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tcase = tests_case(suite, "checkpoint");

    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_loop_test(tcase, what_is_written, 0, (int)(sizeof pieces / sizeof *pieces));
    tcase_add_test(tcase, equal_bytes);
    tcase_add_test(tcase, damaged_files);
    tcase_add_test(tcase, numbers_that_lie);
    tcase_add_test(tcase, well_formed_but_refused);
    tcase_add_test(tcase, writers_that_refuse);
    tcase_add_test(tcase, known_sums);
    return tests_run(suite);
}
