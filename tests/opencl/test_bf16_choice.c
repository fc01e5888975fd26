/* SPDX-License-Identifier: MIT
 * When weights are multiplied as bf16, and how: what the words of TFM_ACT mean, and that a way that is wrong is not taken. */
#include "tests/opencl/act_scene.h"

static const char always[] =
    TFM__CL_MATRIX_OPTIONS " -DTFM_BF16_WAY=0"; /* the way that needs no bf16 of the processor */

/* A device that is asked for bf16 is not opened, and the error says what to do; with auto it is, and computes f32. */
static void is_refused(const char *way_out)
{
    struct test_devices d;
    struct tfm_error err = {0};

    setenv("TFM_ACT", "bf16", 1);
    ck_assert_int_eq(parts_try(&d, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, way_out), "%s", err.text);
    test_devices_close(&d);
    memset(&err, 0, sizeof err);
    setenv("TFM_ACT", "auto", 1);
    ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm__cl_bf16_is_on(parts_handle(&d)), 0);
    test_devices_close(&d);
    unsetenv("TFM_ACT");
}

/* Fault: the proof looks away from sums or from rounding. */
START_TEST(a_wrong_way_is_not_taken)
{
    static const char *const spoils[][2] = {
        {"vstore16(acc, 0, y)", "vstore16(acc + 1, 0, y)"},
        {"vstore16(tfm_bf16_round(vload16(i, f)), i, g)",
         "vstore16(as_uint16(vload16(i, f)) >> 16, i, g)"},
    };

    spoil("bf16.cl", spoils[_i][0], spoils[_i][1]);
    is_refused("TFM_ACT=f32");
    unspoil();
}
END_TEST

/* Fault: with bf16 the way that always goes is not tried. */
START_TEST(plain_arithmetic_when_nothing_else_is_right)
{
    struct test_devices d;
    struct tfm_error err = {0};

    spoil("bf16.cl", "^    return acc;", "    return acc + 1;");
    setenv("TFM_ACT", "bf16", 1);
    ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_str_eq(parts_handle(&d)->settings.bf16_options, always);
    test_devices_close(&d);
    unspoil();
    unsetenv("TFM_ACT");
}
END_TEST

/* Fault: a word has another's meaning, `auto` is slow, f32 rounds. */
START_TEST(the_words)
{
    static const struct {
        const char *word;
        int opened; /* what the device has when it is open */
    } words[] = {{NULL, TFM__CL_BF16_FAST},
                 {"auto", TFM__CL_BF16_FAST},
                 {"int8", TFM__CL_BF16_FAST},
                 {"f32", TFM__CL_BF16_OFF},
                 {"bf16", TFM__CL_BF16_ON}};
#if defined(__x86_64__)
    const int fast = __builtin_cpu_supports("avx512bf16") != 0;
#else
    const int fast = 0;
#endif

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct test_devices d;
        struct tfm_error err = {0};
        if (words[i].word)
            setenv("TFM_ACT", words[i].word, 1);
        else
            unsetenv("TFM_ACT");
        ck_assert_msg(parts_try(&d, &err) == TFM_STATUS_OK, "%s", err.text);
        ck_assert_int_eq(parts_handle(&d)->settings.bf16, words[i].opened);
        ck_assert_int_eq(
            tfm__cl_bf16_is_on(parts_handle(&d)),
            words[i].opened == TFM__CL_BF16_FAST ? fast : words[i].opened != TFM__CL_BF16_OFF);
        test_devices_close(&d);
    }
    unsetenv("TFM_ACT");
}
END_TEST

/* Fault: bf16 is said, and f32 computed. */
START_TEST(the_group_shape_has_none)
{
    setenv("TFM_OPENCL_SHAPE", "group", 1);
    is_refused("TFM_OPENCL_SHAPE=wide");
    unsetenv("TFM_OPENCL_SHAPE");
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("bf16_choice");
    TCase *tcase = tests_case(suite, "bf16_choice");
    tcase_add_loop_test(tcase, a_wrong_way_is_not_taken, 0, 2);
    tcase_add_test(tcase, plain_arithmetic_when_nothing_else_is_right);
    tcase_add_test(tcase, the_words);
    tcase_add_test(tcase, the_group_shape_has_none);
    return tests_run(suite);
}
