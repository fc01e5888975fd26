/* SPDX-License-Identifier: MIT
 * CLBlast's SGEMM. Its defaults are made for GPUs; CPU devices get a set of parameters that was
 * measured, and that counts only after its results were compared: CLBlast also accepts sets that
 * compute wrong values. */
#include <stdio.h>

#include "backends/opencl/internal.h"
#include "backends/opencl/pocl_cache.h"
#include "backends/opencl/tune.h"

#include <clblast_c.h>

/* Parameters of CLBlast's Xgemm, in the order of the sets below. */
const char *const tfm__cl_gemm_names[TFM__CL_GEMM_PARAMETERS] = {
    "GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB",
    "NDIMC", "NWG",  "SA",  "SB",  "STRM",  "STRN",  "VWM", "VWN",
};

/* For CPUs: tiles of 16 x 16 in vectors of 8, no local memory, no barriers. */
static const size_t cpu[TFM__CL_GEMM_PARAMETERS] = {0, 1,  16, 2, 1, 1, 16, 1,
                                                    1, 16, 0,  0, 0, 0, 8,  8};

/* Instead of them when they fail: a small set of the kind that CLBlast uses by default. */
static const size_t safe[TFM__CL_GEMM_PARAMETERS] = {0, 1,  16, 2, 8, 8, 32, 8,
                                                     8, 64, 1,  1, 0, 0, 1,  1};

static enum tfm_status fail(const struct tfm_host *host, struct tfm_error *err, const char *call,
                            CLBlastStatusCode code)
{
    /* the codes of OpenCL come through unchanged; CLBlast's own lie below them */
    if (code > -1002)
        return tfm__cl_fail(host, err, call, (cl_int)code);
    return host->error(err, TFM_STATUS_BACKEND, "opencl: %s: CLBlast status %d (see clblast_c.h)",
                       call, (int)code);
}

static CLBlastStatusCode sgemm(cl_command_queue *queue, cl_mem x, cl_mem weight, cl_mem product,
                               cl_mem temp, size_t m, size_t n, size_t k, cl_event *event)
{
    /* column-major with leading dimension m: weight [k][m] needs no transposing, x [k][n] is what
     * CLBlast turns the other operand into anyway */
    return CLBlastSgemmWithTempBuffer(CLBlastLayoutColMajor, CLBlastTransposeNo,
                                      CLBlastTransposeYes, m, n, k, 1.0f, weight, 0, m, x, 0, n,
                                      0.0f, product, 0, m, queue, event, temp);
}

enum tfm_status tfm__cl_gemm_temp(struct tfm__cl_device *d, size_t m, size_t n, size_t k,
                                  size_t *bytes, struct tfm_error *err)
{
    cl_command_queue queue = d->queue;
    size_t most = 0;

    /* no simple function of n: sizes that fill the tiles need none */
    for (size_t rows = 16; rows <= n; rows += 16) {
        size_t temp = 0;
        const CLBlastStatusCode code = CLBlastSGemmTempBufferSize(
            CLBlastLayoutColMajor, CLBlastTransposeNo, CLBlastTransposeYes, m, rows, k, 0, m, 0,
            rows, 0, m, &queue, &temp);
        if (code != CLBlastSuccess)
            return fail(d->host, err, "CLBlastSGemmTempBufferSize", code);
        most = temp > most ? temp : most;
    }
    *bytes = most;
    return TFM_STATUS_OK;
}

/* ---- proof ---- */

enum { PROOF_M = 48, PROOF_N = 80, PROOF_K = 112 }; /* several tiles each way, all different */

static float proof_value(size_t i)
{
    return (float)(int)(i * 7 % 13) * 0.125f - 0.75f; /* sums of products stay exact in float */
}

static int proof_compare(const float *x, const float *weight, const float *product)
{
    for (size_t n = 0; n < PROOF_N; n++) {
        for (size_t m = 0; m < PROOF_M; m++) {
            float sum = 0;
            for (size_t k = 0; k < PROOF_K; k++)
                sum += x[k * PROOF_N + n] * weight[k * PROOF_M + m];
            if (product[n * PROOF_M + m] != sum)
                return 0;
        }
    }
    return 1;
}

struct proof {
    float x[PROOF_K * PROOF_N], weight[PROOF_K * PROOF_M], product[PROOF_N * PROOF_M];
    cl_mem buffers[4];
};

/* One GEMM whose result is known. *right = 1 when it is as it must be. */
static enum tfm_status proof_run(struct tfm__cl_device *d, struct proof *p, int *right,
                                 struct tfm_error *err)
{
    void *const host[] = {p->x, p->weight, p->product, NULL};
    size_t bytes[] = {sizeof p->x, sizeof p->weight, sizeof p->product, 0};
    cl_int code = CL_SUCCESS;
    size_t temp;
    enum tfm_status status = tfm__cl_gemm_temp(d, PROOF_M, PROOF_N, PROOF_K, &temp, err);

    if (status != TFM_STATUS_OK)
        return status;
    bytes[3] = temp > 0 ? temp : 128;
    for (size_t i = 0; i < PROOF_K * PROOF_N; i++)
        p->x[i] = proof_value(i);
    for (size_t i = 0; i < PROOF_K * PROOF_M; i++)
        p->weight[i] = proof_value(3 * i + 1);
    for (size_t i = 0; i < PROOF_N * PROOF_M; i++)
        p->product[i] = 12345.0f;
    for (size_t i = 0; i < 4 && code == CL_SUCCESS; i++)
        p->buffers[i] =
            clCreateBuffer(d->context, CL_MEM_READ_WRITE | (host[i] ? CL_MEM_COPY_HOST_PTR : 0),
                           bytes[i], host[i], &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clCreateBuffer for a GEMM", code);
    cl_command_queue queue = d->queue;
    const CLBlastStatusCode blas = sgemm(&queue, p->buffers[0], p->buffers[1], p->buffers[2],
                                         p->buffers[3], PROOF_M, PROOF_N, PROOF_K, NULL);
    if (blas != CLBlastSuccess)
        return fail(d->host, err, "CLBlastSgemm", blas);
    code = clEnqueueReadBuffer(d->queue, p->buffers[2], CL_TRUE, 0, sizeof p->product, p->product,
                               0, NULL, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clEnqueueReadBuffer", code);
    *right = proof_compare(p->x, p->weight, p->product);
    return TFM_STATUS_OK;
}

enum tfm_status tfm__cl_gemm_prove(struct tfm__cl_device *d, int *right, struct tfm_error *err)
{
    struct proof *p = d->host->alloc(sizeof *p);

    if (!p)
        return d->host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for a GEMM");
    for (size_t i = 0; i < 4; i++)
        p->buffers[i] = NULL;
    *right = 0;
    tfm__cl_pocl_cache_check(d); /* CLBlast builds programs of its own */
    const enum tfm_status status = proof_run(d, p, right, err);
    for (size_t i = 0; i < 4; i++) {
        if (p->buffers[i])
            (void)clReleaseMemObject(p->buffers[i]);
    }
    d->host->free(p);
    return status;
}

/* ---- parameters ---- */

/* CLBlast compiles all kernels of a routine, although matrices of whole tiles need none but Xgemm. These
 * parameters are right as well, and make the others small. */
static const struct small {
    const char *kernel;
    size_t n;
    const char *names[10];
    size_t values[10];
} small[] = {
    {"Copy", 4, {"COPY_DIMX", "COPY_DIMY", "COPY_VW", "COPY_WPT"}, {8, 8, 1, 1}},
    {"Pad", 4, {"PAD_DIMX", "PAD_DIMY", "PAD_WPTX", "PAD_WPTY"}, {8, 8, 1, 1}},
    {"Transpose", 4, {"TRA_DIM", "TRA_PAD", "TRA_SHUFFLE", "TRA_WPT"}, {4, 0, 0, 1}},
    {"Padtranspose", 3, {"PADTRA_PAD", "PADTRA_TILE", "PADTRA_WPT"}, {0, 4, 1}},
    {"XgemmDirect",
     10,
     {"KWID", "MDIMAD", "MDIMCD", "NDIMBD", "NDIMCD", "PADA", "PADB", "VWMD", "VWND", "WGD"},
     {1, 1, 1, 1, 1, 0, 0, 1, 1, 1}},
};

static int parameters_set(struct tfm__cl_device *d, const char *kernel, size_t n,
                          const char *const *name, const size_t *values)
{
    return CLBlastOverrideParameters(d->id, kernel, CLBlastPrecisionSingle, n, (const char **)name,
                                     values) == CLBlastSuccess;
}

int tfm__cl_gemm_set(struct tfm__cl_device *d, const size_t *values)
{
    /* the direct kernel, which CLBlast prefers for small sizes, is slow on CPUs: never take it */
    const char *const routine = "XGEMM_MIN_INDIRECT_SIZE";
    const size_t one = 1;

    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        (void)parameters_set(d, small[i].kernel, small[i].n, small[i].names, small[i].values);
    return parameters_set(d, "GemmRoutine", 1, &routine, &one) &&
           parameters_set(d, "Xgemm", TFM__CL_GEMM_PARAMETERS, tfm__cl_gemm_names, values);
}

static void tell(const struct tfm__cl_device *d, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "CLBlast on %.100s: %.120s", d->name, what);
    d->host->log(TFM_LOG_WARN, "opencl", text);
}

static enum tfm_status prepare(struct tfm__cl_device *d, struct tfm_error *err)
{
    struct tfm_error own = {0};
    int right = 0;

    if (d->tuned.has_xgemm) {
        if (tfm__cl_gemm_set(d, d->tuned.xgemm) &&
            tfm__cl_gemm_prove(d, &right, &own) == TFM_STATUS_OK && right)
            return TFM_STATUS_OK;
        tell(d, own.text[0] ? own.text : "the tuned parameters compute wrong values");
        own.text[0] = 0;
        if (d->kind != TFM_DEVICE_CPU) /* CLBlast cannot be told to take its own again */
            (void)tfm__cl_gemm_set(d, safe);
    }
    if (d->kind == TFM_DEVICE_CPU && tfm__cl_gemm_set(d, cpu)) {
        if (tfm__cl_gemm_prove(d, &right, &own) == TFM_STATUS_OK && right)
            return TFM_STATUS_OK;
        tell(d, own.text[0] ? own.text : "the CPU parameters compute wrong values");
        (void)tfm__cl_gemm_set(d, safe);
    }
    const enum tfm_status status = tfm__cl_gemm_prove(d, &right, err);
    if (status == TFM_STATUS_OK && !right)
        return d->host->error(
            err, TFM_STATUS_BACKEND,
            "opencl: CLBlast computes wrong values on %s (driver %s); use another "
            "device or driver",
            d->name, d->driver);
    return status;
}

enum tfm_status tfm__cl_gemm_prepare(struct tfm__cl_device *d, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    pthread_mutex_lock(&d->gemm_lock);
    if (!d->gemm_ready) {
        d->gemm_used = 1;
        status = prepare(d, err);
        d->gemm_ready = status == TFM_STATUS_OK;
    }
    pthread_mutex_unlock(&d->gemm_lock);
    return status;
}

void tfm__cl_gemm_forget(void)
{
    (void)CLBlastClearCache();
}

enum tfm_status tfm__cl_gemm(struct tfm__cl_exec *e, size_t m, size_t n, size_t k,
                             struct tfm_error *err)
{
    cl_event *event = e->profile ? tfm__cl_profile_gemm(e, m, n, k) : NULL;
    const CLBlastStatusCode code =
        sgemm(&e->queue, e->gemm_x, e->gemm_weight, e->gemm_product, e->gemm_temp, m, n, k, event);

    if (code != CLBlastSuccess)
        return fail(e->device->host, err, "CLBlastSgemm", code);
    atomic_fetch_add_explicit(&tfm__cl_sgemm_calls, 1, memory_order_relaxed);
    return TFM_STATUS_OK;
}
