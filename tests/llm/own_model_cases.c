/* SPDX-License-Identifier: MIT
 * A decoder of each kind is trained for some steps on the backend under test and exported as a folder: a session over
 * what is read back has the loss that the trainer measured, and a trainer that begins with it too. */
#include "tests/llm/own_model_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <tfm/llm.h>
#include <tfm/trainer.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/folder.h"
#include "tests/llm/tiny_llama.h"

enum { LENGTH = 16, HELD = 6, IDS = 600, MOST = 20000 };

static struct test_devices devices;
static struct tfm_dataset *train, *validation;

static void ok(enum tfm_status status, const struct tfm_error *err)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err->text);
}

static int32_t id_at(int i)
{
    return (int32_t)(i % 5 ? (i * 7 + i / 5) % 40 : 200 + i % 50);
}

static struct tfm_dataset *write_ids(const char *path, int first, int n)
{
    struct tfm_dataset_writer *writer = NULL;
    struct tfm_dataset *dataset = NULL;
    struct tfm_error err = {0};
    int32_t ids[IDS];

    for (int i = 0; i < n; i++)
        ids[i] = id_at(first + i);
    ok(tfm_dataset_writer_create(path, TINY_VOCAB, 5, &writer, &err), &err);
    ok(tfm_dataset_writer_add(writer, ids, (size_t)n, &err), &err);
    ok(tfm_dataset_writer_finish(writer, &err), &err);
    tfm_dataset_writer_destroy(writer);
    ok(tfm_dataset_open(path, &dataset, &err), &err);
    return dataset;
}

static void begin(void)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_error err = {0};

    folder_enter();
    tiny_llama_write(&tiny, "words.gguf"); /* for its tokenizer */
    ok(test_devices_try(&devices, &err), &err);
    train = write_ids("ids", 0, IDS);
    validation = write_ids("held", IDS, HELD * LENGTH + 1);
}

static void end(void)
{
    static const char *const made[] = {"ids",
                                       "held",
                                       "words.gguf",
                                       "model/config.json",
                                       "model/tokenizer.json",
                                       "model/model.safetensors",
                                       "model"};

    tfm_dataset_close(train);
    tfm_dataset_close(validation);
    test_devices_close(&devices);
    folder_leave(made, sizeof made / sizeof *made);
}

/* tests/train/data/KIND.json, a decoder of two layers. */
static void read_kind(const char *kind, struct tfm_nn_decoder *decoder,
                      struct tfm_trainer_settings *settings)
{
    const char *top = getenv("TFM_TEST_SRCDIR");
    char path[1000], text[MOST];
    struct tfm_error err = {0};

    snprintf(path, sizeof path, "%s%s/tests/train/data/%s.json", top && *top == '/' ? "" : "../",
             top ? top : ".", kind);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    const size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    ok(tfm_config_parse(path, text, size, 0, decoder, settings, &err), &err);
    decoder->vocab = TINY_VOCAB;
    settings->length = LENGTH;
    settings->sequences = 2;
    settings->steps = 8;
    settings->warmup = 0;
    settings->rate = 1e-2;
    settings->final_rate = 1e-3;
}

static double trainer_loss(struct tfm_trainer *trainer)
{
    struct tfm_error err = {0};
    uint64_t tokens = 0;
    double loss = 0;

    ok(tfm_trainer_evaluate(trainer, &loss, &tokens, &err), &err);
    ck_assert_uint_eq(tokens, HELD * LENGTH);
    return loss;
}

static struct tfm_trainer *create(const struct tfm_nn_decoder *decoder,
                                  const struct tfm_trainer_settings *settings,
                                  const struct tfm_weights *weights)
{
    const struct tfm_trainer_data data = {train, validation};
    struct tfm_trainer *trainer = NULL;
    struct tfm_error err = {0};

    ok(tfm_trainer_create(decoder, settings, &data, weights, devices.device, devices.n, &trainer,
                          &err),
       &err);
    return trainer;
}

/* -ln p of the next token, from its logits. */
static double loss_of(const float *logits, int32_t target)
{
    double most = (double)logits[0], sum = 0;

    for (int i = 1; i < TINY_VOCAB; i++)
        most = fmax(most, (double)logits[i]);
    for (int i = 0; i < TINY_VOCAB; i++)
        sum += exp((double)logits[i] - most);
    return log(sum) + most - (double)logits[target];
}

/* Of the windows that the trainer validates on; prompt in one run, and the last half token by token. */
static double session_loss(struct tfm_model *model)
{
    const struct tfm_session_options options = {
        .context = LENGTH, .outputs = LENGTH, .cache = TFM_DTYPE_F32};
    struct tfm_session *session = NULL;
    struct tfm_error err = {0};
    double sum = 0;

    ok(tfm_session_create(model, devices.device, devices.n, &options, &session, &err), &err);
    for (int w = 0; w < HELD; w++) {
        int32_t ids[LENGTH];
        for (int i = 0; i < LENGTH; i++)
            ids[i] = id_at(IDS + w * LENGTH + i);
        ok(tfm_session_truncate(session, 0, &err), &err);
        for (int i = 0; i < LENGTH; i += i ? 1 : LENGTH / 2) {
            const size_t n = i ? 1 : LENGTH / 2;
            const struct tfm_session_part part = {.ids = ids + i, .n = n, .n_logits = n};
            ok(tfm_session_run(session, &part, 1, &err), &err);
            for (size_t k = 0; k < n; k++)
                sum += loss_of(tfm_session_logits(session) + k * TINY_VOCAB,
                               id_at(IDS + w * LENGTH + i + (int)k + 1));
        }
    }
    tfm_session_destroy(session);
    return sum / (HELD * LENGTH);
}

static const struct {
    const char *kind;
    double embedding_scale;   /* 0 = the kind's own */
    enum tfm_nn_ffn_kind ffn; /* SWIGLU = the kind's own */
} kinds[] = {
    {"gpt2", 0, TFM_NN_FFN_SWIGLU}, /* LayerNorm, learned positions, biases */
    {"gpt2", 0, TFM_NN_FFN_RELU},
    {"gemma2", 0, TFM_NN_FFN_SWIGLU}, /* soft caps, q-k norm, window, norms on both sides */
    {"post", 0, TFM_NN_FFN_SWIGLU},   /* post-norm, sinusoidal */
    {"post", 5.6568542494923806, TFM_NN_FFN_RELU},
    {"t5", 0, TFM_NN_FFN_SWIGLU},  /* relative positions */
    {"glu", 0, TFM_NN_FFN_SWIGLU}, /* no positions, no norms */
    {"silu", 0, TFM_NN_FFN_SWIGLU},
};

/* Catches: a kind that is exported but not read back, a setting that only the trainer's graph has, tables of positions
 * that are not those of the training, parameters under each other's names. */
START_TEST(a_session_has_the_loss_of_the_trainer)
{
    struct tfm_nn_decoder decoder = {0}, read = {0};
    struct tfm_trainer_settings settings;
    struct tfm_trainer_report report;
    struct tfm_weights *weights = NULL;
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};

    read_kind(kinds[_i].kind, &decoder, &settings);
    if (kinds[_i].embedding_scale > 0)
        decoder.embedding_scale = kinds[_i].embedding_scale;
    if (kinds[_i].ffn != TFM_NN_FFN_SWIGLU)
        decoder.ffn = kinds[_i].ffn;
    struct tfm_trainer *trainer = create(&decoder, &settings, NULL);
    const double before = trainer_loss(trainer);
    for (int i = 0; i < 8; i++)
        ok(tfm_trainer_step(trainer, &report, &err), &err);
    const double want = trainer_loss(trainer);
    ck_assert_msg(want < before - .05, "%g, then %g", before,
                  want); /* there is something to lose */
    ok(tfm_trainer_weights(trainer, &weights, &err), &err);
    const struct tfm_export export = {&decoder, weights, "words.gguf", NULL};
    ok(tfm_export_to_folder(&export, "model", TFM_DTYPE_F32, &err), &err);
    tfm_trainer_destroy(trainer);
    tfm_weights_release(weights);

    ok(tfm_model_open("model", &model, &err), &err);
    ck_assert_str_eq(tfm_model_config(model)->architecture, "tfm");
    const double got = session_loss(model);
    ck_assert_msg(fabs(got - want) <= 1e-4, "the trainer has %.7f, the session %.7f", want, got);

    /* and a training that begins with it */
    ok(tfm_weights_create(&weights, &err), &err);
    ok(tfm_model_weights_f32(model, &read, weights, &err), &err);
    trainer = create(&read, &settings, weights);
    const double again = trainer_loss(trainer);
    ck_assert_msg(fabs(again - want) <= 1e-6, "%.9f, then %.9f", want, again);
    tfm_trainer_destroy(trainer);
    tfm_weights_release(weights);
    tfm_model_close(model);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("own_model");
    TCase *tcase = tcase_create("own_model");

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, a_session_has_the_loss_of_the_trainer, 0,
                        (int)(sizeof kinds / sizeof *kinds));
    return suite;
}

int own_model_cases_run(const char *backend)
{
    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    return tests_run(make_suite());
}
