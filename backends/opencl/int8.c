/* SPDX-License-Identifier: MIT
 * Which way of kernels/int8.cl a device gets: the first that it takes and that was seen to compute the right
 * integers (ways.h). With TFM_ACT=auto that is
 * found out when the first linear is looked at: it may take a program of its own. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/ways.h"

/* ---- what may be tried ---- */

/* vpdpbusd in inline assembly. */
static int may_assemble(const struct tfm__cl_device *d)
{
    return tfm__cl_way_assembles(d) && TFM__CL_PROCESSOR_HAS("avx512vnni");
}

static int has_dot_product(const struct tfm__cl_device *d)
{
    size_t bytes = 0;
    int found = 0;

    if (clGetDeviceInfo(d->id, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) != CL_SUCCESS || bytes == 0)
        return 0;
    char *text = d->host->alloc(bytes + 1);
    if (!text)
        return 0;
    if (clGetDeviceInfo(d->id, CL_DEVICE_EXTENSIONS, bytes, text, NULL) == CL_SUCCESS) {
        text[bytes] = 0;
        found = strstr(text, "cl_khr_integer_dot_product") != NULL;
    }
    d->host->free(text);
    return found;
}

/* ---- proof ---- */

enum { PROOF_WORDS = 24 };

struct proof {
    uint8_t w[PROOF_WORDS][TFM_PANEL][4];
    int8_t x[PROOF_WORDS][4];
    int32_t y[TFM_PANEL];
};

static void proof_fill(struct proof *p)
{
    uint32_t state = 1;

    for (size_t i = 0; i < PROOF_WORDS; i++) {
        for (size_t k = 0; k < TFM_PANEL * 4 + 4; k++) {
            state = state * 1664525u + 1013904223u;
            const uint8_t byte = (uint8_t)(state >> 24);
            if (k < TFM_PANEL * 4)
                p->w[i][k / 4][k % 4] = i < 2 ? 255 : byte; /* and the largest that there are */
            else
                p->x[i][k - TFM_PANEL * 4] = (int8_t)(i == 0   ? 127
                                                      : i == 1 ? -127
                                                               : (int)byte - 128);
        }
    }
}

static int proof_right(const struct proof *p)
{
    for (size_t lane = 0; lane < TFM_PANEL; lane++) {
        int32_t sum = 0;
        for (size_t i = 0; i < PROOF_WORDS; i++) {
            for (size_t k = 0; k < 4; k++)
                sum += (int32_t)p->w[i][lane][k] * p->x[i][k];
        }
        if (sum != p->y[lane])
            return 0;
    }
    return 1;
}

static enum tfm_status prove(struct tfm__cl_device *d, const struct tfm__cl_way *way, int *right,
                             struct tfm_error *err)
{
    const int common = d->proof && strcmp(d->proof, way->options) == 0;
    const struct tfm__cl_kernel kernel = {common ? NULL : "linear_int8.cl", "tfm_run_int8_proof",
                                          common ? NULL : way->options};
    struct proof proof = {.y = {0}};

    proof_fill(&proof);
    const struct tfm__cl_proof run = {.kernel = &kernel,
                                      .what = "the proof of products of bytes",
                                      .n = 3,
                                      .host = {proof.w, proof.x, proof.y},
                                      .bytes = {sizeof proof.w, sizeof proof.x, sizeof proof.y},
                                      .words = PROOF_WORDS};
    const enum tfm_status status = tfm__cl_proof_run(d, &run, err);

    *right = status == TFM_STATUS_OK && proof_right(&proof);
    return status;
}

/* ---- choice ---- */

static const struct tfm__cl_way int8_ways[] = {
    {"vpdpbusd", "-DTFM_INT8_WAY=2", may_assemble, 1},
    {"integer dot products", "-DTFM_INT8_WAY=1", has_dot_product, 1},
    {"plain arithmetic", "-DTFM_INT8_WAY=0", NULL, 0},
};
static const struct tfm__cl_ways ways = {"bytes", int8_ways, sizeof int8_ways / sizeof *int8_ways,
                                         prove};

const char *tfm__cl_int8_guess(const struct tfm__cl_device *d)
{
    return may_assemble(d) && d->settings.shape == TFM__CL_WIDE ? int8_ways[0].options : NULL;
}

/* 0 = there is no way that is right, and why_f32 says what that means. named: who asked for one, or NULL. */
static int take_way(struct tfm__cl_device *d, const char *named, char *why_f32)
{
    const struct tfm__cl_way *way = tfm__cl_way_find(d, &ways, named != NULL, why_f32);
    char text[96];

    if (!way)
        return 0;
    d->settings.int8 = way->options;
    atomic_store(&d->settings.act, TFM__CL_ACT_INT8);
    snprintf(text, sizeof text, "8 bits, by %s", way->name);
    tfm__cl_choose(d, "activations", text, named ? named : "the device is fast at it");
    return 1;
}

static void take_f32(struct tfm__cl_device *d, const char *why)
{
    atomic_store(&d->settings.act, TFM__CL_ACT_F32);
    tfm__cl_choose(d, "activations", "f32", why);
}

enum tfm_status tfm__cl_int8_open(struct tfm__cl_device *d, struct tfm_error *err)
{
    const char *named = d->settings.act_tuned ? "tfm tune measured it" : "TFM_ACT says so";
    const int act = atomic_load(&d->settings.act);
    char why_f32[TFM__CL_WAY_WHY];

    if (act == TFM__CL_ACT_F32)
        tfm__cl_choose(d, "activations", "f32", named);
    /* one work-item a group would compute all of it */
    if (act == TFM__CL_ACT_AUTO && d->settings.shape == TFM__CL_GROUP)
        take_f32(d, "the kernels of 8 bits are made for the wide shape");
    if (act != TFM__CL_ACT_INT8 || take_way(d, named, why_f32))
        return TFM_STATUS_OK;
    if (!d->settings.act_tuned)
        return d->host->error(err, TFM_STATUS_UNSUPPORTED,
                              "opencl: TFM_ACT is int8, and %s multiplies bytes in no way that is "
                              "right; use TFM_ACT=f32",
                              d->name);
    take_f32(d, why_f32);
    return TFM_STATUS_OK;
}

void tfm__cl_int8_settle(const struct tfm__cl_device *device)
{
    struct tfm__cl_device *d = (struct tfm__cl_device *)(uintptr_t)device;
    char why_f32[TFM__CL_WAY_WHY];

    if (atomic_load(&d->settings.act) != TFM__CL_ACT_AUTO)
        return;
    pthread_mutex_lock(&d->act_lock);
    if (atomic_load(&d->settings.act) == TFM__CL_ACT_AUTO && !take_way(d, NULL, why_f32))
        take_f32(d, why_f32);
    pthread_mutex_unlock(&d->act_lock);
}
