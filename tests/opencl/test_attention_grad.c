/* SPDX-License-Identifier: MIT
 * attention_grad makes the sums of rows and of cells in one launch or in two; every gradient must have the same bits
 * from both. What it computes is checked by the cases of tests/ops. */
#include <math.h>

#include "tests/opencl/parts.h"

#include <tfm/grad.h>

/* More cells than a part keeps the weights of, and no multiple of a tile. */
enum { ROWS = 1100, HEADS = 3, DIM = 40, BUCKETS = 6, SPAN = 9 };
enum { QUERY = HEADS * DIM, BIAS = BUCKETS * HEADS };

/* The inputs of a run and what it makes. */
static float q[ROWS * QUERY], dy[ROWS * QUERY], k[ROWS * DIM], v[ROWS * DIM], lse[ROWS * HEADS];
struct results {
    float dq[ROWS * QUERY], dk[ROWS * DIM], dv[ROWS * DIM], dbias[BIAS];
};
static struct results once, twice;

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;
static struct tfm_plan *plan;
static struct tfm_exec *exec;

static const struct kind {
    int bidirectional, window;
    double softcap;
    int biased;
} kinds[] = {{0, 0, 0, 0}, {0, 100, 0, 0}, {1, 0, 2, 1}};

static void add_bias(struct tfm_attention *config, struct tfm_tensor **dbias)
{
    static const int64_t shape[] = {BUCKETS, HEADS}, distances[] = {2 * SPAN + 1};
    int32_t buckets[2 * SPAN + 1];

    for (int32_t i = 0; i < 2 * SPAN + 1; i++)
        buckets[i] = i * 5 % BUCKETS;
    config->rel_bias =
        parts_parameter(graph, weights, "rel_bias", TFM_DTYPE_F32, BUCKETS, HEADS, 9);
    config->rel_bucket = tfm_graph_buffer(graph, "rel_bucket", TFM_DTYPE_I32, 1, distances);
    *dbias = tfm_graph_state(graph, "dbias", TFM_DTYPE_F32, 2, shape);
    ck_assert_int_eq(tfm_weights_set(weights, "rel_bucket", TFM_DTYPE_I32, 1, distances, buckets,
                                     sizeof buckets, NULL),
                     TFM_STATUS_OK);
}

static struct tfm_tensor *input(const char *name, int64_t heads, int64_t dim)
{
    return tfm_graph_input(graph, name, TFM_DTYPE_F32, dim ? 3 : 2,
                           (const int64_t[]){0, heads, dim});
}

static void fill(float *to, size_t n, float factor, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = factor * parts_value(i, seed);
}

static void build(const struct kind *kind)
{
    const struct tfm_capacity capacity = {ROWS, 1, 1};
    struct tfm_attention config = {
        .bidirectional = kind->bidirectional, .window = kind->window, .softcap = kind->softcap};
    struct tfm_tensor *dk = NULL, *dv = NULL, *dbias = NULL;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
    if (kind->biased)
        add_bias(&config, &dbias);
    tfm_graph_output(graph,
                     tfm_op_attention_grad(graph, input("q", HEADS, DIM), input("k", 1, DIM),
                                           input("v", 1, DIM), input("dy", HEADS, DIM),
                                           input("lse", HEADS, 0), &config, dbias, &dk, &dv),
                     "dq");
    tfm_graph_output(graph, dk, "dk");
    tfm_graph_output(graph, dv, "dv");
    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    fill(q, ROWS * QUERY, 1, 1);
    fill(dy, ROWS * QUERY, 1, 2);
    fill(k, ROWS * DIM, 1, 3);
    fill(v, ROWS * DIM, 1, 4);
    for (size_t i = 0; i < ROWS * HEADS; i++)
        lse[i] = i % 7 == 5 ? -INFINITY : 6 + parts_value(i, 5);
}

/* Runs all rows as one sequence. Returns the launches that it took. */
static uint64_t run(struct results *to, int biased)
{
    static const struct {
        const char *name;
        float *values;
        size_t bytes;
    } inputs[] = {{"q", q, sizeof q},
                  {"k", k, sizeof k},
                  {"v", v, sizeof v},
                  {"dy", dy, sizeof dy},
                  {"lse", lse, sizeof lse}};
    const int32_t zero = 0;
    const struct tfm_rows rows = {ROWS, 1, 0, &zero, &zero, &zero, NULL};
    const uint64_t before = atomic_load(&tfm__cl_kernel_launches);
    struct tfm_error err = {0};

    memset(to, 0xff, sizeof *to);
    fill(to->dbias, BIAS, 1, 6);
    if (biased)
        ck_assert_int_eq(tfm_exec_state_write(exec, "dbias", to->dbias, sizeof to->dbias, NULL),
                         TFM_STATUS_OK);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        ck_assert_int_eq(
            tfm_exec_bind(exec, inputs[i].name, inputs[i].values, inputs[i].bytes, NULL),
            TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "dq", to->dq, sizeof to->dq, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "dk", to->dk, sizeof to->dk, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "dv", to->dv, sizeof to->dv, NULL), TFM_STATUS_OK);
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
    if (biased)
        ck_assert_int_eq(tfm_exec_state_read(exec, "dbias", to->dbias, sizeof to->dbias, NULL),
                         TFM_STATUS_OK);
    return atomic_load(&tfm__cl_kernel_launches) - before;
}

/* Faults: a sum whose order depends on the launches, weights that are computed again and are others, a way that is
 * never taken. One sequence and kv head is one part's work at once, and that of two in two launches. */
START_TEST(both_ways_give_the_same_bits)
{
    const struct kind *kind = &kinds[_i];

    setenv("TFM_OPENCL_SHAPE", "wide", 1);
    parts_open(&devices);
    struct tfm__cl_device *device = parts_handle(&devices);
    device->parts = 2;
    build(kind);
    const uint64_t launches = run(&twice, kind->biased);
    device->parts = 1;
    ck_assert_uint_eq(run(&once, kind->biased), launches - 1);
    ck_assert_mem_eq(once.dq, twice.dq, sizeof once.dq);
    ck_assert_mem_eq(once.dk, twice.dk, sizeof once.dk);
    ck_assert_mem_eq(once.dv, twice.dv, sizeof once.dv);
    ck_assert_mem_eq(once.dbias, twice.dbias, sizeof once.dbias);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    test_devices_close(&devices);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("attention_grad");
    tcase_add_loop_test(tests_case(suite, "attention_grad"), both_ways_give_the_same_bits, 0,
                        sizeof kinds / sizeof *kinds);
    return tests_run(suite);
}
