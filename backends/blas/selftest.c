/* SPDX-License-Identifier: MIT
 * Old builds of OpenBLAS compute wrong results on processors that are younger than they are, so
 * nothing is taken on trust: products of odd shapes, against plain loops in double. */
#include "backends/blas/blas.h"

#include <math.h>
#include <string.h>

/* Below and above the sizes at which OpenBLAS changes its kernels; `gap` elements lie between two
 * rows of each matrix. */
static const struct shape {
    int32_t rows, out, in, gap;
    double beta;
} shapes[] = {
    {1, 1, 1, 0, 0},     {3, 5, 7, 1, 0},     {1, 129, 33, 0, 0},    {17, 64, 576, 0, 1},
    {31, 33, 65, 3, 1},  {65, 31, 129, 0, 0}, {129, 65, 300, 5, 0},  {7, 70, 512, 0, 1},
    {130, 1, 257, 0, 0}, {2, 3, 1537, 0, 0},  {64, 130, 191, 31, 1},
};

enum {
    SHAPES = sizeof shapes / sizeof *shapes,
    MATRIX = 40000, /* elements, enough for each of them */
};

struct memory {
    double x[MATRIX], w[MATRIX], y[MATRIX], before[MATRIX]; /* of the dtype */
    double factors_x[MATRIX], factors_w[MATRIX]; /* x and w in double, as they were rounded */
};

/* A number in [-1, 1) that depends on its arguments alone. */
static double value(uint32_t seed, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u + 1;
    x = (x ^ (x >> 15)) * 2246822519u;
    x = (x ^ (x >> 13)) * 3266489917u;
    return (double)(x ^ (x >> 16)) / 2147483648.0 - 1;
}

static void put(enum tfm_dtype dtype, void *data, size_t i, double number)
{
    if (dtype == TFM_DTYPE_F64)
        ((double *)data)[i] = number;
    else
        ((float *)data)[i] = (float)number;
}

static double get(enum tfm_dtype dtype, const void *data, size_t i)
{
    return dtype == TFM_DTYPE_F64 ? ((const double *)data)[i] : ((const float *)data)[i];
}

/* x and w, the same for all shapes of a dtype. */
static void fill_factors(struct memory *m, enum tfm_dtype dtype)
{
    for (size_t i = 0; i < MATRIX; i++) {
        put(dtype, m->x, i, value(1, i));
        put(dtype, m->w, i, value(2, i));
        m->factors_x[i] = get(dtype, m->x, i);
        m->factors_w[i] = get(dtype, m->w, i);
    }
}

/* With beta 0 the old content must not count: it is NaN, as the gaps are, which must stay. */
static void fill_output(struct memory *m, const struct tfm__blas_gemm *g)
{
    const size_t n = (size_t)g->rows * (size_t)g->ldc;

    for (size_t i = 0; i < n; i++) {
        const int inside = i % (size_t)g->ldc < (size_t)g->out;
        put(g->dtype, m->y, i, inside && g->beta != 0 ? value(3, i) : (double)NAN);
    }
    memcpy(m->before, m->y, n * (g->dtype == TFM_DTYPE_F64 ? sizeof(double) : sizeof(float)));
}

/* Adds n products to *sum, and what they are without their signs to *size; eight at a time, which do not
 * wait for each other. */
static void add_products(const double *x, const double *w, size_t n, double *sum, double *size)
{
    enum { CHAINS = 8 };
    double sums[CHAINS] = {0}, sizes[CHAINS] = {0};
    size_t k = 0;

    for (; k + CHAINS <= n; k += CHAINS) {
        for (size_t i = 0; i < CHAINS; i++) {
            const double product = x[k + i] * w[k + i];
            sums[i] += product;
            sizes[i] += fabs(product);
        }
    }
    for (size_t i = 0; k + i < n; i++) {
        const double product = x[k + i] * w[k + i];
        sums[i] += product;
        sizes[i] += fabs(product);
    }
    for (size_t i = 0; i < CHAINS; i++) {
        *sum += sums[i];
        *size += sizes[i];
    }
}

/* 1 if y[r, c] is right. The bound holds for every order of summation (N. J. Higham, Accuracy and
 * Stability of Numerical Algorithms, section 3.1). */
static int is_right(const struct memory *m, const struct tfm__blas_gemm *g, int32_t r, int32_t c,
                    double *got, double *want)
{
    const double unit = g->dtype == TFM_DTYPE_F64 ? 0x1p-53 : 0x1p-24;
    const size_t at = (size_t)r * (size_t)g->ldc + (size_t)c;
    double sum = 0, size = 0;

    *got = get(g->dtype, m->y, at);
    *want = get(g->dtype, m->before, at);
    if (c >= g->out)
        return isnan(*got);
    if (g->beta != 0)
        sum = g->beta * *want;
    size = fabs(sum);
    add_products(m->factors_x + (size_t)r * (size_t)g->lda,
                 m->factors_w + (size_t)c * (size_t)g->ldb, (size_t)g->in, &sum, &size);
    *want = sum;
    return fabs(*got - sum) <= 1.01 * (g->in + 2) * unit * size; /* a NaN is not right */
}

static enum tfm_status check(const struct tfm_host *host, const struct memory *m,
                             const struct tfm__blas_gemm *g, struct tfm_error *err)
{
    double got, want;

    for (int32_t r = 0; r < g->rows; r++) {
        for (int32_t c = 0; c < g->ldc; c++) {
            if (!is_right(m, g, r, c, &got, &want))
                return host->error(err, TFM_STATUS_BACKEND,
                                   "OpenBLAS computes wrong values here: %s [%d, %d] x [%d, %d]^T, "
                                   "value %d of row %d is %.9g instead of %.9g; another build of "
                                   "it may be right, or OPENBLAS_CORETYPE=Haswell",
                                   host->dtype_info(g->dtype)->name, (int)g->rows, (int)g->in,
                                   (int)g->out, (int)g->in, (int)c, (int)r, got, want);
        }
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__blas_selftest(const struct tfm_host *host, struct tfm_error *err)
{
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};
    enum tfm_status status = TFM_STATUS_OK;
    struct memory *m = host->alloc(sizeof *m);

    if (!m)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory for the self-test");
    for (size_t i = 0; i < 2 * SHAPES && status == TFM_STATUS_OK; i++) {
        const struct shape *s = &shapes[i % SHAPES];
        const struct tfm__blas_gemm gemm = {
            .dtype = dtypes[i / SHAPES],
            .rows = s->rows,
            .out = s->out,
            .in = s->in,
            .x = m->x,
            .w = m->w,
            .y = m->y,
            .lda = s->in + s->gap,
            .ldb = s->in + s->gap,
            .ldc = s->out + s->gap,
            .beta = s->beta,
            .threads = host->threads(),
        };
        if (i % SHAPES == 0)
            fill_factors(m, gemm.dtype);
        fill_output(m, &gemm);
        tfm__blas_multiply(&gemm);
        status = check(host, m, &gemm, err);
    }
    host->free(m);
    return status;
}
