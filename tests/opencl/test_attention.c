/* SPDX-License-Identifier: MIT
 * gqa_attention has two ways through a long context; a row must get the same bits from both, whoever
 * shares its run. What it computes is checked by the cases of tests/ops. */
#include "tests/opencl/parts.h"

enum { HEADS = 6, GROUPS = 2, DIM = 40, CELLS = 900, ROWS = 64 };
enum { QUERY = HEADS * DIM, KEY = GROUPS * DIM };

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;
static struct tfm_plan *plan;
static struct tfm_exec *exec;
static float q[ROWS * QUERY], k[ROWS * KEY], v[ROWS * KEY], y[ROWS * QUERY];

static void build(enum tfm_dtype cache)
{
    const int64_t query[] = {0, HEADS, DIM}, key[] = {0, GROUPS, DIM};
    const int64_t state[] = {1, CELLS, GROUPS, DIM};
    const struct tfm_capacity capacity = {ROWS, 1, 1};
    struct tfm_error err = {0};

    parts_open(&devices);
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
    tfm_graph_output(graph,
                     tfm_op_gqa_attention(graph,
                                          tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, query),
                                          tfm_graph_input(graph, "k", TFM_DTYPE_F32, 3, key),
                                          tfm_graph_input(graph, "v", TFM_DTYPE_F32, 3, key),
                                          tfm_graph_state(graph, "k_cache", cache, 4, state),
                                          tfm_graph_state(graph, "v_cache", cache, 4, state), 0),
                     "y");
    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_exec_bind(exec, "q", q, sizeof q, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "k", k, sizeof k, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "v", v, sizeof v, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "y", y, sizeof y, NULL), TFM_STATUS_OK);
}

static void unbuild(void)
{
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    test_devices_close(&devices);
}

/* Rows past..past+n-1 of a made-up sequence. */
static void run(int32_t past, uint32_t n)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {n, 1, 0, &zero, &zero, &past, NULL};
    struct tfm_error err = {0};

    const size_t query = (size_t)past * QUERY, key = (size_t)past * KEY;
    for (size_t i = 0; i < n * (size_t)QUERY; i++)
        q[i] = 3 * parts_value(query + i, 1);
    for (size_t i = 0; i < n * (size_t)KEY; i++) {
        k[i] = parts_value(key + i, 2) + (float)((key + i) % 7) * 0.01f;
        v[i] = parts_value(key + i, 3) + (float)((key + i) % 5) * 0.01f;
    }
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* Fault: the order of a row's sums depends on the way that was taken or on the number of rows. Cells on
 * both sides of the borders of splits. */
START_TEST(a_row_gets_the_same_bits_alone_and_in_company)
{
    static const int32_t last[] = {255, 256, 257, 511, 512, 513, 640, 767, 768, 899};
    static float alone[QUERY];

    build(_i ? TFM_DTYPE_F16 : TFM_DTYPE_F32);
    for (int32_t past = 0; past < CELLS; past += ROWS)
        run(past, past + ROWS <= CELLS ? ROWS : (uint32_t)(CELLS - past));
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        run(last[i], 1);
        memcpy(alone, y, sizeof alone);
        for (uint32_t n = 2; n <= ROWS; n = n < 9 ? n + 1 : n * 2 - 1) {
            run(last[i] + 1 - (int32_t)n, n);
            ck_assert_msg(memcmp(y + (n - 1) * (size_t)QUERY, alone, sizeof alone) == 0,
                          "cell %d: other bits as the last of %u rows", last[i], n);
        }
    }
    unbuild();
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("attention");
    tcase_add_loop_test(tests_case(suite, "attention"),
                        a_row_gets_the_same_bits_alone_and_in_company, 0, 2);
    return tests_run(suite);
}
