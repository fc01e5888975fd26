/* SPDX-License-Identifier: MIT
 * A small decoder that learns ids of a simple rule on the reference, for the tests of the trainer. */
#ifndef TESTS_TRAIN_TRAINER_SCENE_H
#define TESTS_TRAIN_TRAINER_SCENE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include <tfm/plan.h>
#include <tfm/trainer.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/folder.h"

enum { VOCAB = 11, LENGTH = 8, IDS = 400 };

/* What a caller has at hand: a call must take it away, or its own text is lost. */
#define STALE                             \
    {                                     \
        TFM_STATUS_BUSY, "an older error" \
    }

static struct test_devices devices;
static struct tfm_dataset *dataset;

static inline void ok(enum tfm_status status, const struct tfm_error *err)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err->text);
}

/* Ids that follow from the one before, but for every seventh. */
static inline void write_ids(void)
{
    struct tfm_dataset_writer *writer = NULL;
    struct tfm_error err = STALE;
    int32_t ids[IDS] = {0};

    for (int i = 0; i < IDS; i++)
        ids[i] = i % 7 ? (ids[i - 1] * 3 + 1) % VOCAB : i / 7 % VOCAB;
    ok(tfm_dataset_writer_create("ids", VOCAB, 5, &writer, &err), &err);
    ok(tfm_dataset_writer_add(writer, ids, IDS, &err), &err);
    ok(tfm_dataset_writer_finish(writer, &err), &err);
    tfm_dataset_writer_destroy(writer);
}

static inline void begin(void)
{
    struct tfm_error err = STALE;

    folder_enter();
    test_backend = "reference";
    ok(test_devices_try(&devices, &err), &err);
    write_ids();
    ok(tfm_dataset_open("ids", &dataset, &err), &err);
}

static inline void end(void)
{
    tfm_dataset_close(dataset);
    test_devices_close(&devices);
    folder_leave((const char *const[]){"ids", "last.ckpt", "previous.ckpt"}, 3);
}

static inline struct tfm_nn_decoder decoder(void)
{
    return (struct tfm_nn_decoder){.vocab = VOCAB,
                                   .width = 16,
                                   .layers = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = 4,
                                   .ffn_width = 24,
                                   .eps = 1e-5,
                                   .positions = LENGTH,
                                   .tied = 1};
}

static inline struct tfm_trainer_settings settings(void)
{
    struct tfm_trainer_settings s;

    tfm_trainer_settings_defaults(&s);
    s.length = LENGTH;
    s.sequences = 3;
    s.accumulate = 2;
    s.steps = 40;
    s.rate = 2e-2;
    s.final_rate = 1e-3;
    s.warmup = 4;
    s.held_out = 0.2;
    return s;
}

static inline struct tfm_trainer *create_of(const struct tfm_nn_decoder *model,
                                            const struct tfm_trainer_settings *s,
                                            const struct tfm_weights *weights)
{
    const struct tfm_trainer_data data = {dataset, NULL};
    struct tfm_trainer *trainer = NULL;
    struct tfm_error err = STALE;

    ok(tfm_trainer_create(model, s, &data, weights, devices.device, devices.n, &trainer, &err),
       &err);
    return trainer;
}

static inline struct tfm_trainer *create(const struct tfm_trainer_settings *s,
                                         const struct tfm_weights *weights)
{
    const struct tfm_nn_decoder model = decoder();
    return create_of(&model, s, weights);
}

static inline struct tfm_trainer_report step(struct tfm_trainer *trainer)
{
    struct tfm_trainer_report report = {0};
    struct tfm_error err = STALE;

    ok(tfm_trainer_step(trainer, &report, &err), &err);
    return report;
}

static inline double evaluate(struct tfm_trainer *trainer)
{
    double loss = 0;
    uint64_t tokens = 0;
    struct tfm_error err = STALE;

    ok(tfm_trainer_evaluate(trainer, &loss, &tokens, &err), &err);
    ck_assert_uint_eq(tokens, tfm_trainer_held(trainer) * LENGTH);
    return loss;
}

static inline void save(struct tfm_trainer *trainer)
{
    struct tfm_error err = STALE;
    ok(tfm_trainer_save(trainer, "last.ckpt", &err), &err);
}

static inline enum tfm_status load(struct tfm_trainer *trainer, struct tfm_error *err)
{
    struct tfm_checkpoint *checkpoint = NULL;

    ok(tfm_checkpoint_open("last.ckpt", &checkpoint, err), err);
    const enum tfm_status status = tfm_trainer_load(trainer, checkpoint, err);
    tfm_checkpoint_close(checkpoint);
    return status;
}

#endif
