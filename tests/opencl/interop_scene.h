/* SPDX-License-Identifier: MIT
 * For the tests of tfm/opencl.h: a program that has OpenCL already (PoCL), and a small model whose results
 * are exact, so that they can be compared bit by bit:
 *   sum [N, D] = table[ids [N]] + x [N, D],  y [N, E] = sum W^T;  D = 32, E = 24 */
#ifndef TESTS_OPENCL_INTEROP_SCENE_H
#define TESTS_OPENCL_INTEROP_SCENE_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <tfm/opencl.h>
#include <tfm/tfm.h>

#include "tests/core/runner.h"
#include "tests/devices.h"

enum { D = 32, E = 24, VOCAB = 11, ROWS = 64, GUARD = 4 };

struct scene {
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    struct tfm_registry *registry;
    struct tfm_device *device; /* the wrapped one */
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_error err;
};

#define OK(call)                                                                    \
    do {                                                                            \
        const enum tfm_status ok_status = (call);                                   \
        ck_assert_msg(ok_status == TFM_STATUS_OK, "%s: %s", #call, scene.err.text); \
    } while (0)
#define CL(call) ck_assert_int_eq((call), CL_SUCCESS)

static struct scene scene;

/* Value i of a made-up tensor: multiples of 1/8 in [-0.75, 0.75], so that all sums here are exact. */
static inline float scene_value(size_t i, unsigned seed)
{
    return (float)(int)((i * 7 + i / 13 * 3 + seed * 5) % 13) * 0.125f - 0.75f;
}

static inline void scene_fill(float *values, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        values[i] = scene_value(i, seed);
}

/* For tests_ask: is PoCL here, and the module? */
static inline int scene_present(void)
{
    return test_devices_present();
}

/* What the program has before it meets TFM. */
static inline void scene_opencl(void)
{
    cl_platform_id platforms[16];
    cl_uint n = 0;
    char name[128];
    cl_int code;

    CL(clGetPlatformIDs(16, platforms, &n));
    for (cl_uint i = 0; i < n && i < 16; i++) {
        CL(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL));
        if (strcmp(name, "Portable Computing Language") == 0)
            scene.platform = platforms[i];
    }
    ck_assert_ptr_nonnull(scene.platform);
    CL(clGetDeviceIDs(scene.platform, CL_DEVICE_TYPE_ALL, 1, &scene.id, NULL));
    scene.context = clCreateContext(NULL, 1, &scene.id, NULL, NULL, &code);
    CL(code);
    scene.queue = clCreateCommandQueue(scene.context, scene.id, 0, &code);
    CL(code);
}

static inline struct tfm_tensor *scene_parameter(const char *name, int64_t rows, int64_t columns,
                                                 unsigned seed)
{
    const int64_t shape[] = {rows, columns};
    float values[ROWS * D];

    scene_fill(values, (size_t)(rows * columns), seed);
    OK(tfm_weights_set(scene.weights, name, TFM_DTYPE_F32, 2, shape, values,
                       (size_t)(rows * columns) * sizeof *values, &scene.err));
    return tfm_graph_parameter(scene.graph, name, TFM_DTYPE_F32, 2, shape);
}

static inline void scene_model(void)
{
    const int64_t x_shape[] = {0, D}, ids_shape[] = {0};

    OK(tfm_graph_create(&scene.graph, &scene.err));
    OK(tfm_weights_create(&scene.weights, &scene.err));
    struct tfm_tensor *x = tfm_graph_input(scene.graph, "x", TFM_DTYPE_F32, 2, x_shape);
    struct tfm_tensor *ids = tfm_graph_input(scene.graph, "ids", TFM_DTYPE_I32, 1, ids_shape);
    struct tfm_tensor *table = scene_parameter("table", VOCAB, D, 1);
    struct tfm_tensor *sum = tfm_op_add(scene.graph, tfm_op_embedding(scene.graph, table, ids), x);
    tfm_graph_output(scene.graph, sum, "sum");
    struct tfm_tensor *w = scene_parameter("w", E, D, 2);
    tfm_graph_output(scene.graph, tfm_op_linear(scene.graph, sum, w, NULL), "y");
    OK(tfm_graph_check(scene.graph, &scene.err));
}

static inline struct tfm_plan *scene_compile(struct tfm_device *const *devices, size_t n)
{
    const struct tfm_capacity capacity = {ROWS, 1, 0};
    struct tfm_plan *plan = NULL;
    OK(tfm_plan_compile(scene.graph, scene.weights, devices, n, &capacity, &plan, &scene.err));
    return plan;
}

static inline void scene_open(void)
{
    memset(&scene, 0, sizeof scene);
    scene_opencl();
    OK(tfm_registry_create(NULL, 0, &scene.registry, &scene.err));
    OK(tfm_opencl_device_wrap(scene.registry, scene.context, scene.id, scene.queue, &scene.device,
                              &scene.err));
    scene_model();
    scene.plan = scene_compile(&scene.device, 1);
}

/* Everything of TFM; the program's own objects stay. */
static inline void scene_close_tfm(void)
{
    tfm_plan_destroy(scene.plan);
    tfm_graph_destroy(scene.graph);
    tfm_weights_release(scene.weights);
    tfm_device_release(scene.device);
    tfm_registry_destroy(scene.registry);
}

static inline void scene_close(void)
{
    scene_close_tfm();
    CL(clReleaseCommandQueue(scene.queue));
    CL(clReleaseContext(scene.context));
}

static inline struct tfm_exec *scene_exec(struct tfm_plan *plan)
{
    struct tfm_exec *exec = NULL;
    OK(tfm_exec_create(plan, &exec, &scene.err));
    return exec;
}

static inline cl_mem scene_buffer(cl_mem_flags flags, size_t bytes, void *contents)
{
    cl_int code = CL_SUCCESS;
    const cl_mem buffer = clCreateBuffer(
        scene.context, flags | (contents ? CL_MEM_COPY_HOST_PTR : 0), bytes, contents, &code);
    CL(code);
    return buffer;
}

static inline enum tfm_status scene_run(struct tfm_exec *exec, uint32_t n)
{
    static const int32_t zero = 0;
    const struct tfm_rows rows = {n, 1, 0, &zero, &zero, &zero, NULL};
    return tfm_exec_run(exec, &rows, &scene.err);
}

/* What must come out, [N, D] and [N, E]. */
static inline void scene_expect(const float *x, const int32_t *ids, uint32_t n, float *sum,
                                float *y)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t d = 0; d < D; d++)
            sum[i * D + d] = scene_value((size_t)ids[i] * D + d, 1) + x[i * D + d];
        for (size_t e = 0; e < E; e++) {
            double product = 0;
            for (size_t d = 0; d < D; d++)
                product += (double)sum[i * D + d] * (double)scene_value(e * D + d, 2);
            y[i * E + e] = (float)product;
        }
    }
}

#endif
