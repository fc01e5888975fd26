/* SPDX-License-Identifier: MIT
 * The ageing rule with a real module: wrong_nothing.so was built for ABI minor 0, computes an attention right
 * and knows nothing of windows. It must get the attention and must not be asked about the windowed one. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include <tfm/plan.h>

#include "tests/core/runner.h"
#include "tests/core/scene.h"
#include "tests/skip.h"

enum { ROWS = 12, HEADS = 4, GROUPS = 2, D = 8, CELLS = 16, WINDOW = 3 };

static struct tfm_registry *registry;
static struct tfm_error err;
static const struct tfm_backend *module;
static int asked; /* about an attention with a window */

static void ok(enum tfm_status status)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

static int32_t listen(void *device, const struct tfm_node *node,
                      const struct tfm_capacity *capacity, char *reason, size_t size)
{
    asked += node->attrs.window != 0;
    return module->supports(device, node, capacity, reason, size);
}

/* The module's table as it is but for its name and minor, so that both ages can be had. */
static void add(const char *name, uint32_t minor)
{
    struct tfm_backend table = *module;

    table.name = name;
    table.abi_minor = minor;
    table.supports = listen;
    ok(tfm_registry_add(registry, &table, &err));
}

static void setup(void)
{
    scene_open();
    asked = 0;
    void *handle = dlopen(module_path("wrong_nothing"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    module = dlsym(handle, TFM_BACKEND_SYMBOL);
    ck_assert_ptr_nonnull(module);
    ok(tfm_registry_create(NULL, 0, &registry, &err));
    add("old", 0);
    add("liar", 1);
}

static void teardown(void)
{
    tfm_registry_destroy(registry);
    scene_close();
}

/* y [ROWS, HEADS, D] of an attention on a list of backends; who computes it goes to `backend`, why not an
 * earlier one to `refusal` [200]. */
static void attend(const char *spec, int64_t window, float *y, char *backend, char *refusal)
{
    static const int32_t zero[] = {0};
    const struct tfm_rows rows = {ROWS, 1, 0, zero, zero, zero, NULL};
    const struct tfm_capacity capacity = {ROWS, 1, 0};
    const int64_t q_shape[] = {0, HEADS, D}, k_shape[] = {0, GROUPS, D};
    const int64_t cache_shape[] = {1, CELLS, GROUPS, D};
    static float q[ROWS * HEADS * D], k[ROWS * GROUPS * D], v[ROWS * GROUPS * D];
    struct tfm_device *devices[3];
    struct tfm_weights *weights;
    struct tfm_graph *graph;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    struct tfm_plan_node node;
    size_t n;

    for (int i = 0; i < ROWS * HEADS * D; i++)
        q[i] = (float)(i * 37 % 29 - 14) / 16.0f;
    for (int i = 0; i < ROWS * GROUPS * D; i++) {
        k[i] = (float)(i * 23 % 31 - 15) / 16.0f;
        v[i] = (float)(i * 41 % 37 - 18) / 16.0f;
    }
    ok(tfm_graph_create(&graph, &err));
    ok(tfm_weights_create(&weights, &err));
    const struct tfm_attention config = {
        .window = (int)window,
        .k_cache = tfm_graph_state(graph, "k_cache", TFM_DTYPE_F32, 4, cache_shape),
        .v_cache = tfm_graph_state(graph, "v_cache", TFM_DTYPE_F32, 4, cache_shape)};
    struct tfm_tensor *in[] = {tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, q_shape),
                               tfm_graph_input(graph, "k", TFM_DTYPE_F32, 3, k_shape),
                               tfm_graph_input(graph, "v", TFM_DTYPE_F32, 3, k_shape)};
    tfm_graph_output(graph, tfm_op_attention(graph, in[0], in[1], in[2], &config), "y");
    ok(tfm_graph_check(graph, &err));
    ok(tfm_devices_open(registry, spec, 0, devices, 3, &n, &err));
    ok(tfm_plan_compile(graph, weights, devices, n, &capacity, &plan, &err));
    ok(tfm_plan_describe(plan, 0, &node));
    snprintf(backend, 32, "%s", node.backend);
    snprintf(refusal, 200, "%s", node.refusal);
    ok(tfm_exec_create(plan, &exec, &err));
    ok(tfm_exec_bind(exec, "q", q, sizeof q, &err));
    ok(tfm_exec_bind(exec, "k", k, sizeof k, &err));
    ok(tfm_exec_bind(exec, "v", v, sizeof v, &err));
    ok(tfm_exec_bind(exec, "y", y, ROWS * HEADS * D * sizeof *y, &err));
    ok(tfm_exec_run(exec, &rows, &err));
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    while (n > 0)
        tfm_device_release(devices[--n]);
    tfm_weights_release(weights);
    tfm_graph_destroy(graph);
}

static double farthest(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < ROWS * HEADS * D; i++)
        most = fmax(most, fabs((double)a[i] - b[i]));
    return most;
}

/* Catches: an old plugin that loses what it can do; one that is asked about a window and, in good faith,
 * computes without it. That it would is shown by the same code under a minor that it does not have. */
START_TEST(an_old_plugin_is_not_asked_about_a_window)
{
    static float right[ROWS * HEADS * D], y[ROWS * HEADS * D];
    char backend[32], refusal[200];

    attend("reference", 0, right, backend, refusal);
    attend("old", 0, y, backend, refusal);
    ck_assert_str_eq(backend, "old");
    ck_assert(farthest(y, right) < 1e-5);

    attend("reference", WINDOW, right, backend, refusal);
    attend("old", WINDOW, y, backend, refusal);
    ck_assert_str_eq(backend, "reference");
    ck_assert_str_eq(refusal,
                     "old: attribute window came with ABI minor 1, the plugin was built for "
                     "minor 0");
    ck_assert_int_eq(asked, 0);
    ck_assert(farthest(y, right) == 0);

    attend("liar", WINDOW, y, backend, refusal);
    ck_assert_str_eq(backend, "liar");
    ck_assert_int_gt(asked, 0);
    ck_assert(farthest(y, right) > 0.01);
}
END_TEST

int main(void)
{
    if (!have_modules())
        return tests_skip("the test modules are not built (--disable-shared)");

    Suite *suite = suite_create("old minor");
    TCase *tcase = tests_case(suite, "plan");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_old_plugin_is_not_asked_about_a_window);
    return tests_run(suite);
}
