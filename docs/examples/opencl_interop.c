/* SPDX-License-Identifier: MIT
 * A program that has OpenCL already: its kernel makes x, three layers of TFM make y of it, its kernel goes on
 * with y. One context, one queue, one buffer; no value passes through the host until the end.
 *   opencl_interop [PART]   on the first device of a platform with PART in its name */
#define CL_TARGET_OPENCL_VERSION 120
#include <stdio.h>
#include <string.h>
#include <tfm/opencl.h>
#include <tfm/tfm.h>

#define SHAPE(...)  \
    (int64_t[])     \
    {               \
        __VA_ARGS__ \
    }
#define TRY(function, ...)                            \
    if (function(__VA_ARGS__, &err) != TFM_STATUS_OK) \
    return fprintf(stderr, "%s\n", err.text), 1
#define CL(call)                       \
    if ((code = (call)) != CL_SUCCESS) \
    return fprintf(stderr, "%s: %d\n", #call, (int)code), 1

/* ---- the program's own OpenCL ---- */

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_kernel add;
static cl_mem buffer; /* 16 floats: 4 of the program, x [2, 2], 4 of the program, y [2, 2] */
enum { X = 4, Y = 12, FLOATS = 16 };

static const char *source = "__kernel void add(__global float *f, uint at, float what) { f[at + "
                            "get_global_id(0)] += what; }";

static int own_device(const char *part)
{
    cl_platform_id platforms[8];
    cl_uint n = 0;
    cl_int code;

    CL(clGetPlatformIDs(8, platforms, &n));
    for (cl_uint i = 0; i < n && i < 8; i++) {
        char name[128] = "";
        (void)clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
        if (strstr(name, part) &&
            clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS)
            return 0;
    }
    fprintf(stderr, "no OpenCL device on a platform named \"%s\"\n", part);
    return 1;
}

static int own_setup(void)
{
    const float floats[FLOATS] = {[X] = 0, 1, 2, -2};
    cl_program program;
    cl_int code;

    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CL(code);
    queue = clCreateCommandQueue(context, device, 0, &code); /* in-order */
    CL(code);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    CL(code);
    CL(clBuildProgram(program, 1, &device, "", NULL, NULL));
    add = clCreateKernel(program, "add", &code);
    CL(code);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof floats,
                            (void *)floats, &code);
    CL(code);
    CL(clReleaseProgram(program));
    return 0;
}

/* Adds to 4 floats; enqueued, not waited for. */
static int own_add(cl_uint at, cl_float what)
{
    const size_t four = 4;
    cl_int code;

    CL(clSetKernelArg(add, 0, sizeof buffer, &buffer));
    CL(clSetKernelArg(add, 1, sizeof at, &at));
    CL(clSetKernelArg(add, 2, sizeof what, &what));
    CL(clEnqueueNDRangeKernel(queue, add, 1, NULL, &four, NULL, 0, NULL, NULL));
    return 0;
}

/* ---- TFM on it ---- */

int main(int argc, char **argv)
{
    static const float up[] = {1, 0, 0, 1, 1, 1, 1, -1}, gain[] = {1, 1, 2, 2};
    static const float down[] = {1, 0, 1, 0, 0, 1, 1, 1};
    const struct tfm_capacity capacity = {.rows = 2, .sequences = 1};
    const int32_t zero[1] = {0}; /* one sequence, from row 0 on, nothing before it */
    const struct tfm_rows rows = {.n = 2, .n_seq = 1, .slot = zero, .start = zero, .past = zero};
    float y[4];
    struct tfm_error err;
    struct tfm_registry *registry;
    struct tfm_device *wrapped;
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    cl_int code;

    if (own_device(argc > 1 ? argv[1] : "") || own_setup())
        return 1;
    TRY(tfm_registry_create, NULL, 0, &registry);
    TRY(tfm_opencl_device_wrap, registry, context, device, queue, &wrapped);

    TRY(tfm_graph_create, &graph);
    struct tfm_tensor *t = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, SHAPE(0, 2));
    t = tfm_nn_linear(graph, "up", t, 4, TFM_DTYPE_F32, 0);   /* [N, 2] -> [N, 4] */
    t = tfm_nn_rms_norm(graph, "norm", t, 1e-5);              /* [N, 4] -> [N, 4] */
    t = tfm_nn_linear(graph, "down", t, 2, TFM_DTYPE_F32, 0); /* [N, 4] -> [N, 2] */
    tfm_graph_output(graph, t, "y");
    TRY(tfm_graph_check, graph);
    TRY(tfm_weights_create, &weights);
    TRY(tfm_weights_set, weights, "up.weight", TFM_DTYPE_F32, 2, SHAPE(4, 2), up, sizeof up);
    TRY(tfm_weights_set, weights, "norm.weight", TFM_DTYPE_F32, 1, SHAPE(4), gain, sizeof gain);
    TRY(tfm_weights_set, weights, "down.weight", TFM_DTYPE_F32, 2, SHAPE(2, 4), down, sizeof down);
    TRY(tfm_plan_compile, graph, weights, &wrapped, 1, &capacity, &plan);
    TRY(tfm_exec_create, plan, &exec);

    /* two regions of one buffer: offset and size in bytes */
    TRY(tfm_opencl_exec_bind, exec, "x", buffer, X * sizeof(float), 4 * sizeof(float));
    TRY(tfm_opencl_exec_bind, exec, "y", buffer, Y * sizeof(float), 4 * sizeof(float));

    if (own_add(X,
                1)) /* x becomes [[1, 2], [3, -1]] before the run reads it: the queue is the same */
        return 1;
    TRY(tfm_exec_run, exec, &rows);
    if (own_add(Y, 10))
        return 1;
    CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, Y * sizeof(float), sizeof y, y, 0, NULL, NULL));
    printf("%.4f %.4f  %.4f %.4f\n", (double)y[0], (double)y[1], (double)y[2], (double)y[3]);

    /* TFM releases what it retained; the program's references are the program's */
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_weights_release(weights);
    tfm_graph_destroy(graph);
    tfm_device_release(wrapped);
    tfm_registry_destroy(registry);
    clReleaseMemObject(buffer);
    clReleaseKernel(add);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
