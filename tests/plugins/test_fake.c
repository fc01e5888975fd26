/* SPDX-License-Identifier: MIT
 * A third backend, loaded from its file, takes part in a plan beside the reference without a change to the
 * library: its nodes run there, the others fall back and are counted, the numbers are right. */
#include <math.h>

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/core/runner.h"
#include "tests/core/scene.h"
#include "tests/plugins/fake.h"
#include "tests/skip.h"

/* z = x + down(silu(gate x) * (up x)) */
enum { ROWS = 4, WIDTH = 6, FFN = 5, NODES = 5 };

static struct tfm_registry *registry;
static struct tfm_device *devices[3];
static size_t n_devices;
static struct tfm_weights *weights;
static struct tfm_graph *graph;
static struct tfm_plan *plan;
static struct tfm_error err;
static float gate[FFN * WIDTH], up[FFN * WIDTH], down[WIDTH * FFN], x[ROWS * WIDTH];

static void ok(enum tfm_status status)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

/* Small numbers of both signs without a pattern that hides a swapped index. */
static void fill(float *data, int n, int seed)
{
    for (int i = 0; i < n; i++)
        data[i] = (float)((i * 37 + seed * 11) % 29 - 14) / 16.0f;
}

static void set_matrix(const char *name, int64_t out, int64_t in, float *data, int seed)
{
    fill(data, (int)(out * in), seed);
    ok(tfm_weights_set(weights, name, TFM_DTYPE_F32, 2, (int64_t[]){out, in}, data,
                       (size_t)(out * in) * sizeof *data, &err));
}

static void setup(void)
{
    const struct tfm_nn_swiglu ffn = {FFN, TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32};

    scene_open();
    plan = NULL;
    n_devices = 0;
    setenv("TFM_PLUGIN_PATH", module_path("fake"), 1);
    ok(tfm_registry_create(NULL, 0, &registry, &err));
    ok(tfm_weights_create(&weights, &err));
    ok(tfm_graph_create(&graph, &err));
    set_matrix("ffn.gate.weight", FFN, WIDTH, gate, 1);
    set_matrix("ffn.up.weight", FFN, WIDTH, up, 2);
    set_matrix("ffn.down.weight", WIDTH, FFN, down, 3);
    fill(x, ROWS * WIDTH, 4);
    struct tfm_tensor *in = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, WIDTH});
    struct tfm_tensor *y = tfm_nn_swiglu(graph, "ffn", in, &ffn);
    tfm_graph_output(graph, tfm_op_add(graph, y, in), "z");
    ok(tfm_graph_check(graph, &err));
    ck_assert_uint_eq(tfm_graph_node_count(graph), NODES);
}

static void teardown(void)
{
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    for (size_t i = 0; i < n_devices; i++)
        tfm_device_release(devices[i]);
    tfm_registry_destroy(registry);
    scene_close();
}

static enum tfm_status compile(const char *spec, int strict)
{
    const struct tfm_capacity capacity = {ROWS, 1, 1};
    ok(tfm_devices_open(registry, spec, strict, devices, 3, &n_devices, &err));
    return tfm_plan_compile(graph, weights, devices, n_devices, &capacity, &plan, &err);
}

static double dot(const float *row, const double *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += row[i] * v[i];
    return sum;
}

static void expect(const float *z, int n)
{
    for (int r = 0; r < n; r++) {
        double in[WIDTH], hidden[FFN];
        for (int i = 0; i < WIDTH; i++)
            in[i] = x[r * WIDTH + i];
        for (int f = 0; f < FFN; f++) {
            const double g = dot(gate + f * WIDTH, in, WIDTH);
            hidden[f] = g / (1 + exp(-g)) * dot(up + f * WIDTH, in, WIDTH);
        }
        for (int i = 0; i < WIDTH; i++) {
            const double right = in[i] + dot(down + i * FFN, hidden, FFN);
            ck_assert_msg(fabs(z[r * WIDTH + i] - right) < 1e-5, "z[%d, %d] = %.9g, not %.9g", r, i,
                          (double)z[r * WIDTH + i], right);
        }
    }
}

/* Catches: a plugin that is loaded and never used; buffers taken for host memory; a tensor that is not
 * copied between the devices; nodes of the fallback not counted. */
START_TEST(its_nodes_run_there_and_the_others_fall_back)
{
    static const struct {
        const char *op, *backend, *refusal;
    } expected[NODES] = {
        {"linear", "reference", "fake: only add and swiglu"},
        {"linear", "reference", "fake: only add and swiglu"},
        {"swiglu", "fake", ""},
        {"linear", "reference", "fake: only add and swiglu"},
        {"add", "fake", ""},
    };
    struct tfm_plan_summary summary;
    struct tfm_plan_node node;
    struct tfm_exec *exec;
    float z[ROWS * WIDTH];

    ok(compile("fake", 0));
    tfm_plan_summarize(plan, &summary);
    ck_assert_uint_eq(summary.fallbacks, 3);
    ck_assert_uint_eq(summary.segments, 4);
    ck_assert_uint_eq(summary.device_changes, 3);
    for (uint32_t i = 0; i < NODES; i++) {
        ok(tfm_plan_describe(plan, i, &node));
        ck_assert_str_eq(tfm_op_name(node.node->op), expected[i].op);
        ck_assert_str_eq(node.backend, expected[i].backend);
        ck_assert_str_eq(node.refusal, expected[i].refusal);
    }
    ok(tfm_exec_create(plan, &exec, &err));
    ok(tfm_exec_bind(exec, "x", x, sizeof x, &err));
    ok(tfm_exec_bind(exec, "z", z, sizeof z, &err));
    const struct fake_counters *counters = tfm_device_extension(devices[0], FAKE_COUNTERS);
    ck_assert_ptr_nonnull(counters);
    for (uint32_t n = 1; n <= ROWS; n++) {
        const struct tfm_rows rows = {.n = n};
        const struct fake_counters before = *counters;
        memset(z, 0xff, sizeof z);
        ok(tfm_exec_run(exec, &rows, &err));
        expect(z, (int)n);
        ck_assert_uint_eq(counters->nodes - before.nodes, 2);
        ck_assert_uint_eq(counters->elements - before.elements, n * (FFN + WIDTH));
    }
    tfm_exec_destroy(exec);
}
END_TEST

/* Catches: the same graph on the reference alone that needs the plugin, or differs. */
START_TEST(the_reference_agrees)
{
    struct tfm_plan_summary summary;
    const struct tfm_rows rows = {.n = ROWS};
    struct tfm_exec *exec;
    float z[ROWS * WIDTH];

    ok(compile("reference", 0));
    tfm_plan_summarize(plan, &summary);
    ck_assert_uint_eq(summary.fallbacks, 0);
    ok(tfm_exec_create(plan, &exec, &err));
    ok(tfm_exec_bind(exec, "x", x, sizeof x, &err));
    ok(tfm_exec_bind(exec, "z", z, sizeof z, &err));
    ok(tfm_exec_run(exec, &rows, &err));
    expect(z, ROWS);
    tfm_exec_destroy(exec);
}
END_TEST

/* Catches: a fallback under strict; an error that does not name layer, op and the plugin's words. */
START_TEST(under_strict_a_refusal_is_an_error)
{
    ck_assert_int_eq(compile("fake", 1), TFM_STATUS_STRICT);
    ck_assert_uint_eq(n_devices, 1);
    ck_assert_ptr_nonnull(strstr(err.text, "ffn.gate"));
    ck_assert_ptr_nonnull(strstr(err.text, "linear"));
    ck_assert_ptr_nonnull(strstr(err.text, "fake: only add and swiglu"));
}
END_TEST

int main(void)
{
    if (!have_modules())
        return tests_skip("the test modules are not built (--disable-shared)");

    Suite *suite = suite_create("fake");
    TCase *tcase = tests_case(suite, "plan");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, its_nodes_run_there_and_the_others_fall_back);
    tcase_add_test(tcase, the_reference_agrees);
    tcase_add_test(tcase, under_strict_a_refusal_is_an_error);
    return tests_run(suite);
}
