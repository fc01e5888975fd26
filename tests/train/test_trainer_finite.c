/* SPDX-License-Identifier: MIT
 * The trainer names what is not finite, keeps it out of checkpoints and exports, and is healed by a good checkpoint. */
#include "tests/train/trainer_scene.h"

/* Catches: a NaN that is saved, or blamed on nobody. */
START_TEST(what_is_not_finite_is_named)
{
    static const int64_t shape[] = {16};
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer_report report;
    struct tfm_weights *weights = NULL, *copies = NULL;
    struct tfm_error err = STALE;
    float gamma[16];

    for (int i = 0; i < 16; i++)
        gamma[i] = i == 9 ? NAN : 1;
    ok(tfm_weights_create(&weights, &err), &err);
    ok(tfm_weights_set(weights, "blk.1.ffn_norm.weight", TFM_DTYPE_F32, 1, shape, gamma,
                       sizeof gamma, &err),
       &err);
    struct tfm_trainer *trainer = create(&s, weights);
    tfm_weights_release(weights);
    ck_assert_int_ne(tfm_trainer_step(trainer, &report, &err), TFM_STATUS_OK);
    ck_assert_msg(strstr(err.text, "step 1") && strstr(err.text, "blk.1.ffn_norm.weight"), "%s",
                  err.text);
    ck_assert_int_ne(tfm_trainer_step(trainer, &report, &err), TFM_STATUS_OK);
    ck_assert_ptr_nonnull(strstr(err.text, "checkpoint"));
    ck_assert_int_ne(tfm_trainer_save(trainer, "last.ckpt", &err), TFM_STATUS_OK);
    ck_assert_int_ne(access("last.ckpt", F_OK), 0);
    ck_assert_int_ne(tfm_trainer_weights(trainer, &copies, &err), TFM_STATUS_OK);
    tfm_trainer_destroy(trainer);
}
END_TEST

/* Catches: an overflow inside of a layer, whose parameters are all finite, that is blamed on the loss or on what comes behind
 * it. The gate's and the other half's 1e25 meet in the product. */
START_TEST(what_overflows_is_named)
{
    static const int64_t shape[] = {24, 16};
    static const char *const names[] = {"blk.1.ffn.gate.weight", "blk.1.ffn.up.weight"};
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer_report report;
    struct tfm_weights *weights = NULL;
    struct tfm_error err = STALE;
    float values[24 * 16];

    for (int i = 0; i < 24 * 16; i++)
        values[i] = i % 16 ? 0 : 1e25f;
    ok(tfm_weights_create(&weights, &err), &err);
    for (int i = 0; i < 2; i++)
        ok(tfm_weights_set(weights, names[i], TFM_DTYPE_F32, 2, shape, values, sizeof values, &err),
           &err);
    struct tfm_trainer *trainer = create(&s, weights);
    tfm_weights_release(weights);
    ck_assert_int_ne(tfm_trainer_step(trainer, &report, &err), TFM_STATUS_OK);
    ck_assert_msg(strstr(err.text, "step 1") && strstr(err.text, "\"blk.1.ffn.swiglu"), "%s",
                  err.text);
    tfm_trainer_destroy(trainer);
}
END_TEST

/* Catches: a trainer that stays useless though a good checkpoint was loaded, or goes on with what broke it. */
START_TEST(a_checkpoint_heals)
{
    static const int64_t shape[] = {16};
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer *good = create(&s, NULL);
    struct tfm_trainer_report report;
    struct tfm_weights *weights = NULL;
    struct tfm_error err = STALE;
    float gamma[16] = {NAN};

    step(good);
    save(good);
    ok(tfm_weights_create(&weights, &err), &err);
    ok(tfm_weights_set(weights, "output_norm.weight", TFM_DTYPE_F32, 1, shape, gamma, sizeof gamma,
                       &err),
       &err);
    struct tfm_trainer *broken = create(&s, weights);
    tfm_weights_release(weights);
    ck_assert_int_ne(tfm_trainer_step(broken, &report, &err), TFM_STATUS_OK);
    ck_assert_int_ne(tfm_trainer_step(broken, &report, &err), TFM_STATUS_OK);
    ok(load(broken, &err), &err);
    for (int i = 0; i < 3; i++) {
        const double want = step(good).loss, loss = step(broken).loss;
        ck_assert_msg(memcmp(&want, &loss, sizeof loss) == 0, "step %d: %.17g, not %.17g", i + 2,
                      loss, want);
    }
    tfm_trainer_destroy(good);
    tfm_trainer_destroy(broken);
}
END_TEST

/* What step 1 makes of a matrix whose decay is five times its value: a value that nobody looks at, since its unit is
 * asleep, leaves the range of F32 while the loss and all gradients are finite. */
static struct tfm_trainer *create_growing(void)
{
    static const int64_t bias_shape[] = {24}, down_shape[] = {16, 24};
    struct tfm_trainer_settings s = settings();
    struct tfm_nn_decoder model = decoder();
    struct tfm_weights *weights = NULL;
    struct tfm_error err = STALE;
    float bias[24] = {[5] = -1e6f}, down[16 * 24];

    for (int i = 0; i < 16 * 24; i++)
        down[i] = i == 5 ? 1e38f : .01f * (float)(i % 7 - 3);
    model.ffn = TFM_NN_FFN_RELU;
    model.each.up_bias = 1;
    s.warmup = 0;
    s.rate = .05;
    s.weight_decay = 100;
    ok(tfm_weights_create(&weights, &err), &err);
    ok(tfm_weights_set(weights, "blk.0.ffn.up.bias", TFM_DTYPE_F32, 1, bias_shape, bias,
                       sizeof bias, &err),
       &err);
    ok(tfm_weights_set(weights, "blk.0.ffn.down.weight", TFM_DTYPE_F32, 2, down_shape, down,
                       sizeof down, &err),
       &err);
    struct tfm_trainer *trainer = create_of(&model, &s, weights);
    tfm_weights_release(weights);
    return trainer;
}

/* Catches: parameters that are infinite in the checkpoint that the training is to go on from, or in the model that is
 * exported. */
START_TEST(what_is_not_finite_is_not_saved)
{
    struct tfm_trainer *trainer = create_growing();
    struct tfm_trainer_report report;
    struct tfm_weights *copies = NULL;
    struct tfm_error err = STALE;

    save(trainer);
    ck_assert(isfinite(step(trainer).loss));
    ck_assert_int_eq(tfm_trainer_save(trainer, "last.ckpt", &err), TFM_STATUS_BACKEND);
    ck_assert_msg(strstr(err.text, "step 1") && strstr(err.text, "\"blk.0.ffn.down.weight\"") &&
                      strstr(err.text, "last.ckpt"),
                  "%s", err.text);
    /* nothing else of it gets out */
    ck_assert_int_ne(tfm_trainer_step(trainer, &report, &err), TFM_STATUS_OK);
    ck_assert_int_ne(tfm_trainer_weights(trainer, &copies, &err), TFM_STATUS_OK);
    /* and the last good one is there, alone */
    ck_assert_int_ne(access("previous.ckpt", F_OK), 0);
    ok(load(trainer, &err), &err);
    ck_assert_uint_eq(tfm_trainer_steps(trainer), 0);
    ck_assert(isfinite(evaluate(trainer)));
    tfm_trainer_destroy(trainer);
}
END_TEST

/* Catches: an export after a step that nobody has saved. */
START_TEST(what_is_not_finite_is_not_exported)
{
    struct tfm_trainer *trainer = create_growing();
    struct tfm_weights *copies = NULL;
    struct tfm_error err = STALE;

    step(trainer);
    ck_assert_int_eq(tfm_trainer_weights(trainer, &copies, &err), TFM_STATUS_BACKEND);
    ck_assert_msg(strstr(err.text, "\"blk.0.ffn.down.weight\"") != NULL, "%s", err.text);
    ck_assert_ptr_null(copies);
    tfm_trainer_destroy(trainer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer_finite");
    TCase *tcase = tests_case(suite, "trainer_finite");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, what_is_not_finite_is_named);
    tcase_add_test(tcase, what_overflows_is_named);
    tcase_add_test(tcase, a_checkpoint_heals);
    tcase_add_test(tcase, what_is_not_finite_is_not_saved);
    tcase_add_test(tcase, what_is_not_finite_is_not_exported);
    return tests_run(suite);
}
