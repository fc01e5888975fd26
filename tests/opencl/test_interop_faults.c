/* SPDX-License-Identifier: MIT
 * OpenCL fails while TFM works with objects of its caller: at each call in turn, from wrapping to the last
 * release. Nothing of the caller's is lost or kept, each failure names its call, and the same step works when
 * it is tried again. The fault layer (faults.c) is preloaded. */
#include "tests/opencl/interop_scene.h"

#include <dlfcn.h>

#include "tests/opencl/faults.h"
#include "tests/opencl/preload.h"

static const struct fault_layer *layer;

static float x[ROWS * D], sum[ROWS * D], y[ROWS * E];
static int32_t ids[ROWS];
static cl_mem x_buffer, ids_buffer, y_buffer;
static struct tfm_exec *exec;

static enum tfm_status wrap(void)
{
    return tfm_opencl_device_wrap(scene.registry, scene.context, scene.id, scene.queue,
                                  &scene.device, &scene.err);
}

static enum tfm_status compile(void)
{
    const struct tfm_capacity capacity = {ROWS, 1, 0};
    return tfm_plan_compile(scene.graph, scene.weights, &scene.device, 1, &capacity, &scene.plan,
                            &scene.err);
}

static enum tfm_status open_exec(void)
{
    return tfm_exec_create(scene.plan, &exec, &scene.err);
}

static enum tfm_status bind_x(void)
{
    return tfm_opencl_exec_bind(exec, "x", x_buffer, 0, sizeof x, &scene.err);
}

static enum tfm_status bind_ids(void)
{
    return tfm_opencl_exec_bind(exec, "ids", ids_buffer, 0, sizeof ids, &scene.err);
}

static enum tfm_status bind_y(void)
{
    return tfm_opencl_exec_bind(exec, "y", y_buffer, 0, sizeof y, &scene.err);
}

static enum tfm_status run_few(void)
{
    return scene_run(exec, 3);
}

static enum tfm_status run_all(void)
{
    return scene_run(exec, ROWS);
}

static enum tfm_status (*const steps[])(void) = {wrap,     compile, open_exec, bind_x,
                                                 bind_ids, bind_y,  run_few,   run_all};

/* With a fault a step may fail; then it works without. */
static void take(enum tfm_status (*step)(void), const struct fault *f)
{
    if (step() == TFM_STATUS_OK)
        return;
    const char *name = layer->struck();
    ck_assert_msg(name && (strstr(scene.err.text, name) || strstr(scene.err.text, "CLBlast")) &&
                      !strchr(scene.err.text, '\n'),
                  "fault %d at call %lu (%s): %s", (int)f->code, f->at, name ? name : "not reached",
                  scene.err.text);
    OK(step());
}

static void life(const struct fault *f)
{
    long before[FAULT_KINDS];
    float got[ROWS * E] = {0};

    CL(clEnqueueWriteBuffer(scene.queue, y_buffer, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        before[kind] = layer->live(kind);
    scene_model();
    layer->arm(f);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        take(steps[s], f);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(scene.plan);
    tfm_weights_release(scene.weights);
    tfm_device_release(scene.device);
    tfm_graph_destroy(scene.graph);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        ck_assert_msg(layer->live(kind) == before[kind],
                      "fault %d at call %lu (%s): %ld objects of kind %d were %ld", (int)f->code,
                      f->at, layer->struck() ? layer->struck() : "not reached", layer->live(kind),
                      kind, before[kind]);
    const int struck = layer->struck() != NULL;
    layer->arm(NULL);
    CL(clEnqueueReadBuffer(scene.queue, y_buffer, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
    ck_assert_mem_eq(got, y, sizeof y);
    ck_assert_int_eq(struck, f->at > 0);
}

static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE};
enum { N_CODES = sizeof codes / sizeof *codes, POINTS = 30 };

/* Catches: a reference that a failed step keeps or gives back twice, a step that cannot be tried again, a
 * result that is wrong after it, a failure without the call's name. */
START_TEST(a_call_fails)
{
    const struct fault none = {0};

    memset(&scene, 0, sizeof scene);
    scene_opencl();
    OK(tfm_registry_create(NULL, 0, &scene.registry, &scene.err));
    scene_fill(x, ROWS * D, 5);
    for (int i = 0; i < ROWS; i++)
        ids[i] = i % VOCAB;
    scene_expect(x, ids, ROWS, sum, y);
    x_buffer = scene_buffer(CL_MEM_READ_ONLY, sizeof x, x);
    ids_buffer = scene_buffer(CL_MEM_READ_ONLY, sizeof ids, ids);
    y_buffer = scene_buffer(CL_MEM_READ_WRITE, sizeof y, NULL);

    /* the calls of a life without faults, the last release included */
    scene_model();
    layer->arm(NULL);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        OK(steps[s]());
    tfm_exec_destroy(exec);
    tfm_plan_destroy(scene.plan);
    tfm_weights_release(scene.weights);
    tfm_device_release(scene.device);
    tfm_graph_destroy(scene.graph);
    const unsigned long calls = layer->calls();
    ck_assert_uint_gt(calls, POINTS);
    life(&none);
    for (unsigned long p = 0; p < POINTS; p++) {
        const unsigned long at =
            (calls - 1) * (p * N_CODES + (unsigned)_i) / (POINTS * N_CODES - 1);
        const struct fault f = {.at = at + 1, .code = codes[_i]};
        life(&f);
    }
    CL(clReleaseMemObject(x_buffer));
    CL(clReleaseMemObject(ids_buffer));
    CL(clReleaseMemObject(y_buffer));
    tfm_registry_destroy(scene.registry);
    CL(clReleaseCommandQueue(scene.queue));
    CL(clReleaseContext(scene.context));
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    if (!tests_ask(scene_present))
        return tests_skip("no OpenCL device of PoCL");
    layer = dlsym(RTLD_DEFAULT, "fault_layer");
    if (!layer)
        return tests_preload("faults", argv);
    /* how often a persistent kernel is tried depends on the neighbours: the calls could not be counted */
    setenv("TFM_OPENCL_PERSISTENT", "off", 1);
    Suite *suite = suite_create("interop faults");
    TCase *tcase = tests_case(suite, "faults");

    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, a_call_fails, 0, N_CODES);
    return tests_run(suite);
}
