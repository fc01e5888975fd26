/* SPDX-License-Identifier: MIT
 * A backend of three ops that is right but for the one fault that it is compiled with: what
 * `tfm check-backend` must find, and must name. With no fault it must pass. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/backend.h>

#include "tests/plugins/wrong.h"

#ifndef WRONG
#define WRONG nothing
#endif

enum fault {
#define TFM_WRONG(name, text) WRONG_##name,
    TFM_WRONGS
#undef TFM_WRONG
};

#define JOIN(a, b)  a##b
#define VALUE(a, b) JOIN(a, b)
#define TEXT(a)     #a
#define NAME(a)     "wrong_" TEXT(a)
static const enum fault fault = VALUE(WRONG_, WRONG);

struct device {
    const struct tfm_host *host;
};

struct buffer {
    size_t bytes;
    _Alignas(64) unsigned char data[];
};

/* ---- the device ---- */

static enum tfm_status wrong_probe(const struct tfm_host *host, const char *params,
                                   struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    memset(report, 0, sizeof *report);
    if (fault == WRONG_probe)
        *(volatile int *)NULL = 1;
    report->usable = 1;
    report->score = -1; /* only when it is named */
    report->n_devices = 1;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "wrong on purpose");
    return TFM_STATUS_OK;
}

static enum tfm_status wrong_open(const struct tfm_host *host, uint32_t index, void **device,
                                  struct tfm_error *err)
{
    if (index != 0)
        return host->error(err, TFM_STATUS_NOT_FOUND, "there is no device %u", (unsigned)index);
    struct device *made = host->alloc(sizeof *made);
    if (!made)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory");
    made->host = host;
    *device = made;
    return TFM_STATUS_OK;
}

static void wrong_close(void *device)
{
    ((struct device *)device)->host->free(device);
}

static void wrong_caps(void *device, struct tfm_device_caps *caps)
{
    (void)device;
    memset(caps, 0, sizeof *caps);
    snprintf(caps->description, sizeof caps->description, "wrong on purpose");
}

/* ---- memory ---- */

static enum tfm_status wrong_alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    const struct tfm_host *host = ((struct device *)device)->host;
    struct buffer *made = NULL;

    if (bytes <= SIZE_MAX / 4)
        made = host->alloc(sizeof *made + bytes);
    if (!made && (fault != WRONG_no_memory || bytes > SIZE_MAX / 4))
        return host->error(err, TFM_STATUS_NOMEM, "out of memory");
    made->bytes = bytes;
    *buffer = made;
    return TFM_STATUS_OK;
}

static void wrong_free(void *device, void *buffer)
{
    if (fault == WRONG_leak && ((struct buffer *)buffer)->bytes > 4096)
        return;
    ((struct device *)device)->host->free(buffer);
}

static void *place(struct tfm_memory memory)
{
    return memory.buffer ? ((struct buffer *)memory.buffer)->data + memory.offset : NULL;
}

static enum tfm_status wrong_upload(void *device, const void *src, struct tfm_memory dst,
                                    size_t bytes, struct tfm_error *err)
{
    (void)device, (void)err;
    memcpy(place(dst), src, bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status wrong_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                      struct tfm_error *err)
{
    (void)device, (void)err;
    memcpy(dst, place(src), bytes);
    return TFM_STATUS_OK;
}

/* ---- ops: x[i] is where input i lies ---- */

static void add(const struct tfm_node *node, float *const *x, float *y, const struct tfm_rows *rows)
{
    const struct tfm_tensor *t = node->outputs[0];
    size_t n = (size_t)(tfm_tensor_rows(t, rows) * tfm_tensor_row_elements(t));

    if (fault == WRONG_dtype && t->dtype == TFM_DTYPE_F16)
        n /= 2; /* as if halves were floats of half the number */
    if (fault == WRONG_past_end)
        n = (n + 3) / 4 * 4;
    for (size_t i = 0; i < n; i++)
        y[i] = x[0][i] + x[1][i];
    if (fault == WRONG_nan_lost)
        for (size_t i = 0; i < n; i++)
            y[i] = isnan(y[i]) ? 0 : y[i];
    if (fault == WRONG_input && n > 1)
        x[1][1] = 0;
}

static void linear(const struct tfm_node *node, float *const *x, float *y,
                   const struct tfm_rows *rows)
{
    static float shared[2048]; /* of one row: two threads must not have one */
    const size_t in = (size_t)node->inputs[1]->shape[1], out = (size_t)node->inputs[1]->shape[0];
    const size_t most = fault == WRONG_ragged && in > 4 ? in / 4 * 4 : in;
    const size_t n = (size_t)tfm_tensor_rows(node->inputs[0], rows);
    float own[2048], *row = fault == WRONG_threads ? shared : own;

    for (size_t r = 0; r < n; r++) {
        for (size_t o = 0; o < out; o++) {
            double sum = fault == WRONG_beta ? 0 * (double)y[r * out + o] : 0;
            for (size_t i = 0; i < most; i++)
                sum += (double)x[0][r * in + i] * x[1][o * in + i];
            row[o] = (float)(node->n_inputs > 2 ? sum + x[2][o] : sum);
        }
        if (fault == WRONG_threads)
            sched_yield();
        memcpy(y + r * out, row, out * sizeof *row);
    }
}

/* The row's own sequence. */
static uint32_t sequence_of(const struct tfm_rows *rows, uint32_t row)
{
    uint32_t s = rows->n_seq - 1;
    while (rows->start[s] > (int32_t)row)
        s--;
    return s;
}

static void attend(const struct tfm_node *node, const float *q, const float *keys,
                   const float *values, size_t cells, size_t stride, float *y)
{
    const size_t d = (size_t)node->attrs.head_dim;
    const double scale = node->attrs.scale != 0 ? node->attrs.scale : 1 / sqrt((double)d);
    double weights[512], most = -INFINITY, total = 0;

    for (size_t c = 0; c < cells; c++) {
        weights[c] = 0;
        for (size_t e = 0; e < d; e++)
            weights[c] += (double)q[e] * keys[c * stride + e] * scale;
        most = weights[c] > most ? weights[c] : most;
    }
    for (size_t c = 0; c < cells; c++)
        total += weights[c] = exp(weights[c] - most);
    for (size_t e = 0; e < d; e++) {
        double sum = 0;
        for (size_t c = 0; c < cells; c++)
            sum += weights[c] / total * values[c * stride + e];
        y[e] = (float)sum;
    }
}

static void attention(const struct tfm_node *node, float *const *x, float *y,
                      const struct tfm_rows *rows)
{
    const size_t heads = (size_t)node->attrs.heads, groups = (size_t)node->attrs.kv_heads;
    const size_t d = (size_t)node->attrs.head_dim, stride = groups * d;
    const size_t cells = (size_t)node->inputs[3]->shape[1];

    for (uint32_t r = 0; r < rows->n; r++) {
        const uint32_t s = sequence_of(rows, r);
        const size_t cell = (size_t)(rows->past[s] + (int32_t)r - rows->start[s]);
        const size_t at = ((size_t)rows->slot[s] * cells + cell) * stride;
        memcpy(x[3] + (fault == WRONG_cell && cell > 0 ? at - stride : at), x[1] + r * stride,
               stride * sizeof *y);
        memcpy(x[4] + at, x[2] + r * stride, stride * sizeof *y);
    }
    for (uint32_t r = 0; r < rows->n; r++) {
        const uint32_t s = sequence_of(rows, r);
        const size_t first = (size_t)rows->slot[s] * cells * stride;
        size_t seen = (size_t)(rows->past[s] + (int32_t)r - rows->start[s]) + 1;
        if (fault == WRONG_mask && seen > 1)
            seen--; /* strictly below its own */
        for (size_t h = 0; h < heads; h++) {
            const size_t g = fault == WRONG_head_map ? h % groups : h / (heads / groups);
            attend(node, x[0] + (r * heads + h) * d, x[3] + first + g * d, x[4] + first + g * d,
                   seen, stride, y + (r * heads + h) * d);
        }
    }
}

static const struct {
    enum tfm_op op;
    void (*run)(const struct tfm_node *node, float *const *x, float *y,
                const struct tfm_rows *rows);
} ops[] = {{TFM_OP_ADD, add}, {TFM_OP_LINEAR, linear}, {TFM_OP_GQA_ATTENTION, attention}};

enum { N_OPS = sizeof ops / sizeof *ops };

static int32_t wrong_supports(void *device, const struct tfm_node *node,
                              const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)device, (void)capacity;
    for (size_t i = 0; i < N_OPS; i++) {
        int fits = ops[i].op == node->op;
        for (uint32_t k = 0; k < node->n_inputs && fits; k++) {
            const enum tfm_dtype dtype = node->inputs[k] ? node->inputs[k]->dtype : TFM_DTYPE_F32;
            fits = dtype == TFM_DTYPE_F32 ||
                   (fault == WRONG_dtype && node->op == TFM_OP_ADD && dtype == TFM_DTYPE_F16);
        }
        if (fits)
            return 1;
    }
    snprintf(reason, size, "not add, linear or gqa_attention in f32");
    return 0;
}

static enum tfm_status wrong_run_node(void *device, const struct tfm_node *node,
                                      const struct tfm_memory *inputs,
                                      const struct tfm_memory *outputs, const struct tfm_rows *rows,
                                      struct tfm_error *err)
{
    float *x[TFM_MAX_INPUTS] = {NULL};

    (void)device, (void)err;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        struct tfm_memory memory = inputs[i];
        if (fault == WRONG_offset && i == 1 && node->op == TFM_OP_ADD)
            memory.offset = 0;
        x[i] = place(memory);
    }
    if (fault == WRONG_crash && rows->n == 0)
        *(volatile int *)NULL = 1;
    if (fault == WRONG_exit && rows->n == 31)
        exit(3);
    for (size_t i = 0; i < N_OPS; i++)
        if (ops[i].op == node->op)
            ops[i].run(node, x, place(outputs[0]), rows);
    return TFM_STATUS_OK;
}

/* Built for the first ABI: younger nodes are not its business. */
TFM_API extern const struct tfm_backend tfm_backend_v1;
const struct tfm_backend tfm_backend_v1 = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = 0,
    .struct_size = sizeof(struct tfm_backend),
    .name = NAME(WRONG),
    .version = "1",
    .license = "MIT",
    .probe = wrong_probe,
    .open = wrong_open,
    .close = wrong_close,
    .caps = wrong_caps,
    .alloc = wrong_alloc,
    .free = wrong_free,
    .upload = wrong_upload,
    .download = wrong_download,
    .supports = wrong_supports,
    .run_node = wrong_run_node,
};
