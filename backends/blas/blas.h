/* SPDX-License-Identifier: MIT
 * What the files of the blas backend share. Nothing of libtfm is linked: everything comes through
 * struct tfm_host. */
#ifndef TFM__BLAS_H
#define TFM__BLAS_H

#include <tfm/backend.h>

struct tfm__blas_device {
    const struct tfm_host *host;
    uint32_t threads; /* that OpenBLAS may use for this device */
};

/* Y = X W^T + beta Y, all row-major: x [rows, in] with rows lda apart, w [out, in] with rows ldb
 * apart, y [rows, out] with rows ldc apart; F32, or F64 throughout. */
struct tfm__blas_gemm {
    enum tfm_dtype dtype;
    int32_t rows, out, in;
    const void *x, *w;
    void *y;
    int32_t lda, ldb, ldc;
    double beta;
    uint32_t threads;
};

/* ---- gemm.c ---- */

/* Safe from several threads: they take turns. */
void tfm__blas_multiply(const struct tfm__blas_gemm *gemm);

/* ---- selftest.c ---- */

/* Compares a few products of odd shapes with plain double loops. BACKEND: OpenBLAS computes wrong
 * values on this machine; the text says which. NOMEM. */
enum tfm_status tfm__blas_selftest(const struct tfm_host *host, struct tfm_error *err);

/* ---- linear.c ---- */

/* As the slots of struct tfm_backend. */
int32_t tfm__blas_linear_supports(const struct tfm__blas_device *device,
                                  const struct tfm_node *node, const struct tfm_capacity *capacity,
                                  char *reason, size_t size);
enum tfm_status tfm__blas_linear_run(const struct tfm__blas_device *device,
                                     const struct tfm_node *node, const struct tfm_memory *inputs,
                                     const struct tfm_memory *outputs, const struct tfm_rows *rows,
                                     struct tfm_error *err);

#endif
