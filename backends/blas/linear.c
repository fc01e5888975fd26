/* SPDX-License-Identifier: MIT
 * linear: y = x W^T (+ b) as one product of OpenBLAS when the weight can be read as it is, else as
 * products of tiles of the weight that are converted (F16, BF16) or only moved (unaligned) first.
 * With a bias y begins as the bias and the product is added. */
#include "backends/blas/blas.h"

#include <stdio.h>
#include <string.h>

enum { FEATURES = 64, CHUNK = 256 };

struct work {
    const struct tfm_host *host;
    struct tfm__blas_gemm gemm; /* of the whole node */
    enum tfm_dtype w_dtype;
    const void *bias; /* or NULL */
};

static int say(char *reason, size_t size, const char *text)
{
    snprintf(reason, size, "linear: %s", text);
    return 0;
}

/* Rows of the product: [N, in], or [N, ..., in] taken as [N ..., in]. */
static int64_t rows_of(const struct tfm_tensor *x, int64_t outer)
{
    return outer * tfm_tensor_row_elements(x) / x->shape[x->rank - 1];
}

int32_t tfm__blas_linear_supports(const struct tfm__blas_device *device,
                                  const struct tfm_node *node, const struct tfm_capacity *capacity,
                                  char *reason, size_t size)
{
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const struct tfm_tensor *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    const struct tfm_dtype_info *info = device->host->dtype_info(weight->dtype);
    const int64_t outer = tfm_tensor_rows_most(x, capacity);

    if (!info || info->dtype_class != TFM_DTYPE_FLOAT)
        return say(reason, size, "only float weights, none that are quantized");
    if (x->dtype != TFM_DTYPE_F32 && x->dtype != TFM_DTYPE_F64)
        return say(reason, size, "x must be f32 or f64");
    if ((x->dtype == TFM_DTYPE_F64) != (weight->dtype == TFM_DTYPE_F64) ||
        node->outputs[0]->dtype != x->dtype || (bias && bias->dtype != x->dtype))
        return say(reason, size, "f64 goes with f64 only");
    if (x->extent == TFM_EXTENT_FIXED || weight->rank != 2 || x->rank < 2 ||
        weight->shape[1] != x->shape[x->rank - 1])
        return say(reason, size, "x must be [N, ..., in] and the weight [out, in]");
    if (rows_of(x, outer) > INT32_MAX || weight->shape[0] > INT32_MAX ||
        weight->shape[1] > INT32_MAX)
        return say(reason, size, "an extent passes the 32 bits of BLAS");
    return 1;
}

static size_t element(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 ? sizeof(double) : sizeof(float);
}

/* The bias, which may be unaligned, in every row of y. */
static void begin_with_bias(const struct work *w)
{
    const struct tfm__blas_gemm *g = &w->gemm;
    const size_t bytes = (size_t)g->out * element(g->dtype);

    for (int32_t r = 0; r < g->rows; r++)
        memcpy((unsigned char *)g->y + (size_t)r * bytes, w->bias, bytes);
}

/* `n` values of the weight from number `first` on, as the product reads them. */
static void unpack(const struct work *w, size_t first, size_t n, void *to)
{
    const size_t bytes = element(w->gemm.dtype);

    if (w->w_dtype == w->gemm.dtype)
        memcpy(to, (const unsigned char *)w->gemm.w + first * bytes, n * bytes);
    else
        w->host->to_f32(w->w_dtype, w->gemm.w, first, n, to);
}

/* Features begin..begin + n of all rows. The chunks of a sum are added in order. */
static void multiply_tile(const struct work *w, int32_t begin, int32_t n)
{
    double tile[FEATURES * CHUNK]; /* room for either type */
    const size_t bytes = element(w->gemm.dtype);

    for (int32_t first = 0; first < w->gemm.in; first += CHUNK) {
        struct tfm__blas_gemm g = w->gemm;
        g.in = w->gemm.in - first < CHUNK ? w->gemm.in - first : CHUNK;
        g.out = n;
        g.x = (const unsigned char *)w->gemm.x + (size_t)first * bytes;
        g.w = tile;
        g.y = (unsigned char *)w->gemm.y + (size_t)begin * bytes;
        g.ldb = g.in;
        g.beta = first > 0 ? 1 : w->gemm.beta;
        for (int32_t f = 0; f < n; f++)
            unpack(w, (size_t)(begin + f) * (size_t)w->gemm.in + (size_t)first, (size_t)g.in,
                   (unsigned char *)tile + (size_t)f * (size_t)g.in * bytes);
        tfm__blas_multiply(&g);
    }
}

static void *at(struct tfm_memory memory)
{
    return (unsigned char *)memory.buffer + memory.offset;
}

enum tfm_status tfm__blas_linear_run(const struct tfm__blas_device *device,
                                     const struct tfm_node *node, const struct tfm_memory *inputs,
                                     const struct tfm_memory *outputs, const struct tfm_rows *rows,
                                     struct tfm_error *err)
{
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const int biased = node->n_inputs > 2 && node->inputs[2];
    const int32_t in = (int32_t)weight->shape[1], out = (int32_t)weight->shape[0];
    const struct work w = {
        .host = device->host,
        .gemm = {.dtype = x->dtype,
                 .rows = (int32_t)rows_of(x, tfm_tensor_rows(x, rows)),
                 .out = out,
                 .in = in,
                 .x = at(inputs[0]),
                 .w = at(inputs[1]),
                 .y = at(outputs[0]),
                 .lda = in,
                 .ldb = in,
                 .ldc = out,
                 .beta = biased ? 1 : 0,
                 .threads = device->threads},
        .w_dtype = weight->dtype,
        .bias = biased ? at(inputs[2]) : NULL,
    };

    (void)err;
    if (w.gemm.rows == 0)
        return TFM_STATUS_OK;
    if (biased)
        begin_with_bias(&w);
    /* a weight in a mapped file may lie anywhere */
    if (weight->dtype == x->dtype && (uintptr_t)w.gemm.w % element(x->dtype) == 0)
        tfm__blas_multiply(&w.gemm);
    else
        for (int32_t f = 0; f < out; f += FEATURES)
            multiply_tile(&w, f, out - f < FEATURES ? out - f : FEATURES);
    return TFM_STATUS_OK;
}
