/* SPDX-License-Identifier: MIT
 * The golden logits with activations of 8 bits (TFM_ACT=int8), at bounds of their own: 1.0 on the best 8. And
 * they are not those of f32: a setting that changed nothing would pass too. */
#include <math.h>
#include <stdlib.h>

#include <tfm/llm.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/golden/golden.h"

enum { BEST = 8 };
static const double BOUND = 1.0, LEAST = 2e-3; /* what f32 stays below */
static const double SURE_MARGIN = 0.5;

static double distance(const struct golden_top *top, const float *logits)
{
    double worst = 0;
    for (size_t i = 0; i < BEST; i++) {
        const double d = fabs(logits[top->id[i]] - top->logit[i]);
        worst = d <= worst ? worst : isnan(d) ? INFINITY : d;
    }
    return worst;
}

static void feed(struct tfm_session *session, const int32_t *ids, size_t n)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
}

static const size_t chunks[] = {512, 64, 8};

/* Fault: a scale, an offset or a block of some layer is off; errors that grow with the length. */
START_TEST(long_text)
{
    struct golden *golden = golden_read("long-q4_1.json");
    struct test_devices devices;
    struct tfm_model *model = NULL;
    struct tfm_session *session = NULL;
    struct tfm_session_options options;
    struct tfm_error err = {0};
    double worst = 0;
    size_t fed = 0;

    ck_assert_ptr_nonnull(golden);
    setenv("TFM_ACT", "int8", 1);
    test_devices_open(&devices);
    ck_assert_msg(tfm_model_open(test_model_path(), &model, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.context = 600;
    options.chunk = (int64_t)chunks[_i];
    ck_assert_msg(tfm_session_create(model, devices.device, devices.n, &options, &session, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    const struct golden_case *c = &golden->cases[0];
    ck_assert_uint_gt(c->n_top, 1);
    for (size_t mark = 0; mark < c->n_top; mark++) {
        feed(session, c->ids + fed, c->top[mark].n - fed);
        fed = c->top[mark].n;
        const double d = distance(&c->top[mark], tfm_session_logits(session));
        ck_assert_msg(d <= BOUND, "after %zu tokens the logits are off by %g", fed, d);
        worst = d > worst ? d : worst;
    }
    ck_assert_msg(worst > LEAST, "off by %g at most: that is f32", worst);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
    golden_free(golden);
}
END_TEST

/* Fault: a token of which the model is sure becomes another. */
START_TEST(sure_tokens_stay)
{
    struct golden *golden = golden_read("smollm2-q4_1.json");
    struct test_devices devices;
    struct tfm_model *model = NULL;
    struct tfm_session_options options;
    struct tfm_error err = {0};
    size_t sure = 0;

    ck_assert_ptr_nonnull(golden);
    setenv("TFM_ACT", "int8", 1);
    test_devices_open(&devices);
    ck_assert_msg(tfm_model_open(test_model_path(), &model, &err) == TFM_STATUS_OK, "%s", err.text);
    const size_t vocab = (size_t)tfm_model_config(model)->vocab;
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.context = 64;
    for (size_t i = 0; i < golden->n; i++) {
        const struct golden_case *c = &golden->cases[i];
        struct tfm_session *session = NULL;
        int32_t ids[64];
        ck_assert_msg(tfm_session_create(model, devices.device, devices.n, &options, &session,
                                         &err) == TFM_STATUS_OK,
                      "%s", err.text);
        ck_assert_uint_le(c->n + c->n_greedy, 64);
        memcpy(ids, c->ids, c->n * sizeof *ids);
        memcpy(ids + c->n, c->greedy, c->n_greedy * sizeof *ids);
        for (size_t step = 0; step < c->n_greedy; step++) {
            if (c->margin[step] <= SURE_MARGIN)
                continue;
            sure++;
            /* all of it at once: as many rows as there are go through integers */
            ck_assert_int_eq(tfm_session_truncate(session, 0, &err), TFM_STATUS_OK);
            feed(session, ids, c->n + step);
            const float *logits = tfm_session_logits(session);
            size_t best = 0;
            for (size_t k = 1; k < vocab; k++)
                best = logits[k] > logits[best] ? k : best;
            ck_assert_msg(best == (size_t)c->greedy[step], "case %zu, step %zu, margin %g: %zu", i,
                          step, c->margin[step], best);
        }
        tfm_session_destroy(session);
    }
    ck_assert_uint_gt(sure, 10);
    tfm_model_close(model);
    test_devices_close(&devices);
    golden_free(golden);
}
END_TEST

int main(void)
{
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    if (!test_model_path())
        return tests_skip("the model is not here");
    Suite *suite = suite_create("golden, int8");
    TCase *tcase = tests_case(suite, "golden, int8");
    tcase_add_loop_test(tcase, long_text, 0, 3);
    tcase_add_test(tcase, sure_tokens_stay);
    return tests_run(suite);
}
