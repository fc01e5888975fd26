/* SPDX-License-Identifier: MIT
 * Which way of kernels/bf16.cl a device gets: the first that it takes and that was seen to compute the right sums.
 * With TFM_ACT=auto it must be a fast one, and it is found out when the first linear of a trained BF16 weight
 * is looked at: it takes a program of its own. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/ways.h"

/* vdpbf16ps in inline assembly. */
static int may_assemble(const struct tfm__cl_device *d)
{
    return tfm__cl_way_assembles(d) && TFM__CL_PROCESSOR_HAS("avx512bf16");
}

/* ---- proof ---- */

enum { PROOF_WORDS = 24 };

struct proof {
    uint16_t w[PROOF_WORDS][TFM_PANEL][2], x[PROOF_WORDS][2];
    float y[TFM_PANEL];
    uint32_t f[PROOF_WORDS][TFM_PANEL], g[PROOF_WORDS][TFM_PANEL];
    uint16_t h[PROOF_WORDS][2][TFM_PANEL];
};

/* Whole numbers of up to 127 are bf16, and their sums f32. */
static float proof_value(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int)(*state >> 25) - 64.0f;
}

static uint16_t upper(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* The floats to be rounded: between two of bf16, in the middle of them, infinities, NaN. */
static void proof_fill(struct proof *p)
{
    static const uint32_t special[] = {0,           0x80000000u, 0x7f800000u, 0xff800000u,
                                       0x3f808000u, 0x3f818000u, 0x3f7fffffu, 0x7f7fffffu};
    uint32_t state = 1;

    for (size_t i = 0; i < PROOF_WORDS; i++) {
        for (size_t k = 0; k < 2; k++) {
            for (size_t lane = 0; lane < TFM_PANEL; lane++)
                p->w[i][lane][k] = upper(proof_value(&state));
            p->x[i][k] = upper(proof_value(&state));
        }
        for (size_t lane = 0; lane < TFM_PANEL; lane++) {
            state = state * 1664525u + 1013904223u;
            p->f[i][lane] = i == 0 && lane < sizeof special / sizeof *special
                                ? special[lane]
                                : 0x3f000000u + (state >> 8) % 0x01000000u;
        }
    }
    p->f[1][0] = 0x7f800001u; /* NaN, whose upper half alone is an infinity */
}

static int rounds_right(uint32_t from, uint32_t to)
{
    if ((from & 0x7fffffffu) > 0x7f800000u)
        return (to & 0x7fffu) > 0x7f80u && to <= 0xffffu;
    return to == (from + 0x7fffu + (from >> 16 & 1u)) >> 16;
}

static float value_of(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static int proof_right(const struct proof *p)
{
    for (size_t lane = 0; lane < TFM_PANEL; lane++) {
        float sum = 0;
        for (size_t i = 0; i < PROOF_WORDS; i++) {
            for (size_t k = 0; k < 2; k++)
                sum += value_of(p->w[i][lane][k]) * value_of(p->x[i][k]);
            if (!rounds_right(p->f[i][lane], p->g[i][lane]) ||
                !rounds_right(p->f[i][lane], p->h[i][0][lane]) ||
                !rounds_right(p->f[i][lane] ^ 0x80000000u, p->h[i][1][lane]))
                return 0;
        }
        if (sum != p->y[lane])
            return 0;
    }
    return 1;
}

static enum tfm_status prove(struct tfm__cl_device *d, const struct tfm__cl_way *way, int *right,
                             struct tfm_error *err)
{
    const struct tfm__cl_kernel kernel = {"matrix.cl", "tfm_run_bf16_proof", way->options};
    struct proof proof;

    memset(&proof, 0, sizeof proof);
    proof_fill(&proof);
    const struct tfm__cl_proof run = {
        .kernel = &kernel,
        .what = "the proof of products of bf16",
        .n = 6,
        .host = {proof.w, proof.x, proof.y, proof.f, proof.g, proof.h},
        .bytes = {sizeof proof.w, sizeof proof.x, sizeof proof.y, sizeof proof.f, sizeof proof.g,
                  sizeof proof.h},
        .words = PROOF_WORDS};
    const enum tfm_status status = tfm__cl_proof_run(d, &run, err);

    *right = status == TFM_STATUS_OK && proof_right(&proof);
    return status;
}

static const struct tfm__cl_way bf16_ways[] = {
    {"vdpbf16ps", TFM__CL_MATRIX_OPTIONS " -DTFM_BF16_WAY=1", may_assemble, 1},
    {"plain arithmetic", TFM__CL_MATRIX_OPTIONS " -DTFM_BF16_WAY=0", NULL, 0},
};
static const struct tfm__cl_ways ways = {"bf16", bf16_ways, sizeof bf16_ways / sizeof *bf16_ways,
                                         prove};

/* ---- choice ---- */

static void tell(struct tfm__cl_device *d, const char *choice, const char *why)
{
    tfm__cl_choose(d, "products of trained BF16 weights", choice, why);
}

/* 0 = there is no way that is right, and why_f32 says what that means. */
static int take_way(struct tfm__cl_device *d, int any, char *why_f32)
{
    const struct tfm__cl_way *way = tfm__cl_way_find(d, &ways, any, why_f32);
    char text[96];

    if (!way)
        return 0;
    d->settings.bf16_options = way->options;
    atomic_store(&d->settings.bf16, TFM__CL_BF16_ON);
    snprintf(text, sizeof text, "bf16, by %s", way->name);
    tell(d, text, any ? "TFM_ACT says so" : "the device is fast at it");
    return 1;
}

enum tfm_status tfm__cl_bf16_open(struct tfm__cl_device *d, struct tfm_error *err)
{
    const int wanted = atomic_load(&d->settings.bf16);
    char why_f32[TFM__CL_WAY_WHY];

    if (wanted == TFM__CL_BF16_OFF)
        tell(d, "f32", "TFM_ACT says so");
    if (d->settings.shape == TFM__CL_GROUP && wanted == TFM__CL_BF16_ANY)
        return d->host->error(
            err, TFM_STATUS_UNSUPPORTED,
            "opencl: TFM_ACT is bf16, and the kernels of the group shape multiply "
            "f32 alone; use TFM_ACT=f32 or TFM_OPENCL_SHAPE=wide");
    if (d->settings.shape == TFM__CL_GROUP && wanted == TFM__CL_BF16_FAST) {
        atomic_store(&d->settings.bf16, TFM__CL_BF16_OFF);
        tell(d, "f32", "the kernels of bf16 are made for the wide shape");
    }
    if (wanted != TFM__CL_BF16_ANY || take_way(d, 1, why_f32))
        return TFM_STATUS_OK;
    return d->host->error(
        err, TFM_STATUS_UNSUPPORTED,
        "opencl: TFM_ACT is bf16, and %s multiplies bf16 in no way that is right; "
        "use TFM_ACT=f32",
        d->name);
}

void tfm__cl_bf16_settle(const struct tfm__cl_device *device)
{
    struct tfm__cl_device *d = (struct tfm__cl_device *)(uintptr_t)device;
    char why_f32[TFM__CL_WAY_WHY];

    if (atomic_load(&d->settings.bf16) != TFM__CL_BF16_FAST)
        return;
    pthread_mutex_lock(&d->act_lock);
    if (atomic_load(&d->settings.bf16) == TFM__CL_BF16_FAST && !take_way(d, 0, why_f32)) {
        atomic_store(&d->settings.bf16, TFM__CL_BF16_OFF);
        tell(d, "f32", why_f32);
    }
    pthread_mutex_unlock(&d->act_lock);
}

int tfm__cl_bf16_is_on(const struct tfm__cl_device *d)
{
    tfm__cl_bf16_settle(d);
    return atomic_load(&d->settings.bf16) == TFM__CL_BF16_ON;
}
