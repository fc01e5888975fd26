/* SPDX-License-Identifier: MIT
 * CLBlast's SGEMM. Its defaults are made for GPUs; CPU devices get a set of parameters that was
 * measured, and that counts only after its results were compared: CLBlast also accepts sets that
 * compute wrong values. */
#include <stdio.h>

#include "backends/opencl/internal.h"

#include <clblast_c.h>

struct parameter {
    const char *name;
    size_t value;
};

enum { PARAMETERS = 16 };

/* Tiles of 16 x 16 in vectors of 8, no local memory, no barriers. */
static const struct parameter cpu[PARAMETERS] = {
    {"GEMMK", 0}, {"KREG", 1},  {"KWG", 16},  {"KWI", 2},  {"MDIMA", 1}, {"MDIMC", 1},
    {"MWG", 16},  {"NDIMB", 1}, {"NDIMC", 1}, {"NWG", 16}, {"SA", 0},    {"SB", 0},
    {"STRM", 0},  {"STRN", 0},  {"VWM", 8},   {"VWN", 8},
};

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
                               cl_mem temp, size_t m, size_t n, size_t k)
{
    /* column-major with leading dimension m: weight [k][m] needs no transposing, x [k][n] is what
     * CLBlast turns the other operand into anyway */
    return CLBlastSgemmWithTempBuffer(CLBlastLayoutColMajor, CLBlastTransposeNo,
                                      CLBlastTransposeYes, m, n, k, 1.0f, weight, 0, m, x, 0, n,
                                      0.0f, product, 0, m, queue, NULL, temp);
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
                                         p->buffers[3], PROOF_M, PROOF_N, PROOF_K);
    if (blas != CLBlastSuccess)
        return fail(d->host, err, "CLBlastSgemm", blas);
    code = clEnqueueReadBuffer(d->queue, p->buffers[2], CL_TRUE, 0, sizeof p->product, p->product,
                               0, NULL, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clEnqueueReadBuffer", code);
    *right = proof_compare(p->x, p->weight, p->product);
    return TFM_STATUS_OK;
}

static enum tfm_status prove(struct tfm__cl_device *d, int *right, struct tfm_error *err)
{
    struct proof *p = d->host->alloc(sizeof *p);

    if (!p)
        return d->host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for a GEMM");
    for (size_t i = 0; i < 4; i++)
        p->buffers[i] = NULL;
    *right = 0;
    const enum tfm_status status = proof_run(d, p, right, err);
    for (size_t i = 0; i < 4; i++) {
        if (p->buffers[i])
            (void)clReleaseMemObject(p->buffers[i]);
    }
    d->host->free(p);
    return status;
}

/* ---- parameters ---- */

static CLBlastStatusCode override(cl_device_id device, const char *kernel, size_t n,
                                  const struct parameter *parameters)
{
    const char *names[PARAMETERS];
    size_t values[PARAMETERS];

    for (size_t i = 0; i < n; i++) {
        names[i] = parameters[i].name;
        values[i] = parameters[i].value;
    }
    return CLBlastOverrideParameters(device, kernel, CLBlastPrecisionSingle, n, names, values);
}

/* What CLBlast takes for a device that it has never seen. */
static const struct parameter defaults[PARAMETERS] = {
    {"GEMMK", 0}, {"KREG", 1},  {"KWG", 16},  {"KWI", 2},  {"MDIMA", 8}, {"MDIMC", 8},
    {"MWG", 32},  {"NDIMB", 8}, {"NDIMC", 8}, {"NWG", 64}, {"SA", 1},    {"SB", 1},
    {"STRM", 0},  {"STRN", 0},  {"VWM", 1},   {"VWN", 1},
};

static void tell(const struct tfm__cl_device *d, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "CLBlast on %.100s: %.120s", d->name, what);
    d->host->log(TFM_LOG_WARN, "opencl", text);
}

static enum tfm_status prepare(struct tfm__cl_device *d, struct tfm_error *err)
{
    /* from the first multiplication on: the direct kernel that CLBlast prefers for small sizes is slow */
    static const struct parameter indirect[] = {{"XGEMM_MIN_INDIRECT_SIZE", 1}};
    struct tfm_error own = {0};
    int right = 0;

    if (d->kind == TFM_DEVICE_CPU &&
        override(d->id, "GemmRoutine", 1, indirect) == CLBlastSuccess &&
        override(d->id, "Xgemm", PARAMETERS, cpu) == CLBlastSuccess) {
        if (prove(d, &right, &own) == TFM_STATUS_OK && right)
            return TFM_STATUS_OK;
        tell(d, own.text[0] ? own.text : "the CPU parameters compute wrong values");
        if (override(d->id, "Xgemm", PARAMETERS, defaults) != CLBlastSuccess)
            return d->host->error(err, TFM_STATUS_BACKEND,
                                  "opencl: CLBlast refuses its default parameters on %s", d->name);
    }
    const enum tfm_status status = prove(d, &right, err);
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
    const CLBlastStatusCode code =
        sgemm(&e->queue, e->gemm_x, e->gemm_weight, e->gemm_product, e->gemm_temp, m, n, k);

    if (code != CLBlastSuccess)
        return fail(e->device->host, err, "CLBlastSgemm", code);
    atomic_fetch_add_explicit(&tfm__cl_sgemm_calls, 1, memory_order_relaxed);
    return TFM_STATUS_OK;
}
