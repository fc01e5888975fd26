/* SPDX-License-Identifier: MIT
 * The trainer on the reference: it learns, goes on from a checkpoint with the same bits, and refuses one of other
 * settings. What is not finite: test_trainer_finite.c. */
#include "tests/train/trainer_scene.h"

/* Catches: gradients that do not reach the parameters, or plans that do not see what the update changed. */
START_TEST(it_learns)
{
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer *trainer = create(&s, NULL);
    const double chance = log(VOCAB), before = evaluate(trainer);

    ck_assert_double_lt(fabs(before - chance), 0.2);
    for (uint64_t i = 1; i <= 40; i++) {
        const struct tfm_trainer_report report = step(trainer);
        ck_assert_uint_eq(report.step, i);
        ck_assert_uint_eq(report.tokens, 2 * 3 * LENGTH);
        ck_assert(report.norm > 0 && report.clipped > 0 && report.clipped <= 1);
    }
    ck_assert_uint_eq(tfm_trainer_tokens(trainer), 40 * 2 * 3 * LENGTH);
    const double after = evaluate(trainer);
    ck_assert_msg(after < 0.6 * chance, "%g, then %g", before, after);
    ck_assert(evaluate(trainer) <= after && evaluate(trainer) >= after); /* it changes nothing */
    tfm_trainer_destroy(trainer);
}
END_TEST

struct text {
    int32_t ids[LENGTH];
    size_t n;
};

static int take(void *context, int32_t id)
{
    struct text *text = context;
    text->ids[text->n++] = id;
    return 0;
}

static struct text write_on(struct tfm_trainer *trainer)
{
    const struct tfm_sampler_options greedy = {.top_p = 1};
    const int32_t prompt[] = {2, 7};
    struct text text = {.n = 0};
    struct tfm_error err = STALE;

    ok(tfm_trainer_sample(trainer, &greedy, prompt, 2, 100, take, &text, &err), &err);
    return text;
}

/* Catches: a sampling plan that has parameters of its own, or keeps what it read of them at first. */
START_TEST(samples_follow_the_training)
{
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer *trainer = create(&s, NULL);

    (void)write_on(trainer);
    for (int i = 0; i < 40; i++)
        step(trainer);
    const struct text text = write_on(trainer);
    ck_assert_uint_eq(text.n, LENGTH - 2 + 1); /* the last one needs no place */
    /* 7 -> 7 * 3 + 1 = 0 mod 11 -> 1 -> 4 -> 2 ... */
    const int32_t want[] = {0, 1, 4};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(text.ids[i], want[i]);
    tfm_trainer_destroy(trainer);
}
END_TEST

/* Catches: a variable, the step, the place in the data or the bias correction that a checkpoint does not hold. */
START_TEST(a_checkpoint_goes_on_with_the_same_bits)
{
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer *whole = create(&s, NULL), *second;
    double losses[12];
    struct tfm_error err = STALE;

    for (int i = 0; i < 6; i++)
        step(whole);
    save(whole);
    for (int i = 0; i < 12; i++)
        losses[i] = step(whole).loss;
    second = create(&s, NULL);
    step(second); /* what it did before does not matter */
    ok(load(second, &err), &err);
    ck_assert_uint_eq(tfm_trainer_steps(second), 6);
    for (int i = 0; i < 12; i++) {
        const double loss = step(second).loss;
        ck_assert_msg(memcmp(&loss, &losses[i], sizeof loss) == 0, "step %d: %.17g, not %.17g",
                      i + 7, loss, losses[i]);
    }
    tfm_trainer_destroy(whole);
    tfm_trainer_destroy(second);
}
END_TEST

/* Settings that the next step depends on, and one that it does not. */
static const struct {
    const char *says;
    int changes;
} differences[] = {{"setting rate: 0.02", 0},
                   {"setting seed: 1", 1},
                   {"setting beta2", 2},
                   {"setting accumulate: 2", 3},
                   {NULL, 4}};

START_TEST(another_configuration_is_refused)
{
    struct tfm_trainer_settings s = settings();
    struct tfm_trainer *trainer = create(&s, NULL);
    struct tfm_error err = STALE;

    step(trainer);
    save(trainer);
    tfm_trainer_destroy(trainer);
    switch (differences[_i].changes) {
    case 0:
        s.rate = 3e-2;
        break;
    case 1:
        s.seed = 2;
        break;
    case 2:
        s.beta2 = 0.99;
        break;
    case 3:
        s.accumulate = 1;
        break;
    default:
        s.save_every = 7;
        break;
    }
    trainer = create(&s, NULL);
    const double before = evaluate(trainer);
    const enum tfm_status status = load(trainer, &err);
    if (!differences[_i].says) {
        ok(status, &err);
    } else {
        ck_assert_int_eq(status, TFM_STATUS_INVALID_ARGUMENT);
        ck_assert_msg(strstr(err.text, differences[_i].says) != NULL, "%s", err.text);
        const double after = evaluate(trainer);
        ck_assert_msg(memcmp(&before, &after, sizeof after) == 0, "it was changed");
        step(trainer); /* and is usable */
    }
    tfm_trainer_destroy(trainer);
}
END_TEST

/* Catches: runs of a step that are averaged each, weighed by their number, or forgotten but the last: two runs of three
 * windows are one of six. */
START_TEST(accumulated_runs_are_one)
{
    struct tfm_trainer_settings s = settings();
    struct tfm_trainer *two = create(&s, NULL), *one;

    s.sequences *= s.accumulate;
    s.accumulate = 1;
    one = create(&s, NULL);
    for (int i = 0; i < 5; i++) {
        const struct tfm_trainer_report a = step(two), b = step(one);
        ck_assert_uint_eq(a.tokens, b.tokens);
        ck_assert_double_eq_tol(a.loss, b.loss, 1e-5);
        ck_assert_double_eq_tol(a.norm, b.norm, 1e-4 * b.norm);
    }
    tfm_trainer_destroy(two);
    tfm_trainer_destroy(one);
}
END_TEST

/* The largest change of a parameter between two sets of values. */
static double change(const struct tfm_weights *before, const struct tfm_weights *after,
                     const char *name)
{
    enum tfm_dtype dtype;
    struct tfm_weight a, b;
    double most = 0;

    ck_assert_int_eq(tfm_weights_get(before, name, &dtype, &a, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_get(after, name, &dtype, &b, NULL), TFM_STATUS_OK);
    ck_assert(dtype == TFM_DTYPE_F32 && a.bytes == b.bytes);
    for (size_t i = 0; i < a.bytes / sizeof(float); i++)
        most = fmax(most, fabs((double)((const float *)a.data)[i] - ((const float *)b.data)[i]));
    return most;
}

/* Catches: a rate of embeddings that is read from the configuration and reaches nothing, or everything. */
START_TEST(embeddings_have_a_rate_of_their_own)
{
    static const double rates[] = {1, 0.25, 0};
    struct tfm_trainer_settings s = settings();

    s.warmup = 0; /* the first step of AdamW moves what has a gradient by the rate */
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct tfm_weights *before = NULL, *after = NULL;
        struct tfm_error err = STALE;
        s.embedding_rate = rates[i];
        struct tfm_trainer *trainer = create(&s, NULL);
        ok(tfm_trainer_weights(trainer, &before, &err), &err);
        step(trainer);
        ok(tfm_trainer_weights(trainer, &after, &err), &err);
        ck_assert_double_eq_tol(change(before, after, "token_embd.weight"), rates[i] * s.rate,
                                0.01 * s.rate);
        ck_assert_double_eq_tol(change(before, after, "output_norm.weight"), s.rate, 0.01 * s.rate);
        tfm_weights_release(before);
        tfm_weights_release(after);
        tfm_trainer_destroy(trainer);
    }
}
END_TEST

/* Catches: initial values that are cut off, transposed or taken from elsewhere; copies that are not the values of
 * now. */
START_TEST(values_that_are_given_and_taken)
{
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer *trainer = create(&s, NULL), *second;
    struct tfm_weights *weights = NULL;
    struct tfm_error err = STALE;

    for (int i = 0; i < 10; i++)
        step(trainer);
    ok(tfm_trainer_weights(trainer, &weights, &err), &err);
    second = create(&s, weights);
    const double a = evaluate(trainer), b = evaluate(second);
    ck_assert_msg(memcmp(&a, &b, sizeof a) == 0, "%.17g, not %.17g", b, a);
    tfm_weights_release(weights);
    tfm_trainer_destroy(trainer);
    tfm_trainer_destroy(second);
}
END_TEST

/* Catches: values that are computed a second time from something else, and memory that they take all the same. */
START_TEST(recomputed_values_are_the_same)
{
    struct tfm_trainer_settings s = settings();
    struct tfm_trainer *kept = create(&s, NULL), *again;
    struct tfm_plan_summary a, b;

    s.recompute = 1;
    again = create(&s, NULL);
    for (int i = 0; i < 5; i++) {
        const double want = step(kept).loss, loss = step(again).loss;
        ck_assert_msg(memcmp(&want, &loss, sizeof loss) == 0, "step %d: %.17g, not %.17g", i + 1,
                      loss, want);
    }
    tfm_plan_summarize(tfm_trainer_plan(kept), &a);
    tfm_plan_summarize(tfm_trainer_plan(again), &b);
    ck_assert_uint_gt(b.nodes, a.nodes);
    ck_assert_msg(b.arena_bytes < a.arena_bytes, "%zu bytes, not less than %zu", b.arena_bytes,
                  a.arena_bytes);
    tfm_trainer_destroy(kept);
    tfm_trainer_destroy(again);
}
END_TEST

/* Catches: a summary that leaves out the update, so that its nodes could fall back without a word. */
START_TEST(the_summary_has_the_update)
{
    const struct tfm_trainer_settings s = settings();
    struct tfm_trainer *trainer = create(&s, NULL);
    struct tfm_plan_summary passes, all;
    enum { TENSORS = 2 + 2 * 9 }; /* table and norm; of a block 2 norms and 7 matrices */

    tfm_plan_summarize(tfm_trainer_plan(trainer), &passes);
    tfm_trainer_summarize(trainer, &all);
    ck_assert_uint_ge(all.nodes, passes.nodes + 2 * TENSORS); /* a norm and an update each */
    ck_assert_uint_ge(all.state_bytes, 16 * tfm_trainer_parameters(trainer));
    tfm_trainer_destroy(trainer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer");
    TCase *tcase = tests_case(suite, "trainer");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, it_learns);
    tcase_add_test(tcase, samples_follow_the_training);
    tcase_add_test(tcase, a_checkpoint_goes_on_with_the_same_bits);
    tcase_add_loop_test(tcase, another_configuration_is_refused, 0,
                        (int)(sizeof differences / sizeof *differences));
    tcase_add_test(tcase, accumulated_runs_are_one);
    tcase_add_test(tcase, embeddings_have_a_rate_of_their_own);
    tcase_add_test(tcase, values_that_are_given_and_taken);
    tcase_add_test(tcase, recomputed_values_are_the_same);
    tcase_add_test(tcase, the_summary_has_the_update);
    return tests_run(suite);
}
