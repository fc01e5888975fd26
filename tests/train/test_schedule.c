/* SPDX-License-Identifier: MIT
 * The rate of each step. */
#include <check.h>

#include <tfm/schedule.h>

/* Fault: the warm-up begins at 0 or ends a step late, the cosine begins or ends elsewhere, the rate jumps where both
 * meet or goes on falling at the end, a schedule that is all warm-up or has none divides by zero. */
START_TEST(rates)
{
    static const struct {
        struct tfm_schedule schedule;
        uint64_t step;
        double rate;
    } cases[] = {
        {{8, 2, 4, 12}, 0, 2},
        {{8, 2, 4, 12}, 1, 4},
        {{8, 2, 4, 12}, 3, 8},
        {{8, 2, 4, 12}, 4, 8},
        {{8, 2, 4, 12}, 6, 7.12132034355964}, /* 2 + 3 (1 + sqrt(1/2)) */
        {{8, 2, 4, 12}, 8, 5},
        {{8, 2, 4, 12}, 10, 2.87867965644036},
        {{8, 2, 4, 12}, 12, 2},
        {{8, 2, 4, 12}, 13, 2},
        {{8, 2, 4, 12}, UINT64_MAX, 2},
        {{8, 2, 0, 2}, 0, 8},
        {{8, 2, 0, 2}, 1, 5},
        {{8, 2, 0, 2}, 2, 2},
        {{8, 8, 0, 10}, 5, 8},
        {{8, 0, 0, 0}, 0, 0},
        {{8, 1, 5, 5}, 4, 8},
        {{8, 1, 5, 5}, 5, 1},
        {{8, 1, 6, 3}, 4, 8 * 5.0 / 6},
        {{8, 1, 6, 3}, 6, 1},
        {{0, 0, 3, 9}, 5, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double got = tfm_schedule_rate(&cases[i].schedule, cases[i].step);
        ck_assert_msg(got >= cases[i].rate - 1e-12 && got <= cases[i].rate + 1e-12,
                      "case %zu: %.15g instead of %.15g", i, got, cases[i].rate);
    }
}
END_TEST

/* Fault: it rises after the warm-up, or leaves the two rates. */
START_TEST(falls_after_the_warm_up)
{
    const struct tfm_schedule schedule = {3e-4, 3e-5, 100, 1000};
    double last = tfm_schedule_rate(&schedule, 99);

    ck_assert_double_eq(last, 3e-4);
    for (uint64_t step = 100; step < 1100; step++) {
        const double rate = tfm_schedule_rate(&schedule, step);
        ck_assert(rate <= last && rate >= 3e-5);
        last = rate;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("schedule");
    SRunner *runner = srunner_create(suite);

    tcase_add_test(tcase, rates);
    tcase_add_test(tcase, falls_after_the_warm_up);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
