/* SPDX-License-Identifier: MIT
 * Settings of training that a caller of the library makes wrong; those of a file are in tests/tools/test_inspect.sh. */
#include <check.h>
#include <math.h>
#include <string.h>

#include <tfm/llm.h>

static const struct tfm_nn_decoder layers = {.positions = 64};

static struct tfm_trainer_settings good(void)
{
    struct tfm_trainer_settings settings;

    tfm_trainer_settings_defaults(&settings);
    settings.length = 64;
    settings.sequences = 2;
    settings.steps = 10;
    settings.rate = 1e-3;
    return settings;
}

/* Catches: a default that is lost or lands in another field. */
START_TEST(defaults)
{
    struct tfm_trainer_settings s;
    struct tfm_error err = {0};

    memset(&s, 0xff, sizeof s);
    tfm_trainer_settings_defaults(&s);
    ck_assert_int_eq(s.length, 0);
    ck_assert_int_eq(s.accumulate, 1);
    ck_assert_double_eq(s.beta1, .9);
    ck_assert_double_eq(s.beta2, .95);
    ck_assert_double_eq(s.adam_eps, 1e-8);
    ck_assert_double_eq(s.weight_decay, .1);
    ck_assert_double_eq(s.clip, 1);
    ck_assert_double_eq(s.embedding_rate, 1);
    ck_assert_double_eq(s.held_out, .05);
    ck_assert_int_eq(s.seed, 1);
    ck_assert_int_eq(s.compute, TFM_DTYPE_F32);
    ck_assert_int_eq(s.recompute, 0);
    ck_assert_int_eq(tfm_trainer_settings_check(&s, &layers, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_ptr_nonnull(strstr(err.text, "\"length\" is 0"));
    s = good();
    ck_assert_int_eq(tfm_trainer_settings_check(&s, &layers, &err), TFM_STATUS_OK);
}
END_TEST

#define FIELD(name) offsetof(struct tfm_trainer_settings, name)
static const struct {
    size_t real; /* offset of a double */
    double value;
    const char *says;
} reals[] = {
    {FIELD(rate), NAN, "\"rate\" is nan"},
    {FIELD(rate), INFINITY, "\"rate\" is inf"},
    {FIELD(rate), -1e-3, "\"rate\" is -0.001"},
    {FIELD(final_rate), NAN, "\"final_rate\" is nan"},
    {FIELD(final_rate), 1, "above the \"rate\", 0.001"},
    {FIELD(beta1), 1, "\"beta1\" is 1"},
    {FIELD(clip), NAN, "\"clip\" is nan"},
    {FIELD(weight_decay), -1, "\"weight_decay\" is -1"},
    {FIELD(held_out), NAN, "\"held_out\" is nan"},
};

/* Catches: a comparison that NaN passes. */
START_TEST(wrong_reals)
{
    struct tfm_trainer_settings s = good();
    struct tfm_error err = {0};

    memcpy((char *)&s + reals[_i].real, &reals[_i].value, sizeof reals[_i].value);
    ck_assert_int_eq(tfm_trainer_settings_check(&s, &layers, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_msg(strstr(err.text, reals[_i].says) != NULL, "%s", err.text);
}
END_TEST

/* Catches: counts that wrap when they are multiplied, a storage without a trainer. */
START_TEST(wrong_counts)
{
    struct tfm_nn_decoder long_context = {.positions = 1 << 24};
    struct tfm_trainer_settings s = good();
    struct tfm_error err = {0};

    s.length = 1 << 24;
    s.sequences = 1 << 20;
    ck_assert_int_eq(tfm_trainer_settings_check(&s, &long_context, &err), TFM_STATUS_OUT_OF_RANGE);
    s = good();
    s.steps = INT64_MIN;
    ck_assert_int_eq(tfm_trainer_settings_check(&s, &layers, &err), TFM_STATUS_OUT_OF_RANGE);
    s = good();
    s.compute = TFM_DTYPE_Q8_0;
    ck_assert_int_eq(tfm_trainer_settings_check(&s, &layers, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_ptr_nonnull(strstr(err.text, "q8_0"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_settings");
    TCase *tcase = tcase_create("train_settings");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, defaults);
    tcase_add_loop_test(tcase, wrong_reals, 0, (int)(sizeof reals / sizeof *reals));
    tcase_add_test(tcase, wrong_counts);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
