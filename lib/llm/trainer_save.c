/* SPDX-License-Identifier: MIT
 * The checkpoints of a trainer: sections "identity" (text), "counters" (u64 each: steps, place in the order of windows,
 * tokens), and one for each variable under its name: parameters and what the optimizer keeps of them. A step ends
 * with the gradients at zero and what is drawn depends on the seed and the step, so nothing else is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/checkpoint.h>

#include "lib/core/little_endian.h"
#include "lib/llm/trainer_internal.h"

enum { COUNTERS = 3 };

/* What the optimizer keeps of a parameter. */
static const char *const kept[] = {".m", ".v", ".master"};

/* ---- every variable, with the exec it is read and written through ---- */

typedef enum tfm_status visit(void *context, struct tfm_exec *exec,
                              const struct tfm_tensor *tensor);

struct walk {
    const struct tfm_trainer *trainer;
    visit *visit;
    void *context;
};

static enum tfm_status variables_of(void *context, const struct tfm_tensor *parameter)
{
    const struct walk *walk = context;
    const struct tfm_trainer *t = walk->trainer;
    enum tfm_status status = walk->visit(walk->context, t->train.exec, parameter);

    for (size_t i = 0; i < sizeof kept / sizeof *kept && status == TFM_STATUS_OK; i++) {
        char name[300];
        snprintf(name, sizeof name, "%s%s", parameter->name, kept[i]);
        const struct tfm_tensor *state = tfm_graph_find(tfm_optimizer_graph(t->optimizer), name);
        if (state)
            status = walk->visit(walk->context, tfm_optimizer_exec(t->optimizer), state);
    }
    return status;
}

static enum tfm_status each_variable(const struct tfm_trainer *t, visit *visit, void *context)
{
    struct walk walk = {t, visit, context};
    return tfm__trainer_each_parameter(t, variables_of, &walk);
}

static enum tfm_status no_memory(const char *what, struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "train: \"%s\": out of memory", what);
}

/* ---- saving ---- */

struct saving {
    struct tfm_trainer *trainer;
    struct tfm_checkpoint_writer *writer;
    struct tfm_error *err;
};

static enum tfm_status put(void *context, struct tfm_exec *exec, const struct tfm_tensor *tensor)
{
    const struct saving *saving = context;
    const size_t bytes = tfm__trainer_bytes(tensor);
    void *values = malloc(bytes);
    enum tfm_status status = values ? TFM_STATUS_OK : no_memory(tensor->name, saving->err);

    if (status == TFM_STATUS_OK)
        status = tfm_exec_state_read(exec, tensor->name, values, bytes, saving->err);
    if (status == TFM_STATUS_OK &&
        !tfm__trainer_finite(tensor->dtype, values, tfm__trainer_elements(tensor)))
        status = tfm__trainer_spoilt(saving->trainer, tensor->name, saving->err);
    if (status == TFM_STATUS_OK)
        status = tfm_checkpoint_section(saving->writer, tensor->name, values, bytes, saving->err);
    free(values);
    return status;
}

static enum tfm_status put_all(struct tfm_trainer *t, struct tfm_checkpoint_writer *writer,
                               struct tfm_error *err)
{
    unsigned char counters[8 * COUNTERS];
    struct saving saving = {t, writer, err};

    tfm__le_store(counters, t->step, 8);
    tfm__le_store(counters + 8, t->place, 8);
    tfm__le_store(counters + 16, t->tokens, 8);
    enum tfm_status status =
        tfm_checkpoint_section(writer, "identity", t->identity, strlen(t->identity), err);
    if (status == TFM_STATUS_OK)
        status = tfm_checkpoint_section(writer, "counters", counters, sizeof counters, err);
    return status == TFM_STATUS_OK ? each_variable(t, put, &saving) : status;
}

enum tfm_status tfm_trainer_save(struct tfm_trainer *trainer, const char *path,
                                 struct tfm_error *err)
{
    struct tfm_trainer *t = trainer;
    struct tfm_checkpoint_writer *writer = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    if (t->broken[0])
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: not written, since a step failed (%.180s)", path, t->broken);
    status = tfm_checkpoint_writer_create(path, &writer, err);
    if (status == TFM_STATUS_OK)
        status = put_all(t, writer, err);
    if (status == TFM_STATUS_OK)
        status = tfm_checkpoint_writer_finish(writer, err);
    tfm_checkpoint_writer_destroy(writer);
    if (status != TFM_STATUS_OK && t->broken[0])
        tfm_error_prefix(err, "%s: not written", path);
    return status;
}

/* ---- loading ---- */

struct loading {
    const struct tfm_checkpoint *checkpoint;
    struct tfm_error *err;
};

static enum tfm_status find(const struct loading *loading, const char *name, size_t bytes,
                            const void **data)
{
    size_t size = 0;
    const enum tfm_status status =
        tfm_checkpoint_find(loading->checkpoint, name, data, &size, loading->err);

    if (status == TFM_STATUS_OK && size != bytes)
        return tfm_error_set(loading->err, TFM_STATUS_FORMAT,
                             "%s: section \"%s\" has %zu bytes, the model needs %zu",
                             tfm_checkpoint_path(loading->checkpoint), name, size, bytes);
    return status;
}

/* Before anything is changed. */
static enum tfm_status look(void *context, struct tfm_exec *exec, const struct tfm_tensor *tensor)
{
    const void *data;

    (void)exec;
    return find(context, tensor->name, tfm__trainer_bytes(tensor), &data);
}

static enum tfm_status get(void *context, struct tfm_exec *exec, const struct tfm_tensor *tensor)
{
    const struct loading *loading = context;
    const size_t bytes = tfm__trainer_bytes(tensor);
    const void *data = NULL;
    enum tfm_status status = find(loading, tensor->name, bytes, &data);

    if (status == TFM_STATUS_OK)
        status = tfm_exec_state_write(exec, tensor->name, data, bytes, loading->err);
    if (status == TFM_STATUS_OK)
        tfm_checkpoint_drop(loading->checkpoint, data, bytes);
    return status;
}

static size_t line_end(const char *text, size_t size, size_t at)
{
    const char *end = memchr(text + at, '\n', size - at);
    return end ? (size_t)(end - text) : size;
}

/* The first line that differs, both sides. */
static enum tfm_status compare(const struct loading *loading, const char *ours)
{
    const size_t n = strlen(ours);
    const void *data = NULL;
    size_t size = 0, at = 0;

    const enum tfm_status status =
        tfm_checkpoint_find(loading->checkpoint, "identity", &data, &size, loading->err);
    if (status != TFM_STATUS_OK)
        return status;
    const char *theirs = data;
    if (size == n && memcmp(theirs, ours, n) == 0)
        return TFM_STATUS_OK;
    while (at < n && at < size) {
        const size_t a = line_end(theirs, size, at), b = line_end(ours, n, at);
        if (a != b || memcmp(theirs + at, ours + at, a - at) != 0)
            break;
        at = a + 1;
    }
    const size_t from = at < size ? at : size, here = at < n ? at : n;
    return tfm_error_set(
        loading->err, TFM_STATUS_INVALID_ARGUMENT,
        "%s was made with \"%.*s\", but now it is \"%.*s\": train with what it was "
        "made with, or begin anew in another folder",
        tfm_checkpoint_path(loading->checkpoint), (int)(line_end(theirs, size, from) - from),
        theirs + from, (int)(line_end(ours, n, here) - here), ours + here);
}

static enum tfm_status load(struct tfm_trainer *t, struct loading *loading)
{
    const void *data = NULL;
    enum tfm_status status = compare(loading, t->identity);

    if (status == TFM_STATUS_OK)
        status = find(loading, "counters", 8 * COUNTERS, &data);
    if (status == TFM_STATUS_OK)
        status = each_variable(t, look, loading);
    if (status != TFM_STATUS_OK)
        return status;
    /* unusable until the last of them is in its place */
    snprintf(t->broken, sizeof t->broken, "%s could not be loaded",
             tfm_checkpoint_path(loading->checkpoint));
    status = each_variable(t, get, loading);
    if (status == TFM_STATUS_OK)
        status = tfm_optimizer_heal(t->optimizer, loading->err);
    if (status != TFM_STATUS_OK)
        return status;
    const unsigned char *counters = data;
    t->step = tfm__le_load(counters, 8);
    t->place = tfm__le_load(counters + 8, 8);
    t->tokens = tfm__le_load(counters + 16, 8);
    tfm_optimizer_set_steps(t->optimizer, t->step);
    t->broken[0] = 0;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_trainer_load(struct tfm_trainer *trainer,
                                 const struct tfm_checkpoint *checkpoint, struct tfm_error *err)
{
    struct loading loading = {checkpoint, err};

    tfm_error_clear(err);
    return load(trainer, &loading);
}
