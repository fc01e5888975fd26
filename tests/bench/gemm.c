/* SPDX-License-Identifier: MIT
 * A matrix product of f32 side by side: our own kernel on an OpenCL device, CLBlast as it comes and with our
 * parameters, OpenBLAS. Each runs once a round, in turn, on the same matrices; every result is compared.
 *   y [512, 1536] = x [512, 576] W^T, W [1536, 576]
 * Prints the median and the fastest of the rounds, and the share of what the machine multiplies and adds at
 * most in registers, measured before and after. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/internal.h"

#include <clblast_c.h>

#include <tfm/device.h>

#include "lib/core/device.h"
#include "lib/tools/clock.h"
#include "lib/tools/limits.h"

enum { M = 512, N = 1536, K = 576, ROUNDS_MAX = 200 };

static float x[M * K], w[N * K], packed[N * K], y[M * N];

struct bench {
    struct tfm__cl_device *device;
    cl_mem x, w, packed, y, tile, steps, rows;
    cl_kernel kernel;
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                  float, float *, int); /* of OpenBLAS; NULL = it is not here */
};

static int failed(const char *what)
{
    fprintf(stderr, "bench gemm: %s\n", what);
    return 1;
}

/* ---- the ways ---- */

static int run_own(struct bench *b)
{
    const size_t parts = b->device->parts, local = 1;
    return clEnqueueNDRangeKernel(b->device->queue, b->kernel, 1, NULL, &parts, &local, 0, NULL,
                                  NULL) != CL_SUCCESS ||
           clFinish(b->device->queue) != CL_SUCCESS;
}

static int run_packing(struct bench *b)
{
    tfm__cl_pack(TFM_DTYPE_F32, w, N, K, 0, N / TFM_PANEL, packed);
    return clEnqueueWriteBuffer(b->device->queue, b->packed, CL_TRUE, 0, sizeof packed, packed, 0,
                                NULL, NULL) != CL_SUCCESS ||
           run_own(b);
}

static int run_clblast(struct bench *b)
{
    cl_command_queue queue = b->device->queue;
    return CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeYes, M, N, K,
                        1.0f, b->x, 0, K, b->w, 0, K, 0.0f, b->y, 0, N, &queue,
                        NULL) != CLBlastSuccess ||
           clFinish(queue) != CL_SUCCESS;
}

static int run_openblas(struct bench *b)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* of every CBLAS */
    b->sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, M, N, K, 1.0f, x, K, w, K, 0.0f, y, N);
    return 0;
}

static struct way {
    const char *name;
    int (*run)(struct bench *b);
    int on_host; /* y is the host's */
    int skipped;
    double seconds[ROUNDS_MAX];
} ways[] = {
    {"ours, W packed beforehand", run_own, 0, 0, {0}},
    {"ours, packing of W included", run_packing, 0, 0, {0}},
    {"CLBlast with our parameters", run_clblast, 0, 0, {0}},
    {"OpenBLAS", run_openblas, 1, 0, {0}},
};
enum { WAYS = sizeof ways / sizeof *ways };
static struct way untuned = {"CLBlast as it comes", run_clblast, 0, 0, {0}};

/* ---- setting up ---- */

static int create_buffers(struct bench *b)
{
    const struct tfm_step step = {
        .width = K,
        .out = N,
        .vectors = 1,
        .scratch = K * 2 * TFM_PANEL,
        .type = {TFM_STEP_F32, TFM_STEP_F32, TFM_STEP_NONE, TFM_STEP_F32, TFM_STEP_F32}};
    const int32_t rows[TFM_ROWS_LISTS] = {M, 0, 0, 0};
    const size_t tile = b->device->parts * step.scratch * sizeof(float);
    const struct {
        cl_mem *buffer;
        const void *data;
        size_t bytes;
    } all[] = {
        {&b->x, x, sizeof x},         {&b->w, w, sizeof w},   {&b->packed, packed, sizeof packed},
        {&b->y, y, sizeof y},         {&b->tile, NULL, tile}, {&b->steps, &step, sizeof step},
        {&b->rows, rows, sizeof rows}};
    cl_int code = CL_SUCCESS;

    for (size_t i = 0; i < sizeof all / sizeof *all && code == CL_SUCCESS; i++)
        *all[i].buffer = clCreateBuffer(
            b->device->context, CL_MEM_READ_WRITE | (all[i].data ? CL_MEM_COPY_HOST_PTR : 0),
            all[i].bytes, (void *)(uintptr_t)all[i].data, &code);
    return code != CL_SUCCESS;
}

static int create_kernel(struct bench *b)
{
    const struct tfm__cl_kernel wanted = {"linear_panels.cl", "tfm_run_linear_panels", NULL};
    const cl_uint index = 0;
    cl_program program = NULL;
    struct tfm_error err = {0};
    cl_int code = CL_SUCCESS;

    if (tfm__cl_program_of(b->device, &wanted, &program, &err) != TFM_STATUS_OK)
        return failed(err.text);
    b->kernel = clCreateKernel(program, wanted.name, &code);
    const cl_mem operands[] = {b->x, b->packed, NULL, b->y, b->tile, b->steps};
    for (cl_uint i = 0; i < 6 && code == CL_SUCCESS; i++)
        code = clSetKernelArg(b->kernel, i, sizeof *operands, &operands[i]);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(b->kernel, 6, sizeof index, &index);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(b->kernel, 7, sizeof b->rows, &b->rows);
    return code != CL_SUCCESS;
}

static void find_openblas(struct bench *b, uint32_t threads)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void (*set_threads)(int) = NULL;

    if (!library)
        return;
    *(void **)&b->sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads)
        set_threads((int)threads);
}

/* ---- measuring ---- */

static int right(struct bench *b, const struct way *way)
{
    if (!way->on_host && clEnqueueReadBuffer(b->device->queue, b->y, CL_TRUE, 0, sizeof y, y, 0,
                                             NULL, NULL) != CL_SUCCESS)
        return 0;
    for (size_t m = 0; m < M; m += 13) {
        for (size_t n = 0; n < N; n += 7) {
            double sum = 0;
            for (size_t k = 0; k < K; k++)
                sum += (double)x[m * K + k] * w[n * K + k];
            if (!(fabs(sum - y[m * N + n]) < 1e-3))
                return 0;
        }
    }
    return 1;
}

static int time_once(struct bench *b, struct way *way, size_t round)
{
    const double start = tfm__seconds();
    if (way->run(b))
        return failed(way->name);
    way->seconds[round] = tfm__seconds() - start;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const double *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

static void print(struct way *way, size_t rounds, double fma)
{
    const double work = 2.0 * M * N * K;

    if (way->skipped) {
        printf("| %s | not here | | |\n", way->name);
        return;
    }
    qsort(way->seconds, rounds, sizeof *way->seconds, by_size);
    const double median = work / way->seconds[rounds / 2], most = work / way->seconds[0];
    printf("| %s | %.1f | %.1f | %.0f%% |\n", way->name, 1e-9 * median, 1e-9 * most,
           100 * median / fma);
}

/* All in turn: each sees the same noise. */
static int measure(struct bench *b, size_t rounds)
{
    struct tfm_error err = {0};

    /* CLBlast reads its parameters anew after they were set: what it does without them comes first */
    for (size_t i = 0; i < rounds; i++) {
        if ((i == 0 && untuned.run(b)) || time_once(b, &untuned, i))
            return 1;
    }
    if (!right(b, &untuned))
        return failed("CLBlast as it comes computes wrong values");
    if (tfm__cl_gemm_prepare(b->device, &err) != TFM_STATUS_OK)
        return failed(err.text);
    for (size_t i = 0; i < WAYS; i++) {
        ways[i].skipped = ways[i].run == run_openblas && !b->sgemm;
        if (!ways[i].skipped && (ways[i].run(b) || !right(b, &ways[i])))
            return failed(ways[i].name);
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < WAYS; i++) {
            if (!ways[i].skipped && time_once(b, &ways[i], round))
                return 1;
        }
    }
    return 0;
}

static int bench(struct tfm_device *device, size_t rounds)
{
    struct bench b = {.device = tfm__device_handle(device)};
    struct tfm__limits before, after;
    const uint32_t threads = b.device->units;

    for (size_t i = 0; i < M * K; i++)
        x[i] = (float)(i * 7 % 13) * 0.1f - 0.6f;
    for (size_t i = 0; i < N * K; i++)
        w[i] = (float)(i * 5 % 11) * 0.1f - 0.5f;
    tfm__cl_pack(TFM_DTYPE_F32, w, N, K, 0, N / TFM_PANEL, packed);
    find_openblas(&b, threads);
    int code = create_buffers(&b) || create_kernel(&b) || tfm__limits_measure(threads, &before) ||
               measure(&b, rounds) || tfm__limits_measure(threads, &after);
    if (!code) {
        const double fma = before.fma > after.fma ? before.fma : after.fma;
        printf("%s, %u threads; f32 multiply-add in registers (%s): %.1f GFLOP/s\n\n",
               b.device->name, threads, before.fma_kind, 1e-9 * fma);
        printf("| y [%d, %d] = x W^T, k = %d | GFLOP/s, median of %zu | fastest | of FMA |\n"
               "|---|---:|---:|---:|\n",
               M, N, K, rounds);
        for (size_t i = 0; i < WAYS; i++)
            print(&ways[i], rounds, fma);
        print(&untuned, rounds, fma);
    }
    const cl_mem buffers[] = {b.x, b.w, b.packed, b.y, b.tile, b.steps, b.rows};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        if (buffers[i])
            (void)clReleaseMemObject(buffers[i]);
    }
    if (b.kernel)
        (void)clReleaseKernel(b.kernel);
    return code;
}

int main(int argc, char **argv)
{
    const char *spec = argc > 1 ? argv[1] : "opencl:Portable Computing Language";
    const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 30;
    struct tfm_registry *registry = NULL;
    struct tfm_device *devices[2] = {NULL, NULL};
    struct tfm_error err = {0};
    size_t n = 0;

    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: gemm [opencl:DEVICE [ROUNDS, 1 to %d]]\n", ROUNDS_MAX);
        return 2;
    }
    unsetenv("TFM_PLUGIN_PATH");
    enum tfm_status status = tfm_registry_create(NULL, 0, &registry, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_registry_add(registry, &tfm_backend_v1, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_devices_open(registry, spec, 1, devices, 2, &n, &err);
    const int code = status == TFM_STATUS_OK ? bench(devices[0], (size_t)rounds) : failed(err.text);
    for (size_t i = 0; i < n; i++)
        tfm_device_release(devices[i]);
    tfm_registry_destroy(registry);
    return code;
}
