/* SPDX-License-Identifier: MIT
 * A folder of a test's own, which the test stands in and leaves empty. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <check.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_folder[] = "test-XXXXXX";

static inline void folder_enter(void)
{
    ck_assert_ptr_nonnull(mkdtemp(test_folder));
    ck_assert_int_eq(chdir(test_folder), 0);
}

/* Takes away what the test may have made, files and then the folders that they lay in; anything else is a fault. */
static inline void folder_leave(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)remove(names[i]);
    ck_assert_int_eq(chdir(".."), 0);
    ck_assert_msg(rmdir(test_folder) == 0, "something was left behind: %s", strerror(errno));
}

#endif
