/* SPDX-License-Identifier: MIT
 * A bail-out of the persistent kernel at every barrier of a real model in turn: the logits have the bits of a run
 * without one. (test_persistent does it on a tiny model, with everything else that may happen.) Would catch a
 * step of one of thirty layers that is run twice or never when parts leave before it. */
#include <check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/llm.h>

#include "lib/core/plan.h"
#include "tests/core/runner.h"
#include "tests/opencl/parts.h"

enum { PAST = 20, STALL_BOUNDS = 10, TRIES = 20 };

static struct test_devices devices;
static struct tfm_model *model;
static struct tfm_session *session;
static struct tfm_error err;

static void ok(enum tfm_status status)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

/* FNV-1a over the bits of the logits of the token behind PAST others. */
static uint64_t next_token(void)
{
    const int32_t id = 1234;
    uint64_t hash = 14695981039346656037u;

    ok(tfm_session_truncate(session, PAST, &err));
    ok(tfm_session_feed(session, &id, 1, &err));
    const unsigned char *c = (const unsigned char *)tfm_session_logits(session);
    for (size_t i = 0; i < (size_t)tfm_model_config(model)->vocab * sizeof(float); i++)
        hash = (hash ^ c[i]) * 1099511628211u;
    return hash;
}

static const struct tfm__cl_phases *phases_of(const struct tfm_plan *plan)
{
    ck_assert_uint_eq(plan->n_segments, 1);
    return &((const struct tfm__cl_program *)plan->segments[0].program.impl)->phases;
}

static int bails_at(uint32_t step, int part, uint64_t right)
{
    const uint64_t before = atomic_load(&tfm__cl_persistent_bails);

    atomic_store(&tfm__cl_stall.step, (int)step);
    atomic_store(&tfm__cl_stall.part, part);
    ck_assert_msg(next_token() == right,
                  "part %d stalled before the barrier behind step %u: other bits", part, step);
    return atomic_load(&tfm__cl_persistent_bails) > before;
}

START_TEST(at_every_barrier)
{
    struct tfm_session_options options;
    uint32_t barriers = 0, missed = 0;

    ck_assert_int_eq(setenv("TFM_OPENCL_PERSISTENT", "on", 1), 0);
    parts_open(&devices);
    ok(tfm_model_open(test_model_path(), &model, &err));
    tfm_session_defaults(&options);
    options.context = PAST + 4;
    ok(tfm_session_create(model, devices.device, devices.n, &options, &session, &err));
    for (int32_t id = 100; id < 100 + PAST; id++)
        ok(tfm_session_feed(session, &id, 1, &err));
    const uint64_t right = next_token();
    const struct tfm__cl_phases *phases = phases_of(tfm_session_plan(session));
    atomic_store(&tfm__cl_stall.polls, STALL_BOUNDS * (int)parts_handle(&devices)->few_polls);
    atomic_store(&tfm__cl_stall.eager, 1);
    for (uint32_t i = 0; i + 1 < phases->n; i++) {
        if (!phases->steps[i].step.barrier)
            continue;
        int bailed = 0; /* the scheduler may keep the other part away for as long */
        for (int try = 0; try < TRIES && !bailed; try++)
            bailed = bails_at(i + 1, try % 2, right);
        barriers++;
        missed += !bailed;
    }
    printf("# %u barriers, no bail-out at %u of them\n", barriers, missed);
    ck_assert_uint_eq(barriers + 1, phases->count);
    ck_assert_uint_ge(barriers, 150);
    ck_assert_uint_eq(missed, 0);
    atomic_store(&tfm__cl_stall.step, 0);
    ck_assert_uint_eq(next_token(), right);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
}
END_TEST

int main(void)
{
    if (!test_model_path())
        return tests_skip("no model: ./quickstart smollm2 fetches it (or TFM_TEST_MODEL=FILE)");
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("bail-outs");
    TCase *tcase = tests_case(suite, "bail-outs");
    tcase_set_timeout(tcase, 400); /* 5 seconds where nobody else computes */
    tcase_add_test(tcase, at_every_barrier);
    return tests_run(suite);
}
