/* SPDX-License-Identifier: MIT
 * `tfm train`: texts in; checkpoints, curve and a model out. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tfm/export.h>

#include "lib/tools/clock.h"
#include "lib/tools/config.h"
#include "lib/tools/interrupt.h"
#include "lib/tools/message.h"
#include "lib/tools/setup.h"
#include "lib/tools/train_data.h"
#include "lib/tools/train_report.h"

struct train {
    const struct tfm__options *options;
    struct tfm_nn_decoder decoder;
    struct tfm_trainer_settings settings;
    struct tfm_model *initial; /* of --init */
    struct tfm_weights *initial_values;
    struct tfm__train_data data;
    struct tfm__setup setup;
    struct tfm_trainer *trainer;
    struct tfm_checkpoint *checkpoint; /* of --resume, while it is loaded */
    struct tfm__train_report report;
    uint64_t last_step, saved;
    int lock; /* the folder, as long as it is ours; -1 = none */
};

/* ---- before anything is computed ---- */

static int check_options(const struct tfm__options *options)
{
    const char *missing = !options->data        ? "--data FILE|FOLDER"
                          : !options->config    ? "--config FILE"
                          : !options->train_out ? "--out FOLDER"
                                                : NULL;

    return missing ? tfm__usage("%s is missing", missing) : TFM__EXIT_OK;
}

static int exists(const struct tfm__options *options, const char *name)
{
    char *path = tfm__train_path(options, name);
    const int there = path && access(path, F_OK) == 0;

    free(path);
    return there;
}

/* Two processes would overwrite each other's files. Where folders cannot be locked, nobody is kept out. */
static int lock_folder(struct train *train)
{
    const char *folder = train->options->train_out;

    train->lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (train->lock < 0)
        return tfm__failed("%s: cannot be opened: %s", folder, strerror(errno));
    if (flock(train->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tfm__failed("%s: another tfm train is at work in it: wait for its end, or name "
                           "another folder with --out",
                           folder);
    return TFM__EXIT_OK;
}

/* Nothing that is there is overwritten. */
static int open_folder(struct train *train)
{
    const struct tfm__options *options = train->options;
    struct tfm_error err, passed_over;
    enum tfm_status status;

    if (mkdir(options->train_out, 0777) != 0 && errno != EEXIST)
        return tfm__failed("%s: cannot be made: %s", options->train_out, strerror(errno));
    if (lock_folder(train) != TFM__EXIT_OK)
        return TFM__EXIT_FAILED;
    if (!options->resume)
        return exists(options, TFM_CHECKPOINT_LAST) || exists(options, TFM_CHECKPOINT_PREVIOUS)
                   ? tfm__failed(
                         "%s holds a training already: go on with --resume, or name another "
                         "folder with --out",
                         options->train_out)
                   : TFM__EXIT_OK;
    status = tfm_checkpoint_open_latest(options->train_out, &train->checkpoint, &passed_over, &err);
    if (status == TFM_STATUS_NOT_FOUND)
        return TFM__EXIT_OK; /* as if it had never begun */
    if (status != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    if (passed_over.status != TFM_STATUS_OK)
        tfm__message("warning: %s", passed_over.text);
    return TFM__EXIT_OK;
}

/* The model to begin with gives the layers; the configuration then has "train" alone. */
static int open_initial(struct train *train)
{
    struct tfm_error err;

    if (!train->options->init)
        return TFM__EXIT_OK;
    enum tfm_status status = tfm_model_open(train->options->init, &train->initial, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_weights_create(&train->initial_values, &err);
    if (status == TFM_STATUS_OK)
        status =
            tfm_model_weights_f32(train->initial, &train->decoder, train->initial_values, &err);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("--init: %s", err.text);
}

/* "vocab" may be left to a tokenizer that is there. */
static int read_config(struct train *train)
{
    const struct tfm_tokenizer *tokenizer = train->data.tokenizer;

    return tfm__config_read(train->options->config,
                            tokenizer ? (int64_t)tfm_tokenizer_vocab(tokenizer) : 0,
                            train->initial ? NULL : &train->decoder, &train->settings);
}

static enum tfm_status open_trainer(void *context, struct tfm__setup *setup, struct tfm_error *err)
{
    struct train *train = context;
    const struct tfm_trainer_data data = {train->data.train, train->data.validation};

    return tfm_trainer_create(&train->decoder, &train->settings, &data, train->initial_values,
                              setup->devices, setup->n_devices, &train->trainer, err);
}

static int resume(struct train *train)
{
    struct tfm_error err;
    enum tfm_status status = TFM_STATUS_OK;

    if (train->checkpoint)
        status = tfm_trainer_load(train->trainer, train->checkpoint, &err);
    tfm_checkpoint_close(train->checkpoint);
    train->checkpoint = NULL;
    train->saved = tfm_trainer_steps(train->trainer);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}

static void tell_begin(const struct train *train)
{
    const struct tfm_trainer *trainer = train->trainer;
    struct tfm_plan_summary plan;

    tfm_trainer_summarize(trainer, &plan);
    tfm__message("%" PRIu64 " parameters, %" PRIu64 " windows of %lld tokens to train on, %" PRIu64
                 " for validation",
                 tfm_trainer_parameters(trainer), tfm_trainer_windows(trainer),
                 (long long)train->settings.length, tfm_trainer_held(trainer));
    tfm__message(
        "%s: %s: %u nodes, %u of them on another device; %.1f MB of activations, %.1f MB of "
        "parameters, gradients and moments",
        train->report.backend, train->report.device, plan.nodes, plan.fallbacks,
        (double)plan.arena_bytes / 1e6, (double)plan.state_bytes / 1e6);
    if (tfm_trainer_steps(trainer) > 0)
        tfm__message("going on after step %" PRIu64, tfm_trainer_steps(trainer));
}

static int open_all(struct train *train)
{
    int code = open_folder(train);

    if (code == TFM__EXIT_OK)
        code = open_initial(train);
    if (code == TFM__EXIT_OK)
        code = tfm__train_data_begin(train->options, train->initial, &train->data);
    if (code == TFM__EXIT_OK)
        code = read_config(train);
    if (code == TFM__EXIT_OK && train->options->given.save_every)
        train->settings.save_every = train->options->save_every;
    if (train->options->recompute)
        train->settings.recompute = 1;
    if (code == TFM__EXIT_OK)
        code = tfm__train_data_open(train->options, train->initial, train->decoder.vocab,
                                    train->checkpoint != NULL, &train->data);
    if (code == TFM__EXIT_OK)
        code = tfm__setup_on_devices(train->options, open_trainer, train, &train->setup);
    /* the trainer has its own now */
    tfm_weights_release(train->initial_values);
    train->initial_values = NULL;
    return code == TFM__EXIT_OK ? resume(train) : code;
}

/* ---- while it trains ---- */

static int save(struct train *train)
{
    char *path = tfm__train_path(train->options, TFM_CHECKPOINT_LAST);
    struct tfm__signals held;
    struct tfm_error err;

    if (!path)
        return TFM__EXIT_FAILED;
    tfm__signals_hold(&held);
    const enum tfm_status status = tfm_trainer_save(train->trainer, path, &err);
    tfm__signals_release(&held);
    free(path);
    if (status != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    train->saved = tfm_trainer_steps(train->trainer);
    return TFM__EXIT_OK;
}

static int validate(struct train *train, double *loss)
{
    uint64_t tokens = 0;
    struct tfm_error err;

    if (tfm_trainer_held(train->trainer) == 0)
        return TFM__EXIT_OK;
    if (tfm_trainer_evaluate(train->trainer, loss, &tokens, &err) != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    tfm__train_report_validation(&train->report, *loss, tokens);
    return TFM__EXIT_OK;
}

/* 1 if something that happens every `every` steps, and at the end, happens now. */
static int due(const struct train *train, int64_t every)
{
    const uint64_t step = tfm_trainer_steps(train->trainer);
    return step == train->last_step || (every > 0 && step % (uint64_t)every == 0);
}

static int one_step(struct train *train)
{
    struct tfm_trainer_report step;
    struct tfm_error err;
    double validation = NAN;
    const double begin = tfm__seconds();
    int code = TFM__EXIT_OK;

    if (tfm_trainer_step(train->trainer, &step, &err) != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    const double seconds = tfm__seconds() - begin;
    if (due(train, train->settings.validate_every))
        code = validate(train, &validation);
    if (code == TFM__EXIT_OK)
        code = tfm__train_report_step(&train->report, &step, seconds, validation);
    if (code == TFM__EXIT_OK && due(train, train->settings.sample_every))
        code = tfm__train_report_sample(&train->report);
    if (code == TFM__EXIT_OK && due(train, train->settings.save_every))
        code = save(train);
    if (code == TFM__EXIT_OK && tfm__asked())
        code = tfm__train_report_curve(&train->report);
    return code;
}

static int steps(struct train *train)
{
    int code = TFM__EXIT_OK;

    while (code == TFM__EXIT_OK && tfm_trainer_steps(train->trainer) < train->last_step &&
           !tfm__interrupted())
        code = one_step(train);
    if (code == TFM__EXIT_OK && tfm_trainer_steps(train->trainer) > train->saved)
        code = save(train); /* interrupted */
    return code;
}

/* ---- at the end ---- */

/* The configuration's, without folder and ending: what two trainings with the same one share. */
static void model_name(const struct tfm__options *options, char *name, size_t size)
{
    const char *slash = strrchr(options->config, '/'), *base = slash ? slash + 1 : options->config;
    const char *end = strrchr(base, '.');

    snprintf(name, size, "%.*s", (int)(end && end != base ? (size_t)(end - base) : strlen(base)),
             base);
}

static int export_model(struct train *train)
{
    char name[256];
    struct tfm_export what = {
        .decoder = &train->decoder, .tokenizer = train->data.tokenizer_path, .name = name};
    char *gguf = tfm__train_path(train->options, "model.gguf"),
         *folder = tfm__train_path(train->options, "model");
    struct tfm_weights *weights = NULL;
    struct tfm__signals held;
    struct tfm_error err, why;
    enum tfm_status status = gguf && folder ? TFM_STATUS_OK : TFM_STATUS_NOMEM;

    model_name(train->options, name, sizeof name);
    if (status == TFM_STATUS_OK)
        status = tfm_trainer_weights(train->trainer, &weights, &err);
    if (status == TFM_STATUS_OK) {
        what.weights = weights;
        /* gradients and moments are saved: the file is made with their memory */
        tfm_trainer_destroy(train->trainer);
        train->trainer = NULL;
        tfm__signals_hold(&held);
        status = tfm_export_to_gguf(&what, gguf, TFM_DTYPE_F32, &err);
        if (status == TFM_STATUS_UNSUPPORTED) {
            why = err;
            status = tfm_export_to_folder(&what, folder, TFM_DTYPE_F32, &err);
            if (status == TFM_STATUS_OK)
                tfm__message("%s: no GGUF file: %s", folder, why.text);
        }
        tfm__signals_release(&held);
    }
    tfm_weights_release(weights);
    free(gguf);
    free(folder);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}

static int train_all(struct train *train)
{
    struct tfm__train_report *report = &train->report;
    int code;

    *report = (struct tfm__train_report){
        .options = train->options,
        .trainer = train->trainer,
        .tokenizer = train->data.tokenizer,
        .backend = tfm_device_backend(train->setup.devices[0]),
        .device = tfm_device_name(train->setup.devices[0]),
    };
    train->last_step = train->options->given.steps ? (uint64_t)train->options->steps
                                                   : (uint64_t)train->settings.steps;
    report->steps = train->last_step;
    tell_begin(train);
    code = tfm__train_report_open(report);
    if (code == TFM__EXIT_OK)
        code = steps(train);
    tfm__train_report_close(report);
    if (code == TFM__EXIT_OK)
        code = tfm__train_report_curve(report);
    if (code == TFM__EXIT_OK && tfm__interrupted())
        return TFM__EXIT_INTERRUPTED;
    return code == TFM__EXIT_OK ? export_model(train) : code;
}

int tfm__verb_train(const struct tfm__options *options)
{
    struct train train = {.options = options, .lock = -1};
    int code = check_options(options);

    if (code != TFM__EXIT_OK)
        return code;
    /* who asks for the curve before there is one must not end the program */
    tfm__ask_catch();
    code = open_all(&train);
    if (code == TFM__EXIT_OK) {
        tfm__interrupt_catch();
        code = train_all(&train);
    }
    tfm_trainer_destroy(train.trainer);
    tfm_checkpoint_close(train.checkpoint);
    tfm_weights_release(train.initial_values);
    tfm__train_data_deinit(&train.data);
    tfm__setup_close(&train.setup);
    tfm_model_close(train.initial);
    if (train.lock >= 0)
        close(train.lock);
    return code;
}
