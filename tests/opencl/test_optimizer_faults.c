/* SPDX-License-Identifier: MIT
 * OpenCL fails in the middle of an update, at each of its calls in turn. The fault layer (faults.c) is preloaded. */
#include <dlfcn.h>

#include "tests/opencl/faults.h"
#include "tests/opencl/preload.h"
#include "tests/train/optimizer_scene.h"

static const struct fault_layer *layer;

/* What was saved, as a checkpoint has it: parameters and moments after one step. */
static double saved[3][SCENE_PARAMETERS][SCENE_MOST];
static const char *const kept[3] = {"", ".m", ".v"};

static void save(struct scene *s)
{
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < SCENE_PARAMETERS; i++)
            scene_read(s, i, kept[k], saved[k][i]);
    }
}

static void load(struct scene *s)
{
    struct tfm_error err = {0};

    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < SCENE_PARAMETERS; i++)
            scene_write(s, i, kept[k], saved[k][i]);
    }
    tfm_optimizer_set_steps(s->optimizer, 1);
    ck_assert_msg(tfm_optimizer_heal(s->optimizer, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* The second step from what was saved; its result must be `want`. */
static void expect_second_step(struct scene *s, const double *want, size_t n)
{
    double got[SCENE_ALL];

    scene_run(s, 2);
    scene_step(s, 0.01, 1, NULL);
    ck_assert_uint_eq(scene_read_all(s, got), n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(got[i] == want[i], "value %zu is %.9g instead of %.9g", i, got[i], want[i]);
}

/* The parameters may be anything: nobody may go on with them. */
static void expect_poison(struct scene *s, enum tfm_status failure)
{
    struct tfm_optimizer_report report = {-1, -1};
    struct tfm_error err;

    for (int times = 0; times < 2; times++) {
        ck_assert_int_eq(tfm_optimizer_step(s->optimizer, 0.01, 1, &report, &err), failure);
        ck_assert_msg(strstr(err.text, "step 2 broke off (") && strstr(err.text, "checkpoint"),
                      "%s", err.text);
    }
    ck_assert_double_eq(report.norm, -1);
    ck_assert_int_eq(tfm_optimizer_check(s->optimizer, NULL), failure);
    ck_assert_uint_eq(tfm_optimizer_steps(s->optimizer), 1);
}

/* Fault: a failure that has changed nothing poisons, or one that may have changed half of the parameters does not; the
 * poison goes away by itself or stays after a load; the count of steps moves; the text hides the call. */
START_TEST(a_call_of_a_step_fails)
{
    double want[SCENE_ALL], before[SCENE_ALL], after[SCENE_ALL];
    unsigned long sound = 0, poisoned = 0;
    struct tfm_error err;
    struct scene s;

    scene_begin(&s, TFM_DTYPE_F32, &scene_config, NULL, NULL);
    scene_run(&s, 1);
    scene_step(&s, 0.01, 1, NULL);
    save(&s);
    scene_run(&s, 2);
    layer->arm(NULL);
    scene_step(&s, 0.01, 1, NULL);
    const unsigned long calls = layer->calls();
    const size_t n = scene_read_all(&s, want);
    ck_assert_uint_gt(calls, 10);
    for (unsigned long at = 1; at <= calls; at++) {
        const struct fault f = {.at = at, .code = CL_OUT_OF_RESOURCES};
        load(&s);
        scene_run(&s, 2);
        scene_read_all(&s, before);
        layer->arm(&f);
        const enum tfm_status status = tfm_optimizer_step(s.optimizer, 0.01, 1, NULL, &err);
        const char *struck = layer->struck();
        layer->arm(NULL);
        if (status == TFM_STATUS_OK) /* a call whose failure does not matter */
            continue;
        ck_assert_msg(struck && strstr(err.text, struck), "call %lu (%s): %s", at,
                      struck ? struck : "not reached", err.text);
        if (tfm_optimizer_check(s.optimizer, NULL) == TFM_STATUS_OK) {
            sound++;
            scene_read_all(&s, after);
            for (size_t i = 0; i < n; i++)
                ck_assert_msg(after[i] == before[i], "call %lu: value %zu has changed", at, i);
            scene_step(&s, 0.01, 1, NULL);
        } else {
            poisoned++;
            expect_poison(&s, status);
        }
        load(&s);
        expect_second_step(&s, want, n);
    }
    ck_assert_msg(sound > 0 && poisoned > 0, "%lu sound, %lu poisoned", sound, poisoned);
    scene_end(&s);
}
END_TEST

/* Rates, the factor of clipping and the corrections are inputs. Fault: a program, kernel or buffer for each of their values. */
START_TEST(a_step_makes_nothing)
{
    static const char *const calls[] = {"clBuildProgram", "clCreateProgramWithSource",
                                        "clCreateKernel", "clCreateBuffer"};
    struct tfm_optimizer_report report;
    double clipped = -1;
    struct scene s;

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        ck_assert(layer->covers(calls[i]));
    scene_begin(&s, TFM_DTYPE_F32, &scene_config, NULL, NULL);
    scene_run(&s, 1);
    scene_step(&s, 0.01, 1, NULL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct fault f = {.call = calls[i], .code = CL_OUT_OF_RESOURCES};
        layer->arm(&f);
        scene_run(&s, 2 + i);
        scene_step(&s, 0.02 / (1 + (double)i), 1, &report);
        ck_assert_msg(layer->struck() == NULL, "%s was called", calls[i]);
        ck_assert_uint_gt(layer->calls(), 0);
        ck_assert_double_ne(report.clipped, clipped);
        clipped = report.clipped;
        layer->arm(NULL);
    }
    scene_end(&s);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("optimizer faults");

    TCase *tcase = net_case(suite, "faults");

    tcase_add_test(tcase, a_call_of_a_step_fails);
    tcase_add_test(tcase, a_step_makes_nothing);
    return suite;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    layer = dlsym(RTLD_DEFAULT, "fault_layer");
    if (!layer)
        return tests_preload("faults", argv);
    return net_main("opencl", make_suite);
}
