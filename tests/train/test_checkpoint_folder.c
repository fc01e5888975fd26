/* SPDX-License-Identifier: MIT
 * A folder keeps the last two checkpoints; of them the newest whole one is taken, with a word; what is left over goes. */
#include "tests/train/checkpoint_scene.h"

static int generation(void)
{
    const void *data = NULL;
    size_t size = 0;

    OK(tfm_checkpoint_find(checkpoint, "config", &data, &size, &err));
    for (int g = 0; g < 100; g++)
        if (size == parts[0].size && *(const unsigned char *)data == byte_of(g, 0, 0))
            return g;
    return -1;
}

/* Catches: a link that is followed and replaced elsewhere, rights that are lost, a third file that is kept. */
START_TEST(the_last_two)
{
    struct tfm_error over = {0};
    struct stat facts;

    ck_assert_int_eq(tfm_checkpoint_open_latest(".", &checkpoint, &over, &err),
                     TFM_STATUS_NOT_FOUND);
    ck_assert_int_eq(tfm_checkpoint_open_latest("nowhere", &checkpoint, &over, &err),
                     TFM_STATUS_NOT_FOUND);
    for (int g = 1; g <= 3; g++) {
        write_parts("last.ckpt", g, 3, 0);
        ck_assert_int_eq(chmod("last.ckpt", 0640), 0);
        OK(tfm_checkpoint_open_latest("./", &checkpoint, &over, &err));
        ck_assert_int_eq(generation(), g);
        ck_assert_int_eq(over.status, TFM_STATUS_OK);
        tfm_checkpoint_close(checkpoint);
        checkpoint = NULL;
        if (g == 1) {
            ck_assert_int_ne(access("previous.ckpt", F_OK), 0);
            continue;
        }
        OK(tfm_checkpoint_open("previous.ckpt", &checkpoint, &err));
        ck_assert_int_eq(generation(), g - 1);
        tfm_checkpoint_close(checkpoint);
        checkpoint = NULL;
    }
    ck_assert_int_eq(stat("last.ckpt", &facts), 0);
    ck_assert_int_eq(facts.st_mode & 0777, 0640);

    ck_assert_int_eq(rename("last.ckpt", "a.ckpt"), 0);
    ck_assert_int_eq(symlink("a.ckpt", "last.ckpt"), 0);
    write_parts("last.ckpt", 4, 3, 0);
    OK(tfm_checkpoint_open("a.ckpt", &checkpoint, &err));
    ck_assert_int_eq(generation(), 3); /* the link went, its file did not */
    tfm_checkpoint_close(checkpoint);
    checkpoint = NULL;
    ck_assert_int_eq(lstat("last.ckpt", &facts), 0);
    ck_assert(S_ISREG(facts.st_mode));
    OK(tfm_checkpoint_open("previous.ckpt", &checkpoint, &err));
    ck_assert_int_eq(generation(), 3);
}
END_TEST

/* Two names of one file, of which a rename does nothing. Catches: a third name that stays for ever. */
START_TEST(linked_by_hand)
{
    write_parts("last.ckpt", 1, 3, 0);
    ck_assert_int_eq(link("last.ckpt", "previous.ckpt"), 0);
    write_parts("last.ckpt", 2, 3, 0);
    OK(tfm_checkpoint_open("previous.ckpt", &checkpoint, &err));
    ck_assert_int_eq(generation(), 1);
}
END_TEST

enum fate { WHOLE, MISSING, SHORT, FLIPPED, OTHER_VERSION };

static const struct {
    enum fate last, previous;
    enum tfm_status status;
    int generation;
    const char *text; /* in what is said of the one passed over, or of the failure */
} fates[] = {
    {WHOLE, WHOLE, TFM_STATUS_OK, 2, NULL},
    {WHOLE, FLIPPED, TFM_STATUS_OK, 2, NULL},
    {MISSING, WHOLE, TFM_STATUS_OK, 1, "last.ckpt: is missing; going on from ./previous.ckpt"},
    {SHORT, WHOLE, TFM_STATUS_OK, 1, "cut off or never finished"},
    {FLIPPED, WHOLE, TFM_STATUS_OK, 1, "going on from ./previous.ckpt, the one before it"},
    {FLIPPED, MISSING, TFM_STATUS_FORMAT, 0, "previous.ckpt: is missing"},
    {FLIPPED, SHORT, TFM_STATUS_FORMAT, 0, "previous.ckpt: has no trailer"},
    {MISSING, FLIPPED, TFM_STATUS_FORMAT, 0, "previous.ckpt: section"},
    /* it may be the newest: nothing older is taken behind its back */
    {OTHER_VERSION, WHOLE, TFM_STATUS_UNSUPPORTED, 0, "version 9"},
};

static void give_fate(const char *path, enum fate fate)
{
    const size_t size = read_file(path, mutant, sizeof mutant);

    if (fate == MISSING)
        ck_assert_int_eq(unlink(path), 0);
    mutant[70] ^= fate == FLIPPED;
    if (fate == OTHER_VERSION) {
        mutant[8] = 9;
        seal(size);
    }
    if (fate != MISSING)
        write_file(path, mutant, fate == SHORT ? size - 10 : size);
}

/* Catches: a damaged file that is taken, an older one that is taken in silence, a fresh start over damaged files. */
START_TEST(the_newest_whole_one)
{
    struct tfm_error over = {0};

    write_parts("last.ckpt", 1, 3, 0);
    write_parts("last.ckpt", 2, 3, 0);
    give_fate("last.ckpt", fates[_i].last);
    give_fate("previous.ckpt", fates[_i].previous);
    ck_assert_int_eq(tfm_checkpoint_open_latest(".", &checkpoint, &over, &err), fates[_i].status);
    if (fates[_i].status == TFM_STATUS_OK) {
        ck_assert_int_eq(generation(), fates[_i].generation);
        ck_assert_int_eq(over.text[0] != '\0', fates[_i].text != NULL);
        if (fates[_i].text)
            ck_assert_msg(strstr(over.text, fates[_i].text), "%s", over.text);
        /* the next save: a file that is cut off does not push the good one out */
        write_parts("last.ckpt", 3, 3, 0);
        tfm_checkpoint_close(checkpoint);
        checkpoint = NULL;
        OK(tfm_checkpoint_open_latest(".", &checkpoint, &over, &err));
        ck_assert_int_eq(generation(), 3);
        if (fates[_i].last == SHORT || fates[_i].last == MISSING) {
            tfm_checkpoint_close(checkpoint);
            checkpoint = NULL;
            OK(tfm_checkpoint_open("previous.ckpt", &checkpoint, &err));
            ck_assert_int_eq(generation(), 1);
        }
    } else {
        ck_assert_ptr_null(checkpoint);
        ck_assert_msg(strstr(err.text, fates[_i].text), "%s", err.text);
    }
}
END_TEST

/* Catches: left-over files that pile up, and one of somebody who still writes it taken away. */
START_TEST(left_over_files)
{
    struct tfm_checkpoint_writer *one = NULL;

    write_file(".tfm-1-0", mutant, 100);
    write_file(".tfm-1-0-old", mutant, 100);
    write_file(".tfm-x-0", mutant, 100); /* not ours */
    OK(tfm_checkpoint_writer_create("last.ckpt", &one, &err));
    write_parts("a.ckpt", 1, 3, 0); /* the second writer leaves the file of the first alone */
    OK(tfm_checkpoint_section(one, "x", "x", 1, &err));
    OK(tfm_checkpoint_writer_finish(one, &err));
    tfm_checkpoint_writer_destroy(one);
    ck_assert_int_ne(access(".tfm-1-0", F_OK), 0);
    ck_assert_int_ne(access(".tfm-1-0-old", F_OK), 0);
    ck_assert_int_eq(access(".tfm-x-0", F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint_folder");
    TCase *tcase = tests_case(suite, "checkpoint_folder");

    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_test(tcase, the_last_two);
    tcase_add_test(tcase, linked_by_hand);
    tcase_add_loop_test(tcase, the_newest_whole_one, 0, (int)(sizeof fates / sizeof *fates));
    tcase_add_test(tcase, left_over_files);
    return tests_run(suite);
}
