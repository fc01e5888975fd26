/* SPDX-License-Identifier: MIT
 * The one place that calls OpenBLAS. Its number of threads belongs to the process, so a call sets
 * it and keeps others out until it is done; OpenBLAS itself runs one threaded product at a time. */
#include "backends/blas/blas.h"

#include <cblas.h>
#include <pthread.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void tfm__blas_multiply(const struct tfm__blas_gemm *g)
{
    const int threads = (int)g->threads;

    pthread_mutex_lock(&turn);
    if (openblas_get_num_threads() != threads)
        openblas_set_num_threads(threads);
    if (g->dtype == TFM_DTYPE_F64)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, g->rows, g->out, g->in, 1, g->x,
                    g->lda, g->w, g->ldb, g->beta, g->y, g->ldc);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, g->rows, g->out, g->in, 1, g->x,
                    g->lda, g->w, g->ldb, (float)g->beta, g->y, g->ldc);
    pthread_mutex_unlock(&turn);
}
