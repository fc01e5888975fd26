/* SPDX-License-Identifier: MIT
 * Faults caught: an error text that overwrites the first one, a prefix that overflows or loses the text,
 * a status without a name. */
#include <check.h>
#include <string.h>

#include <tfm/status.h>

#include "tests/core/runner.h"

START_TEST(first_error_wins)
{
    struct tfm_error err = {0};
    ck_assert_int_eq(tfm_error_set(&err, TFM_STATUS_SHAPE, "one %d", 1), TFM_STATUS_SHAPE);
    ck_assert_int_eq(tfm_error_set(&err, TFM_STATUS_IO, "two"), TFM_STATUS_IO);
    ck_assert_int_eq(err.status, TFM_STATUS_SHAPE);
    ck_assert_str_eq(err.text, "one 1");
    tfm_error_prefix(&err, "blk.%d", 3);
    ck_assert_str_eq(err.text, "blk.3: one 1");
    tfm_error_clear(&err);
    ck_assert_int_eq(err.status, TFM_STATUS_OK);
    ck_assert_str_eq(err.text, "");
}
END_TEST

START_TEST(null_is_accepted)
{
    ck_assert_int_eq(tfm_error_set(NULL, TFM_STATUS_IO, "x"), TFM_STATUS_IO);
    tfm_error_prefix(NULL, "x");
    tfm_error_clear(NULL);
}
END_TEST

START_TEST(long_texts_are_cut)
{
    struct tfm_error err = {0};
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tfm_error_set(&err, TFM_STATUS_IO, "%s", text);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    tfm_error_prefix(&err, "front");
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_int_eq(strncmp(err.text, "front: xxx", 10), 0);
    tfm_error_prefix(&err, "%s", text);
    ck_assert_uint_lt(strlen(err.text), sizeof err.text);
}
END_TEST

START_TEST(every_status_has_name_and_text)
{
#define TFM_STATUS(id, NAME, text)                               \
    ck_assert_str_eq(tfm_status_name(TFM_STATUS_##NAME), #NAME); \
    ck_assert_str_ne(tfm_status_text(TFM_STATUS_##NAME), "unknown status");
#include <tfm/status.def>
#undef TFM_STATUS
    ck_assert_str_eq(tfm_status_text((enum tfm_status)9999), "unknown status");
    ck_assert_str_eq(tfm_status_name((enum tfm_status)9999), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("status");
    TCase *tcase = tests_case(suite, "status");
    tcase_add_test(tcase, first_error_wins);
    tcase_add_test(tcase, null_is_accepted);
    tcase_add_test(tcase, long_texts_are_cut);
    tcase_add_test(tcase, every_status_has_name_and_text);
    return tests_run(suite);
}
