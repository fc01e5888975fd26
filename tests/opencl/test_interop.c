/* SPDX-License-Identifier: MIT
 * tfm/opencl.h: TFM on the context, queue and buffers of a program that has OpenCL already. */
#include "tests/opencl/interop_scene.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <tfm/llm.h>

#include "tests/llm/tiny_llama.h"

static float x[ROWS * D], sum[ROWS * D], y[ROWS * E];
static int32_t ids[ROWS];

static void make_inputs(unsigned seed, uint32_t n)
{
    scene_fill(x, ROWS * D, seed);
    for (size_t i = 0; i < ROWS; i++)
        ids[i] = (int32_t)((i * 3 + seed) % VOCAB);
    scene_expect(x, ids, n, sum, y);
}

static void setup(void)
{
    scene_open();
    make_inputs(3, ROWS);
}

/* ---- in place ---- */

/* A region in the middle of a larger buffer: before, behind and past the rows of the run must stay. */
struct zone {
    cl_mem buffer;
    size_t at, floats;
    float *image; /* of the whole buffer as it must be */
};

static struct zone zone_create(size_t before, size_t floats, const float *contents)
{
    const size_t all = before + floats + GUARD;
    struct zone z = {.at = before, .floats = floats, .image = malloc(all * sizeof(float))};

    ck_assert_ptr_nonnull(z.image);
    for (size_t i = 0; i < all; i++)
        z.image[i] = 1000.0f + (float)i;
    if (contents)
        memcpy(z.image + before, contents, floats * sizeof(float));
    z.buffer = scene_buffer(CL_MEM_READ_WRITE, all * sizeof(float), z.image);
    return z;
}

static void zone_check(struct zone *z)
{
    const size_t bytes = (z->at + z->floats + GUARD) * sizeof(float);
    float *now = malloc(bytes);

    ck_assert_ptr_nonnull(now);
    CL(clEnqueueReadBuffer(scene.queue, z->buffer, CL_TRUE, 0, bytes, now, 0, NULL, NULL));
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ck_assert_msg(now[i] == z->image[i], "float %zu is %g, not %g (region from %zu, %zu long)",
                      i, (double)now[i], (double)z->image[i], z->at, z->floats);
    free(now);
}

static void zone_destroy(struct zone *z)
{
    CL(clReleaseMemObject(z->buffer));
    free(z->image);
}

static void bind_zone(struct tfm_exec *exec, const char *name, const struct zone *z)
{
    OK(tfm_opencl_exec_bind(exec, name, z->buffer, z->at * sizeof(float), z->floats * sizeof(float),
                            &scene.err));
}

/* Through the matrix-vector kernels, the GEMM, and none. */
static const uint32_t counts[] = {3, ROWS, 1, 0, 17};

/* Fault: the offset is ignored or applied twice, a kernel writes outside the region or past the rows of the
 * run, execs share their bindings. Offsets are multiples of 4 bytes and of nothing more. */
START_TEST(two_execs_in_zones_of_their_own)
{
    struct tfm_exec *exec[2];
    struct zone in[2], mid[2], out[2];
    cl_mem id_buffer[2];

    for (unsigned k = 0; k < 2; k++) {
        make_inputs(k, ROWS);
        in[k] = zone_create(GUARD + 1 + k, ROWS * D, x);
        mid[k] = zone_create(GUARD + 7 * k, ROWS * D, NULL);
        out[k] = zone_create(GUARD + 13, ROWS * E, NULL);
        id_buffer[k] = scene_buffer(CL_MEM_READ_ONLY, sizeof ids, ids);
        exec[k] = scene_exec(scene.plan);
        bind_zone(exec[k], "x", &in[k]);
        bind_zone(exec[k], "sum", &mid[k]);
        bind_zone(exec[k], "y", &out[k]);
        OK(tfm_opencl_exec_bind(exec[k], "ids", id_buffer[k], 0, sizeof ids, &scene.err));
    }
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (unsigned k = 0; k < 2; k++) {
            const uint32_t n = counts[(c + k) % (sizeof counts / sizeof *counts)];
            make_inputs(k, n);
            memcpy(mid[k].image + mid[k].at, sum, n * D * sizeof(float));
            memcpy(out[k].image + out[k].at, y, n * E * sizeof(float));
            OK(scene_run(exec[k], n));
            for (unsigned j = 0; j < 2; j++) {
                zone_check(&in[j]);
                zone_check(&mid[j]);
                zone_check(&out[j]);
            }
        }
    }
    for (unsigned k = 0; k < 2; k++) {
        tfm_exec_destroy(exec[k]);
        zone_destroy(&in[k]);
        zone_destroy(&mid[k]);
        zone_destroy(&out[k]);
        CL(clReleaseMemObject(id_buffer[k]));
    }
    scene_close();
}
END_TEST

/* Fault: values pass through the host after all: the driver forbids it for these buffers. */
START_TEST(nothing_passes_through_the_host)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    const cl_mem open = scene_buffer(CL_MEM_READ_WRITE, sizeof x + sizeof y, NULL);
    const cl_mem in = scene_buffer(CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS, sizeof x, NULL);
    const cl_mem out = scene_buffer(CL_MEM_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS, sizeof y, NULL);
    float got[ROWS * E];

    CL(clEnqueueWriteBuffer(scene.queue, open, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    CL(clEnqueueCopyBuffer(scene.queue, open, in, 0, 0, sizeof x, 0, NULL, NULL));
    OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "y", out, 0, sizeof y, &scene.err));
    OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
    OK(scene_run(exec, ROWS));
    CL(clEnqueueCopyBuffer(scene.queue, out, open, 0, sizeof x, sizeof y, 0, NULL, NULL));
    CL(clEnqueueReadBuffer(scene.queue, open, CL_TRUE, sizeof x, sizeof y, got, 0, NULL, NULL));
    ck_assert_mem_eq(got, y, sizeof y);
    tfm_exec_destroy(exec);
    CL(clReleaseMemObject(in));
    CL(clReleaseMemObject(out));
    CL(clReleaseMemObject(open));
    scene_close();
}
END_TEST

/* Fault: an unbound output has no memory, or another tensor's; the offset of the arena is forgotten. */
START_TEST(an_output_in_memory_of_tfm)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    cl_mem buffer = NULL, bound = NULL;
    size_t offset = 0, bytes = 0;
    float got[ROWS * E];

    OK(tfm_exec_bind(exec, "x", x, sizeof x, &scene.err));
    OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
    OK(scene_run(exec, ROWS));
    OK(tfm_opencl_exec_memory(exec, "y", &buffer, &offset, &bytes, &scene.err));
    ck_assert_uint_eq(bytes, sizeof y);
    CL(clEnqueueReadBuffer(scene.queue, buffer, CL_TRUE, offset, sizeof y, got, 0, NULL, NULL));
    ck_assert_mem_eq(got, y, sizeof y);

    struct zone out = zone_create(5, ROWS * E, NULL);
    bind_zone(exec, "y", &out);
    OK(tfm_opencl_exec_memory(exec, "y", &bound, &offset, &bytes, &scene.err));
    ck_assert_ptr_eq(bound, out.buffer);
    ck_assert_uint_eq(offset, 5 * sizeof(float));
    ck_assert_int_eq(tfm_opencl_exec_memory(exec, "x", &bound, &offset, &bytes, &scene.err),
                     TFM_STATUS_NOT_FOUND);

    /* and back again, to the host's memory and to TFM's */
    memset(got, 0, sizeof got);
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    OK(scene_run(exec, ROWS));
    ck_assert_mem_eq(got, y, sizeof y);
    zone_check(&out);
    OK(tfm_exec_unbind(exec, "y", &scene.err));
    memset(got, 0, sizeof got);
    OK(scene_run(exec, ROWS));
    OK(tfm_opencl_exec_memory(exec, "y", &bound, &offset, &bytes, &scene.err));
    ck_assert_ptr_eq(bound, buffer);
    CL(clEnqueueReadBuffer(scene.queue, buffer, CL_TRUE, offset, sizeof y, got, 0, NULL, NULL));
    ck_assert_mem_eq(got, y, sizeof y);
    OK(tfm_exec_unbind(exec, "x", &scene.err));
    ck_assert_int_eq(scene_run(exec, ROWS), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(scene.err.text, "\"x\" is not bound"), "%s", scene.err.text);
    tfm_exec_destroy(exec);
    zone_destroy(&out);
    scene_close();
}
END_TEST

/* ---- order ---- */

static void *open_gate(void *gate)
{
    const struct timespec pause = {0, 100 * 1000 * 1000};
    nanosleep(&pause, NULL);
    return clSetUserEventStatus(gate, CL_COMPLETE) == CL_SUCCESS ? gate : NULL;
}

static const char *twice_source =
    "__kernel void twice(__global const float *from, __global float *to)\n"
    "{ size_t i = get_global_id(0); to[i] = 2.0f * from[i]; }\n";

/* What the program does between two runs: from -> x and all_ids -> ids, after a gate that opens 100 ms later. */
struct work {
    cl_kernel kernel;
    cl_mem from, x, all_ids, ids, out;
};

static struct work work_create(void)
{
    struct work w;
    float half[ROWS * D];
    cl_int code = CL_SUCCESS;

    for (size_t i = 0; i < ROWS * D; i++)
        half[i] = 0.5f * x[i];
    const cl_program program =
        clCreateProgramWithSource(scene.context, 1, &twice_source, NULL, &code);
    CL(code);
    CL(clBuildProgram(program, 1, &scene.id, "", NULL, NULL));
    w.kernel = clCreateKernel(program, "twice", &code);
    CL(code);
    CL(clReleaseProgram(program));
    w.from = scene_buffer(CL_MEM_READ_ONLY, sizeof half, half);
    w.x = scene_buffer(CL_MEM_READ_WRITE, sizeof x, NULL);
    w.all_ids = scene_buffer(CL_MEM_READ_ONLY, sizeof ids, ids);
    w.ids = scene_buffer(CL_MEM_READ_WRITE, sizeof ids, NULL);
    w.out = scene_buffer(CL_MEM_READ_WRITE, sizeof x, NULL);
    CL(clSetKernelArg(w.kernel, 0, sizeof w.from, &w.from));
    CL(clSetKernelArg(w.kernel, 1, sizeof w.x, &w.x));
    return w;
}

static void work_destroy(struct work *w)
{
    const cl_mem buffers[] = {w->from, w->x, w->all_ids, w->ids, w->out};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        CL(clReleaseMemObject(buffers[i]));
    CL(clReleaseKernel(w->kernel));
}

/* Spoils everything, enqueues the work behind a gate, runs, and reads what is in `out` by another queue. */
static void run_behind_a_gate(const struct work *w, struct tfm_exec *exec, float *got, size_t bytes)
{
    const size_t n = ROWS * D;
    const cl_float huge = 1e30f;
    const cl_int wild = -1;
    cl_int code = CL_SUCCESS;
    pthread_t thread;
    void *result = NULL;

    CL(clEnqueueFillBuffer(scene.queue, w->x, &huge, sizeof huge, 0, sizeof x, 0, NULL, NULL));
    CL(clEnqueueFillBuffer(scene.queue, w->out, &huge, sizeof huge, 0, sizeof x, 0, NULL, NULL));
    CL(clEnqueueFillBuffer(scene.queue, w->ids, &wild, sizeof wild, 0, sizeof ids, 0, NULL, NULL));
    CL(clFinish(scene.queue));
    const cl_event gate = clCreateUserEvent(scene.context, &code);
    CL(code);
    CL(clEnqueueNDRangeKernel(scene.queue, w->kernel, 1, NULL, &n, NULL, 1, &gate, NULL));
    CL(clEnqueueCopyBuffer(scene.queue, w->all_ids, w->ids, 0, 0, sizeof ids, 0, NULL, NULL));
    ck_assert_int_eq(pthread_create(&thread, NULL, open_gate, gate), 0);
    OK(scene_run(exec, ROWS));
    const cl_command_queue other = clCreateCommandQueue(scene.context, scene.id, 0, &code);
    CL(code);
    CL(clEnqueueReadBuffer(other, w->out, CL_TRUE, 0, bytes, got, 0, NULL, NULL));
    CL(clReleaseCommandQueue(other));
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_nonnull(result);
    CL(clReleaseEvent(gate));
}

/* Fault: a run does not wait for what its caller has enqueued: values, or ids. Or it returns before it is
 * complete. */
START_TEST(a_run_comes_after_what_was_enqueued)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    struct work w = work_create();
    float got[ROWS * E];

    OK(tfm_opencl_exec_bind(exec, "x", w.x, 0, sizeof x, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "ids", w.ids, 0, sizeof ids, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "y", w.out, 0, sizeof y, &scene.err));
    run_behind_a_gate(&w, exec, got, sizeof got);
    ck_assert_mem_eq(got, y, sizeof y);
    tfm_exec_destroy(exec);
    work_destroy(&w);
    scene_close();
}
END_TEST

/* Fault: the same, where no transfer stands before the kernels and waits in their place. */
START_TEST(kernels_come_after_what_was_enqueued)
{
    const int64_t shape[] = {0, D};
    const struct tfm_capacity capacity = {ROWS, 1, 0};
    struct tfm_graph *graph = NULL;
    struct tfm_plan *plan = NULL;
    struct work w = work_create();
    float got[ROWS * D];

    OK(tfm_graph_create(&graph, &scene.err));
    struct tfm_tensor *in = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    tfm_graph_output(graph, tfm_op_add(graph, in, in), "y");
    OK(tfm_plan_compile(graph, scene.weights, &scene.device, 1, &capacity, &plan, &scene.err));
    struct tfm_exec *exec = scene_exec(plan);
    OK(tfm_opencl_exec_bind(exec, "x", w.x, 0, sizeof x, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "y", w.out, 0, sizeof x, &scene.err));
    run_behind_a_gate(&w, exec, got, sizeof got);
    for (size_t i = 0; i < ROWS * D; i++)
        ck_assert_float_eq(got[i], 2 * x[i]);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    work_destroy(&w);
    scene_close();
}
END_TEST

/* ---- who releases what ---- */

static cl_uint context_holders(void)
{
    cl_uint n = 0;
    CL(clGetContextInfo(scene.context, CL_CONTEXT_REFERENCE_COUNT, sizeof n, &n, NULL));
    return n;
}

static cl_uint queue_holders(void)
{
    cl_uint n = 0;
    CL(clGetCommandQueueInfo(scene.queue, CL_QUEUE_REFERENCE_COUNT, sizeof n, &n, NULL));
    return n;
}

static cl_uint buffer_holders(cl_mem buffer)
{
    cl_uint n = 0;
    CL(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof n, &n, NULL));
    return n;
}

/* Fault: a reference too many is kept (memory of the caller never goes), or one too few taken. */
START_TEST(every_reference_is_given_back)
{
    scene_close_tfm();
    const cl_uint context = context_holders(), queue = queue_holders();

    for (int round = 0; round < 2; round++) {
        const cl_mem in = scene_buffer(CL_MEM_READ_WRITE, sizeof x, x);
        const cl_mem out = scene_buffer(CL_MEM_READ_WRITE, sizeof y, NULL);
        OK(tfm_registry_create(NULL, 0, &scene.registry, &scene.err));
        OK(tfm_opencl_device_wrap(scene.registry, scene.context, scene.id, scene.queue,
                                  &scene.device, &scene.err));
        ck_assert_uint_gt(context_holders(), context);
        ck_assert_uint_gt(queue_holders(), queue);
        scene_model();
        scene.plan = scene_compile(&scene.device, 1);
        struct tfm_exec *exec = scene_exec(scene.plan);
        OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
        ck_assert_uint_eq(buffer_holders(in), 2);
        OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
        ck_assert_uint_eq(buffer_holders(in), 2);
        OK(tfm_opencl_exec_bind(exec, "y", out, 0, sizeof y, &scene.err));
        OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
        OK(scene_run(exec, ROWS));
        OK(scene_run(exec, 3));
        ck_assert_int_ne(tfm_opencl_exec_bind(exec, "x", in, 4, sizeof x, &scene.err),
                         TFM_STATUS_OK);
        ck_assert_uint_eq(buffer_holders(in), 2);
        OK(tfm_exec_unbind(exec, "x", &scene.err));
        ck_assert_uint_eq(buffer_holders(in), 1);
        OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
        OK(tfm_exec_bind(exec, "x", x, sizeof x, &scene.err));
        ck_assert_uint_eq(buffer_holders(in), 1);
        OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
        tfm_exec_destroy(exec);
        ck_assert_uint_eq(buffer_holders(in), 1);
        ck_assert_uint_eq(buffer_holders(out), 1);
        scene_close_tfm();
        /* first these: PoCL keeps the queue of a buffer's last command with the buffer */
        CL(clReleaseMemObject(in));
        CL(clReleaseMemObject(out));
        ck_assert_uint_eq(context_holders(), context);
        /* PoCL tells that a command is done a moment before it lets go of the queue */
        for (int i = 0; i < 1000 && queue_holders() != queue; i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ck_assert_uint_eq(queue_holders(), queue);
    }
    CL(clReleaseCommandQueue(scene.queue));
    CL(clReleaseContext(scene.context));
}
END_TEST

/* Fault: TFM relies on references of its caller, who gives all of his up as soon as he may. */
START_TEST(the_caller_may_let_go_at_once)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    const cl_mem in = scene_buffer(CL_MEM_READ_ONLY, sizeof x, x);
    float got[ROWS * E];

    OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
    OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    CL(clReleaseMemObject(in));
    CL(clReleaseCommandQueue(scene.queue));
    CL(clReleaseContext(scene.context));
    OK(scene_run(exec, ROWS));
    ck_assert_mem_eq(got, y, sizeof y);
    scene_close_tfm(); /* the exec holds the plan, and that the rest */
    OK(scene_run(exec, ROWS));
    ck_assert_mem_eq(got, y, sizeof y);
    tfm_exec_destroy(exec);
}
END_TEST

/* Fault: a warm run with bound buffers makes things that pile up. */
START_TEST(a_warm_run_allocates_nothing)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    const cl_mem in = scene_buffer(CL_MEM_READ_ONLY, sizeof x, x);
    const cl_mem id_buffer = scene_buffer(CL_MEM_READ_ONLY, sizeof ids, ids);
    float got[ROWS * E];

    OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "ids", id_buffer, 0, sizeof ids, &scene.err));
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    const uint64_t before = tfm_allocations();
    for (uint32_t i = 0; i < 40; i++)
        OK(scene_run(exec, 1 + i % ROWS));
    ck_assert_uint_eq(tfm_allocations(), before);
    tfm_exec_destroy(exec);
    CL(clReleaseMemObject(in));
    CL(clReleaseMemObject(id_buffer));
    scene_close();
}
END_TEST

/* ---- other devices ---- */

/* Fault: an input that a second device reads stays on the first; an output that the second makes never
 * reaches the caller's buffer. F64 is for `reference` alone. */
START_TEST(with_a_part_on_reference)
{
    struct tfm_device *devices[2] = {scene.device, NULL};
    const int64_t shape[] = {0, D};
    const struct tfm_capacity capacity = {ROWS, 1, 0};
    struct tfm_plan_summary summary;
    struct tfm_graph *graph = NULL;
    struct tfm_plan *plan = NULL;
    static double wide[ROWS * D + 1];
    static float twice[ROWS * D];
    size_t n = 0;

    OK(tfm_devices_open(scene.registry, "reference", 1, &devices[1], 1, &n, &scene.err));
    OK(tfm_graph_create(&graph, &scene.err));
    struct tfm_tensor *in = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    tfm_graph_output(graph, tfm_op_add(graph, in, in), "twice");
    tfm_graph_output(graph, tfm_op_cast(graph, in, TFM_DTYPE_F64), "wide");
    OK(tfm_plan_compile(graph, scene.weights, devices, 2, &capacity, &plan, &scene.err));
    tfm_plan_summarize(plan, &summary);
    ck_assert_uint_eq(summary.device_changes, 1);

    struct tfm_exec *exec = scene_exec(plan);
    const cl_mem from = scene_buffer(CL_MEM_READ_ONLY, sizeof x, x);
    const cl_mem to = scene_buffer(CL_MEM_READ_WRITE, sizeof wide, wide);
    const cl_mem hidden = scene_buffer(CL_MEM_HOST_NO_ACCESS, sizeof wide, NULL);
    OK(tfm_opencl_exec_bind(exec, "x", from, 0, sizeof x, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "wide", to, sizeof *wide, sizeof wide - sizeof *wide,
                            &scene.err));
    OK(tfm_exec_bind(exec, "twice", twice, sizeof twice, &scene.err));
    OK(scene_run(exec, ROWS));
    CL(clEnqueueReadBuffer(scene.queue, to, CL_TRUE, 0, sizeof wide, wide, 0, NULL, NULL));
    ck_assert_double_eq(wide[0], 0);
    for (size_t i = 0; i < ROWS * D; i++) {
        ck_assert_double_eq(wide[i + 1], (double)x[i]);
        ck_assert_float_eq(twice[i], 2 * x[i]);
    }
    /* what passes through the host must be open to it */
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "x", hidden, 0, sizeof x, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(scene.err.text, "reads of the host"), "%s", scene.err.text);
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "wide", hidden, 0, sizeof wide, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(scene.err.text, "writes of the host"), "%s", scene.err.text);
    cl_mem buffer;
    size_t offset, bytes;
    ck_assert_int_eq(tfm_opencl_exec_memory(exec, "wide", &buffer, &offset, &bytes, &scene.err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(scene.err.text, "reference"), "%s", scene.err.text);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_device_release(devices[1]);
    CL(clReleaseMemObject(from));
    CL(clReleaseMemObject(to));
    CL(clReleaseMemObject(hidden));
    scene_close();
}
END_TEST

/* Fault: buffers work on wrapped devices only. */
START_TEST(on_a_device_that_was_opened_by_name)
{
    struct test_devices opened;
    struct tfm_opencl_objects objects;
    cl_int code = CL_SUCCESS;
    float got[ROWS * E];

    test_devices_open(&opened);
    OK(tfm_opencl_device_objects(opened.device[0], &objects, &scene.err));
    const cl_mem in = clCreateBuffer(objects.context, CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    CL(code);
    struct tfm_plan *plan = scene_compile(opened.device, 1);
    struct tfm_exec *exec = scene_exec(plan);
    OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
    OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    OK(scene_run(exec, ROWS));
    ck_assert_mem_eq(got, y, sizeof y);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    CL(clReleaseMemObject(in));

    OK(tfm_opencl_device_objects(scene.device, &objects, &scene.err));
    ck_assert_ptr_eq(objects.context, scene.context);
    ck_assert_ptr_eq(objects.device, scene.id);
    ck_assert_ptr_eq(objects.queue, scene.queue);
    char name[128];
    CL(clGetDeviceInfo(scene.id, CL_DEVICE_NAME, sizeof name, name, NULL));
    ck_assert_str_eq(tfm_device_name(scene.device), name);
    ck_assert_str_eq(tfm_device_backend(scene.device), "opencl");
    test_devices_close(&opened);
    scene_close();
}
END_TEST

/* Fault: a sub-device of the caller is cut again, or released once too often. */
START_TEST(on_a_part_of_a_device)
{
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id part[64], whole = scene.id;
    cl_uint n = 0, holders = 0;
    cl_int code = CL_SUCCESS;
    float got[ROWS * E];

    scene_close();
    CL(clCreateSubDevices(whole, one, 64, part, &n));
    memset(&scene, 0, sizeof scene);
    scene.id = part[0];
    scene.context = clCreateContext(NULL, 1, &scene.id, NULL, NULL, &code);
    CL(code);
    scene.queue = clCreateCommandQueue(scene.context, scene.id, 0, &code);
    CL(code);
    OK(tfm_registry_create(NULL, 0, &scene.registry, &scene.err));
    OK(tfm_opencl_device_wrap(scene.registry, scene.context, scene.id, scene.queue, &scene.device,
                              &scene.err));
    scene_model();
    scene.plan = scene_compile(&scene.device, 1);
    struct tfm_exec *exec = scene_exec(scene.plan);
    OK(tfm_exec_bind(exec, "x", x, sizeof x, &scene.err));
    OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    OK(scene_run(exec, ROWS));
    ck_assert_mem_eq(got, y, sizeof y);
    tfm_exec_destroy(exec);
    scene_close();
    CL(clGetDeviceInfo(part[0], CL_DEVICE_REFERENCE_COUNT, sizeof holders, &holders, NULL));
    ck_assert_uint_ge(holders, 1);
    for (cl_uint i = 0; i < n && i < 64; i++)
        CL(clReleaseDevice(part[i]));
}
END_TEST

/* ---- a model ---- */

static void speak(struct tfm_model *model, struct tfm_device *device, float *logits, size_t n)
{
    const int32_t prompt[] = {72, 101, 108, 108, 111}, more = 44;
    struct tfm_session *session = NULL;
    struct tfm_session_options options;

    tfm_session_defaults(&options);
    options.context = 32;
    OK(tfm_session_create(model, &device, 1, &options, &session, &scene.err));
    OK(tfm_session_feed(session, prompt, 5, &scene.err));
    OK(tfm_session_feed(session, &more, 1, &scene.err));
    memcpy(logits, tfm_session_logits(session), n * sizeof *logits);
    tfm_session_destroy(session);
}

/* Fault: what stands on plans and execs wants devices that were opened by name. */
START_TEST(a_session_on_the_wrapped_device)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct test_devices opened;
    struct tfm_model *model = NULL;
    static float wrapped[512], named[512];
    char path[128];

    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.80s/tfm-interop-XXXXXX", tmp ? tmp : "/tmp");
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    tiny.type = TINY_Q4_1;
    tiny_llama_write(&tiny, path);
    OK(tfm_model_open(path, &model, &scene.err));
    const size_t vocab = (size_t)tfm_model_config(model)->vocab;
    ck_assert_uint_le(vocab, sizeof named / sizeof *named);
    test_devices_open(&opened);
    speak(model, opened.device[0], named, vocab);
    speak(model, scene.device, wrapped, vocab);
    ck_assert_mem_eq(wrapped, named, vocab * sizeof *named);
    tfm_model_close(model);
    test_devices_close(&opened);
    unlink(path);
    scene_close();
}
END_TEST

int main(void)
{
    if (!tests_ask(scene_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("interop");
    TCase *tcase = tests_case(suite, "runs");

    tcase_set_timeout(tcase, 180); /* the model's kernels, when the cache of the driver is cold */
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, two_execs_in_zones_of_their_own);
    tcase_add_test(tcase, nothing_passes_through_the_host);
    tcase_add_test(tcase, an_output_in_memory_of_tfm);
    tcase_add_test(tcase, a_run_comes_after_what_was_enqueued);
    tcase_add_test(tcase, kernels_come_after_what_was_enqueued);
    tcase_add_test(tcase, every_reference_is_given_back);
    tcase_add_test(tcase, the_caller_may_let_go_at_once);
    tcase_add_test(tcase, a_warm_run_allocates_nothing);
    tcase_add_test(tcase, with_a_part_on_reference);
    tcase_add_test(tcase, on_a_device_that_was_opened_by_name);
    tcase_add_test(tcase, on_a_part_of_a_device);
    tcase_add_test(tcase, a_session_on_the_wrapped_device);
    return tests_run(suite);
}
