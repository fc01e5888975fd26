/* SPDX-License-Identifier: MIT
 * The variables of the environment that choose between ways to compute. They are read once, when a device is
 * opened; an unknown word is an error, never another way. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/tune.h"

enum { WORDS = 4 };

struct choice {
    const char *variable, *words[WORDS]; /* up to the first NULL; the first is the default */
};

/* *value: index of the word that the variable holds; 0 when it is not set or empty. */
static enum tfm_status choose(const struct tfm_host *host, const struct choice *choice,
                              size_t *value, struct tfm_error *err)
{
    const char *text = secure_getenv(choice->variable);
    char list[128] = "";

    *value = 0;
    if (!text || !text[0])
        return TFM_STATUS_OK;
    for (size_t i = 0; i < WORDS && choice->words[i]; i++) {
        if (strcmp(text, choice->words[i]) == 0) {
            *value = i;
            return TFM_STATUS_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", choice->words[i]);
    }
    return host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                       "opencl: %s is '%.40s'; it must be one of: %s", choice->variable, text,
                       list);
}

/* ---- GEMM ---- */

enum { GEMM_AUTO, GEMM_OWN, GEMM_CLBLAST };

static enum tfm_status read_gemm(struct tfm__cl_device *d, struct tfm_error *err)
{
    static const struct choice choice = {"TFM_OPENCL_GEMM", {"auto", "own", "clblast", NULL}};
    size_t value;
    int tuned = 0;
    const enum tfm_status status = choose(d->host, &choice, &value, err);

    if (status != TFM_STATUS_OK)
        return status;
    const uint32_t wanted = tfm__cl_tuned(d, TFM__CL_TUNE_GEMM, &tuned);
    const int own = value == GEMM_OWN || (value == GEMM_AUTO && wanted == TFM__CL_GEMM_OWN);
    d->settings.gemm = own ? TFM__CL_GEMM_OWN : TFM__CL_GEMM_CLBLAST;
    tfm__cl_choose(d, "GEMM of many rows", own ? "our own kernel" : "CLBlast",
                   value != GEMM_AUTO ? "TFM_OPENCL_GEMM says so"
                   : tuned            ? "tfm tune measured it"
                   : own              ? "the device is a CPU"
                                      : "the device is not a CPU");
    return TFM_STATUS_OK;
}

/* ---- shape and limits ---- */

enum { SHAPE_AUTO, SHAPE_WIDE, SHAPE_GROUP };

/* *value: the whole number of at least 1 that the variable holds; 0 when it is not set or empty. */
static enum tfm_status read_number(const struct tfm_host *host, const char *variable, size_t *value,
                                   struct tfm_error *err)
{
    const char *text = secure_getenv(variable);
    char *end = NULL;

    *value = 0;
    if (!text || !text[0])
        return TFM_STATUS_OK;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number == 0 || number > SIZE_MAX)
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                           "opencl: %s is '%.40s'; it must be a whole number of at least 1",
                           variable, text);
    *value = (size_t)number;
    return TFM_STATUS_OK;
}

/* The wide shape lives on vectors of 16. Where the device itself has none, every one of them becomes 16 scalars:
 * work-items side by side are what fills such a device, also a CPU, and in the wide shape the kernels
 * are kept short (TFM_NARROW in kernels/common.cl), since its compiler may not come to an end with the full ones. */
static enum tfm_status read_shape(struct tfm__cl_device *d, struct tfm_error *err)
{
    static const struct choice choice = {"TFM_OPENCL_SHAPE", {"auto", "wide", "group", NULL}};
    size_t value, cap = 0;
    cl_uint vector = 0;
    int tuned = 0;
    char group[48];
    enum tfm_status status = choose(d->host, &choice, &value, err);

    if (status == TFM_STATUS_OK)
        status = read_number(d->host, "TFM_OPENCL_MAX_GROUP", &cap, err);
    const uint32_t most = tfm__cl_tuned(d, TFM__CL_TUNE_GROUP, NULL);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_group_limit(d, cap && cap < most ? cap : most, err);
    if (status != TFM_STATUS_OK)
        return status;
    const cl_int code =
        clGetDeviceInfo(d->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof vector, &vector, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clGetDeviceInfo", code);
    const int large = d->settings.group >= TFM__CL_GROUP_LEAST;
    const uint32_t wanted = tfm__cl_tuned(d, TFM__CL_TUNE_SHAPE, &tuned);
    const int grouped =
        large && (value == SHAPE_GROUP ||
                  (value == SHAPE_AUTO && (wanted == TFM__CL_GROUP || (!tuned && vector <= 1))));
    d->settings.shape = grouped ? TFM__CL_GROUP : TFM__CL_WIDE;
    d->settings.narrow = !grouped && vector <= 1;
    snprintf(group, sizeof group, "group, up to %u work-items", d->settings.group);
    tfm__cl_choose(d, "shape of the kernels",
                   grouped              ? group
                   : d->settings.narrow ? "wide, short kernels for a device without vectors"
                                        : "wide",
                   !large                      ? "groups here are too small to share work"
                   : value != SHAPE_AUTO       ? "TFM_OPENCL_SHAPE says so"
                   : tuned                     ? "tfm tune measured it"
                   : d->kind != TFM_DEVICE_CPU ? "the device is not a CPU"
                   : grouped                   ? "the device has no vectors of its own"
                                               : "the device is a CPU with vectors");
    return TFM_STATUS_OK;
}

/* As if the device had less memory for a buffer than it has. */
static enum tfm_status read_max_alloc(struct tfm__cl_device *d, struct tfm_error *err)
{
    size_t bytes;
    const enum tfm_status status = read_number(d->host, "TFM_OPENCL_MAX_ALLOC", &bytes, err);

    if (status == TFM_STATUS_OK && bytes && bytes < d->max_alloc)
        d->max_alloc = bytes;
    return status;
}

/* ---- activations ---- */

static enum tfm_status read_act(struct tfm__cl_device *d, struct tfm_error *err)
{
    static const struct choice choice = {"TFM_ACT", {"auto", "f32", "int8", "bf16"}};
    static const enum tfm__cl_act_choice acts[] = {TFM__CL_ACT_AUTO, TFM__CL_ACT_F32,
                                                   TFM__CL_ACT_INT8, TFM__CL_ACT_F32};
    /* rounding to 8 bits is coarser than to bf16: who allows that allows this */
    static const enum tfm__cl_bf16_choice bf16[] = {TFM__CL_BF16_FAST, TFM__CL_BF16_OFF,
                                                    TFM__CL_BF16_FAST, TFM__CL_BF16_ANY};
    size_t value;
    const enum tfm_status status = choose(d->host, &choice, &value, err);

    if (status != TFM_STATUS_OK)
        return status;
    d->settings.bf16 = bf16[value];
    int tuned;
    const uint32_t wanted = tfm__cl_tuned(d, TFM__CL_TUNE_ACT, &tuned);
    d->settings.act_tuned = acts[value] == TFM__CL_ACT_AUTO && tuned;
    d->settings.act = !d->settings.act_tuned ? acts[value]
                      : wanted               ? TFM__CL_ACT_INT8
                                             : TFM__CL_ACT_F32;
    return TFM_STATUS_OK;
}

/* ---- persistent kernels ---- */

static enum tfm_status read_persistent(struct tfm__cl_device *d, struct tfm_error *err)
{
    static const struct choice choice = {"TFM_OPENCL_PERSISTENT", {"auto", "on", "off", NULL}};
    static const enum tfm__cl_persistent meanings[] = {
        TFM__CL_PERSISTENT_AUTO, TFM__CL_PERSISTENT_ON, TFM__CL_PERSISTENT_OFF};
    size_t value;
    const enum tfm_status status = choose(d->host, &choice, &value, err);

    if (status != TFM_STATUS_OK)
        return status;
    d->settings.persistent = meanings[value];
    if (d->settings.persistent == TFM__CL_PERSISTENT_ON && d->kind != TFM_DEVICE_CPU)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                              "opencl: TFM_OPENCL_PERSISTENT is 'on', but %s is no CPU, and others "
                              "do not run work-groups at the same time; use auto or off",
                              d->name);
    if (d->settings.persistent == TFM__CL_PERSISTENT_ON && d->settings.shape != TFM__CL_WIDE)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                              "opencl: TFM_OPENCL_PERSISTENT is 'on', but the group shape has no "
                              "persistent kernel; use auto or off, or TFM_OPENCL_SHAPE=wide");
    if (d->settings.persistent == TFM__CL_PERSISTENT_ON && d->settings.narrow)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                              "opencl: TFM_OPENCL_PERSISTENT is 'on', but %s has no vectors of its "
                              "own, which that kernel is made of; use auto or off",
                              d->name);
    const int cpu = tfm__cl_has_phases(d);
    const int tuned = !value && cpu && tfm__cl_tuned(d, TFM__CL_TUNE_PERSISTENT, NULL) == 1;
    if (tuned)
        d->settings.persistent = TFM__CL_PERSISTENT_OFF;
    tfm__cl_choose(d, "persistent kernel",
                   value || tuned || !cpu ? value == 1 ? "on" : "off" : "if it can",
                   value   ? "TFM_OPENCL_PERSISTENT says so"
                   : tuned ? "tfm tune measured it"
                   : !cpu  ? "only a CPU with vectors in the wide shape has one"
                           : "a model that is opened has to show that barriers are fast");
    return TFM_STATUS_OK;
}

/* What no variable says. Work-groups a unit change no result; the cells of a split do, in the last bits. */
static void read_rest(struct tfm__cl_device *d)
{
    char text[64];
    int parts, split, few;

    d->parts = d->units * tfm__cl_tuned(d, TFM__CL_TUNE_PARTS, &parts);
    d->settings.split = tfm__cl_tuned(d, TFM__CL_TUNE_SPLIT, &split);
    d->settings.few = tfm__cl_tuned(d, TFM__CL_TUNE_FEW, &few);
    if (parts) {
        snprintf(text, sizeof text, "%u", d->parts);
        tfm__cl_choose(d, "parts of a launch", text, "tfm tune measured it");
    }
    if (split || few) {
        snprintf(text, sizeof text, "%u cells, %u of few rows", d->settings.split, d->settings.few);
        tfm__cl_choose(d, "splits of a context", text, "tfm tune measured it");
    }
}

/* ---- threads ---- */

static enum tfm_status read_pin(struct tfm__cl_device *d, struct tfm_error *err)
{
    static const struct choice choice = {"TFM_OPENCL_PIN", {"auto", "off", NULL}};
    size_t value;
    const enum tfm_status status = choose(d->host, &choice, &value, err);

    if (status == TFM_STATUS_OK)
        d->settings.pin = value == 0;
    return status;
}

enum tfm_status tfm__cl_settings_read(struct tfm__cl_device *d, struct tfm_error *err)
{
    enum tfm_status status = read_gemm(d, err);

    read_rest(d);
    if (status == TFM_STATUS_OK)
        status = read_act(d, err);
    if (status == TFM_STATUS_OK)
        status = read_shape(d, err);
    if (status == TFM_STATUS_OK)
        status = read_max_alloc(d, err);
    if (status == TFM_STATUS_OK)
        status = read_pin(d, err);
    return status == TFM_STATUS_OK ? read_persistent(d, err) : status;
}
