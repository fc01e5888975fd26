/* SPDX-License-Identifier: MIT
 * tfm/opencl.h: what does not fit together is refused with a text that says what, and leaves everything as it
 * was. */
#include "tests/opencl/interop_scene.h"

#include "tests/plugins/stub.h"

/* Two parts of the whole device: devices of their own. */
static cl_device_id parts[2];

static void setup(void)
{
    scene_open();
}

static void split(void)
{
    const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id all[64];
    cl_uint n = 0;

    CL(clCreateSubDevices(scene.id, one, 64, all, &n));
    ck_assert_uint_ge(n, 2);
    parts[0] = all[0];
    parts[1] = all[1];
    for (cl_uint i = 2; i < n && i < 64; i++)
        CL(clReleaseDevice(all[i]));
}

static cl_context context_of(cl_uint n, const cl_device_id *devices)
{
    cl_int code = CL_SUCCESS;
    const cl_context context = clCreateContext(NULL, n, devices, NULL, NULL, &code);
    CL(code);
    return context;
}

static cl_command_queue queue_of(cl_context context, cl_device_id device,
                                 cl_command_queue_properties properties)
{
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = clCreateCommandQueue(context, device, properties, &code);
    CL(code);
    return queue;
}

/* Each word must be in the text, which is one line. */
static void check_text(const char *const *words)
{
    for (; *words; words++)
        ck_assert_msg(strstr(scene.err.text, *words), "no \"%s\" in: %s", *words, scene.err.text);
    ck_assert_ptr_null(strchr(scene.err.text, '\n'));
}
#define TEXT(...) check_text((const char *const[]){__VA_ARGS__, NULL})

static void refused(cl_context context, cl_device_id device, cl_command_queue queue)
{
    struct tfm_device *none = NULL;
    ck_assert_int_eq(
        tfm_opencl_device_wrap(scene.registry, context, device, queue, &none, &scene.err),
        TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_null(none);
}

/* ---- devices ---- */

/* Fault: objects that do not belong together reach the driver, which may crash on them, run on another device
 * or not at all; a reference to what was refused is kept. */
START_TEST(objects_that_do_not_fit)
{
    split();
    const cl_context second = context_of(1, &scene.id), split_context = context_of(2, parts);
    const cl_command_queue foreign = queue_of(second, scene.id, 0);
    const cl_command_queue of_second_part = queue_of(split_context, parts[1], 0);
    const cl_command_queue loose =
        queue_of(scene.context, scene.id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_uint before = 0, after = 0;

    CL(clGetContextInfo(scene.context, CL_CONTEXT_REFERENCE_COUNT, sizeof before, &before, NULL));
    refused(NULL, scene.id, scene.queue);
    TEXT("context is NULL");
    refused(scene.context, NULL, scene.queue);
    TEXT("device is NULL");
    refused(scene.context, scene.id, NULL);
    TEXT("queue is NULL");
    refused(scene.context, parts[0], scene.queue);
    TEXT("queue is one of device");
    refused(scene.context, scene.id, foreign);
    TEXT("queue belongs to another context");
    refused(split_context, parts[0], of_second_part);
    TEXT("queue is one of device", "not of the device given");
    refused(scene.context, scene.id, loose);
    TEXT("out-of-order", "in-order queue");
    CL(clGetContextInfo(scene.context, CL_CONTEXT_REFERENCE_COUNT, sizeof after, &after, NULL));
    ck_assert_uint_eq(after, before);
    CL(clReleaseCommandQueue(loose));
    CL(clReleaseCommandQueue(of_second_part));
    CL(clReleaseCommandQueue(foreign));
    CL(clReleaseContext(split_context));
    CL(clReleaseContext(second));
    CL(clReleaseDevice(parts[0]));
    CL(clReleaseDevice(parts[1]));
}
END_TEST

/* Fault: the same with a device that is no part of the context at all. PoCL can show two devices. */
START_TEST(a_context_of_another_device)
{
    cl_device_id both[2];
    cl_uint n = 0;

    setenv("POCL_DEVICES", "pthread basic", 1);
    memset(&scene, 0, sizeof scene);
    scene_opencl();
    CL(clGetDeviceIDs(scene.platform, CL_DEVICE_TYPE_ALL, 2, both, &n));
    ck_assert_uint_eq(n, 2); /* "basic" comes first */
    OK(tfm_registry_create(NULL, 0, &scene.registry, &scene.err));
    const cl_context only_second = context_of(1, &both[1]), of_both = context_of(2, both);
    refused(only_second, both[0], scene.queue);
    TEXT("context does not hold this device \"basic", "it holds \"pthread");
    const cl_command_queue of_second = queue_of(of_both, both[1], 0);
    refused(of_both, both[0], of_second);
    TEXT("queue is one of device \"pthread", "not of the device given, \"basic");
    tfm_registry_destroy(scene.registry);
    CL(clReleaseCommandQueue(of_second));
    CL(clReleaseContext(of_both));
    CL(clReleaseContext(only_second));
    CL(clReleaseCommandQueue(scene.queue));
    CL(clReleaseContext(scene.context));
}
END_TEST

static const void *old_extension(void *device, const char *name)
{
    static const struct tfm_interop short_table = {.struct_size = sizeof(size_t)};
    (void)device;
    return strcmp(name, TFM_OPENCL_INTEROP) == 0 ? &short_table : NULL;
}

/* Fault: a module that is older than the header is called behind the end of its table. */
START_TEST(a_module_without_the_extension)
{
    struct tfm_backend old = stub_table("opencl");
    struct tfm_device *none = NULL;
    struct tfm_registry *registry = NULL;

    for (int with_short_table = 0; with_short_table < 2; with_short_table++) {
        setenv("TFM_PLUGIN_PATH", "/nonexistent", 1);
        old.extension = with_short_table ? old_extension : NULL;
        OK(tfm_registry_create(NULL, 0, &registry, &scene.err));
        if (tfm_registry_count(registry) > 1 &&
            tfm_registry_add(registry, &old, &scene.err) != TFM_STATUS_OK) {
            /* an installed module came first: nothing to be seen here */
            tfm_registry_destroy(registry);
            continue;
        }
        if (tfm_registry_count(registry) == 1)
            OK(tfm_registry_add(registry, &old, &scene.err));
        ck_assert_int_eq(tfm_opencl_device_wrap(registry, scene.context, scene.id, scene.queue,
                                                &none, &scene.err),
                         TFM_STATUS_UNSUPPORTED);
        TEXT("opencl.interop-1", "memory", "newer");
        tfm_registry_destroy(registry);
    }
}
END_TEST

/* Fault: without the module, or on a device of another backend, the call crashes. */
START_TEST(another_backend)
{
    struct tfm_device *none = NULL, *reference = NULL;
    struct tfm_opencl_objects objects;
    float values[ROWS * D];
    size_t n = 0;

    OK(tfm_devices_open(scene.registry, "reference", 1, &reference, 1, &n, &scene.err));
    ck_assert_int_eq(tfm_opencl_device_objects(reference, &objects, &scene.err),
                     TFM_STATUS_UNSUPPORTED);
    TEXT("reference", "opencl.interop-1");
    struct tfm_plan *plan = scene_compile(&reference, 1);
    struct tfm_exec *exec = scene_exec(plan);
    const cl_mem buffer = scene_buffer(CL_MEM_READ_WRITE, sizeof values, NULL);
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "x", buffer, 0, sizeof values, &scene.err),
                     TFM_STATUS_UNSUPPORTED);
    TEXT("bind \"x\"", "reference", "opencl.interop-1");
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_device_release(reference);

    /* no module of that name at all */
    ck_assert_int_eq(
        tfm_device_wrap(scene.registry, "opencll", TFM_OPENCL_INTEROP, &objects, &none, &scene.err),
        TFM_STATUS_NOT_FOUND);
    TEXT("opencll", "did you mean \"opencl\"");
    CL(clReleaseMemObject(buffer));
}
END_TEST

/* ---- buffers ---- */

enum { X_BYTES = ROWS * D * 4, Y_BYTES = ROWS * E * 4, SUM_BYTES = X_BYTES };

/* Fault: each of these is found by a kernel, or by nobody. */
START_TEST(regions_that_do_not_fit)
{
    static const struct region {
        const char *name;
        cl_mem_flags flags;
        size_t size, offset, bytes;
        const char *words[3];
    } regions[] = {
        {"z", 0, X_BYTES, 0, X_BYTES, {"no input or output \"z\""}},
        {"table", 0, X_BYTES, 0, X_BYTES, {"no input or output \"table\""}},
        {"x", 0, X_BYTES, 0, X_BYTES - 4, {"8188 bytes given", "8192 needed"}},
        {"x", 0, X_BYTES - 4, 0, X_BYTES, {"8192 bytes", "which has 8188"}},
        {"x", 0, X_BYTES, 4, X_BYTES, {"8192 bytes from offset 4", "which has 8192"}},
        {"x", 0, X_BYTES, SIZE_MAX - 3, X_BYTES, {"18446744073709551612", "which has 8192"}},
        {"x", 0, 2 * X_BYTES, 2, X_BYTES, {"offset 2", "4 bytes", "f32"}},
        {"ids", 0, X_BYTES, 1, ROWS * 4, {"offset 1", "i32"}},
        {"y", 0, 2 * Y_BYTES, 130, Y_BYTES, {"offset 130"}},
        {"x", CL_MEM_WRITE_ONLY, X_BYTES, 0, X_BYTES, {"CL_MEM_WRITE_ONLY", "read the tensor"}},
        {"y", CL_MEM_READ_ONLY, Y_BYTES, 0, Y_BYTES, {"CL_MEM_READ_ONLY", "write the tensor"}},
        {"sum", CL_MEM_READ_ONLY, SUM_BYTES, 0, SUM_BYTES, {"CL_MEM_READ_ONLY"}},
        /* an output that a later node reads */
        {"sum", CL_MEM_WRITE_ONLY, SUM_BYTES, 0, SUM_BYTES, {"CL_MEM_WRITE_ONLY"}},
        {"ids", CL_MEM_HOST_NO_ACCESS, ROWS * 4, 0, ROWS * 4, {"reads of the host", "indices"}},
        {"ids", CL_MEM_HOST_WRITE_ONLY, ROWS * 4, 0, ROWS * 4, {"reads of the host"}},
    };
    struct tfm_exec *exec = scene_exec(scene.plan);

    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        const struct region *r = &regions[i];
        const cl_mem buffer = scene_buffer(r->flags, r->size, NULL);
        cl_uint holders = 0;
        const enum tfm_status status =
            tfm_opencl_exec_bind(exec, r->name, buffer, r->offset, r->bytes, &scene.err);
        ck_assert_msg(status == (i < 2 ? TFM_STATUS_NOT_FOUND : TFM_STATUS_INVALID_ARGUMENT),
                      "region %zu: status %d, %s", i, (int)status, scene.err.text);
        ck_assert_msg(i < 2 || strstr(scene.err.text, r->name), "%s", scene.err.text);
        for (size_t w = 0; w < 3 && r->words[w]; w++)
            TEXT(r->words[w]);
        CL(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof holders, &holders, NULL));
        ck_assert_uint_eq(holders, 1);
        CL(clReleaseMemObject(buffer));
    }
    tfm_exec_destroy(exec);
}
END_TEST

/* Fault: memory that no kernel of this context can reach is handed to one. */
START_TEST(buffers_of_the_wrong_kind)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    const cl_context second = context_of(1, &scene.id);
    const cl_image_format format = {CL_RGBA, CL_FLOAT};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 32, .image_height = 32};
    cl_int code = CL_SUCCESS;
    const cl_mem foreign = clCreateBuffer(second, CL_MEM_READ_WRITE, X_BYTES, NULL, &code);

    CL(code);
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "x", NULL, 0, X_BYTES, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    TEXT("bind \"x\"", "buffer is NULL");
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "x", foreign, 0, X_BYTES, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    TEXT("bind \"x\"", "another context");
    const cl_mem image =
        clCreateImage(scene.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code);
    if (code == CL_SUCCESS) { /* a device need not have images */
        ck_assert_int_eq(tfm_opencl_exec_bind(exec, "x", image, 0, X_BYTES, &scene.err),
                         TFM_STATUS_INVALID_ARGUMENT);
        TEXT("bind \"x\"", "no buffer");
        CL(clReleaseMemObject(image));
    }
    tfm_exec_destroy(exec);
    CL(clReleaseMemObject(foreign));
    CL(clReleaseContext(second));
}
END_TEST

/* Fault: an output is written over an input or another output while it is still needed, also where the two are
 * parts of one buffer under two names. */
START_TEST(regions_that_overlap)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    const cl_mem all = scene_buffer(CL_MEM_READ_WRITE, 4 * X_BYTES, NULL);
    const cl_buffer_region half = {X_BYTES, X_BYTES};
    cl_int code = CL_SUCCESS;
    const cl_mem sub = clCreateSubBuffer(all, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &code);

    CL(code);
    OK(tfm_opencl_exec_bind(exec, "x", all, 0, X_BYTES, &scene.err));
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "y", all, X_BYTES - 4, Y_BYTES, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    TEXT("bind \"y\"", "[8188, 14332)", "[0, 8192)", "\"x\"");
    OK(tfm_opencl_exec_bind(exec, "y", all, X_BYTES, Y_BYTES, &scene.err));
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "sum", sub, 0, X_BYTES, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    TEXT("bind \"sum\"", "overlap", "\"y\"");
    OK(tfm_opencl_exec_bind(exec, "y", all, 2 * X_BYTES, Y_BYTES, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "sum", sub, 0, X_BYTES, &scene.err));
    /* a bigger region than the tensor needs is no overlap in what a run touches */
    OK(tfm_opencl_exec_bind(exec, "x", all, 0, 2 * X_BYTES, &scene.err));
    /* inputs may share */
    OK(tfm_opencl_exec_bind(exec, "ids", all, 0, ROWS * 4, &scene.err));
    ck_assert_int_eq(tfm_opencl_exec_bind(exec, "ids", sub, 0, ROWS * 4, &scene.err),
                     TFM_STATUS_INVALID_ARGUMENT);
    tfm_exec_destroy(exec);
    CL(clReleaseMemObject(sub));
    CL(clReleaseMemObject(all));
}
END_TEST

/* ---- values ---- */

/* Fault: a kernel reads an id of the caller's buffer that nobody has checked; or the exec is dead afterwards. */
START_TEST(ids_out_of_range)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    float x[ROWS * D], sum[ROWS * D], y[ROWS * E], got[ROWS * E];
    int32_t ids[ROWS] = {0}, bad[] = {VOCAB, -1, INT32_MAX};
    const cl_mem buffer = scene_buffer(CL_MEM_READ_WRITE, sizeof ids + 8, NULL);

    scene_fill(x, ROWS * D, 9);
    scene_expect(x, ids, ROWS, sum, y);
    OK(tfm_exec_bind(exec, "x", x, sizeof x, &scene.err));
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    OK(tfm_opencl_exec_bind(exec, "ids", buffer, 4, sizeof ids, &scene.err));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ids[17] = bad[i];
        CL(clEnqueueWriteBuffer(scene.queue, buffer, CL_TRUE, 4, sizeof ids, ids, 0, NULL, NULL));
        OK(scene_run(exec, 17)); /* it is not among the rows of this run */
        ck_assert_int_eq(scene_run(exec, 18), TFM_STATUS_OUT_OF_RANGE);
        TEXT("\"ids\"", "at 17", "[0, 11)");
        ids[17] = 0;
        CL(clEnqueueWriteBuffer(scene.queue, buffer, CL_TRUE, 4, sizeof ids, ids, 0, NULL, NULL));
        OK(scene_run(exec, ROWS));
        ck_assert_mem_eq(got, y, sizeof y);
    }
    tfm_exec_destroy(exec);
    CL(clReleaseMemObject(buffer));
}
END_TEST

/* Fault: a binding that failed has already replaced the one before. */
START_TEST(a_refusal_leaves_the_binding)
{
    struct tfm_exec *exec = scene_exec(scene.plan);
    float x[ROWS * D], sum[ROWS * D], y[ROWS * E], got[ROWS * E];
    int32_t ids[ROWS] = {0};

    scene_fill(x, ROWS * D, 9);
    scene_expect(x, ids, ROWS, sum, y);
    const cl_mem in = scene_buffer(CL_MEM_READ_ONLY, sizeof x, x);
    OK(tfm_opencl_exec_bind(exec, "x", in, 0, sizeof x, &scene.err));
    OK(tfm_exec_bind(exec, "ids", ids, sizeof ids, &scene.err));
    OK(tfm_exec_bind(exec, "y", got, sizeof got, &scene.err));
    ck_assert_int_ne(tfm_opencl_exec_bind(exec, "x", in, 4, sizeof x, &scene.err), TFM_STATUS_OK);
    ck_assert_int_ne(tfm_opencl_exec_bind(exec, "y", in, 0, sizeof y, &scene.err), TFM_STATUS_OK);
    ck_assert_int_ne(tfm_exec_bind(exec, "x", x, 4, &scene.err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_unbind(exec, "w", &scene.err), TFM_STATUS_NOT_FOUND);
    OK(scene_run(exec, ROWS));
    ck_assert_mem_eq(got, y, sizeof y);
    tfm_exec_destroy(exec);
    CL(clReleaseMemObject(in));
}
END_TEST

int main(void)
{
    if (!tests_ask(scene_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("interop refusals");
    TCase *tcase = tests_case(suite, "refusals");

    tcase_add_checked_fixture(tcase, setup, scene_close);
    tcase_add_test(tcase, objects_that_do_not_fit);
    tcase_add_test(tcase, a_module_without_the_extension);
    tcase_add_test(tcase, another_backend);
    tcase_add_test(tcase, regions_that_do_not_fit);
    tcase_add_test(tcase, buffers_of_the_wrong_kind);
    tcase_add_test(tcase, regions_that_overlap);
    tcase_add_test(tcase, ids_out_of_range);
    tcase_add_test(tcase, a_refusal_leaves_the_binding);
    tcase_add_test(tests_case(suite, "two devices"), a_context_of_another_device);
    return tests_run(suite);
}
