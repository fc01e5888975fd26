/* SPDX-License-Identifier: MIT
 * The pool of packed weights: how it is cut into buffers, what is packed how often, and what does not
 * fit. The limit of a buffer is lowered on an open device, so that small weights do. */
#include "tests/opencl/parts.h"

#include <math.h>

#include "lib/core/plan.h"

enum { IN = 64, OUT = 40, LAYERS = 5, ROWS = 3 };

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;

static void setup(void)
{
    parts_open(&devices);
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    test_devices_close(&devices);
}

static enum tfm_status compile(struct tfm_plan **plan, struct tfm_error *err)
{
    const struct tfm_capacity capacity = {ROWS, 1, 1};
    return tfm_plan_compile(graph, weights, devices.device, 1, &capacity, plan, err);
}

/* Declares "x" and LAYERS linears of it, outputs "y0".. */
static void build(void)
{
    const int64_t shape[] = {0, IN};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);

    for (unsigned i = 0; i < LAYERS; i++) {
        char w[16], y[16];
        snprintf(w, sizeof w, "w%u", i);
        snprintf(y, sizeof y, "y%u", i);
        tfm_graph_output(
            graph,
            tfm_op_linear(graph, x, parts_parameter(graph, weights, w, TFM_DTYPE_F32, OUT, IN, i),
                          NULL),
            y);
    }
}

/* Runs ROWS rows and compares every output with sums made here. */
static void check(struct tfm_plan *plan)
{
    float x[ROWS * IN], y[LAYERS][ROWS * OUT];
    struct tfm_exec *exec = NULL;
    struct tfm_error err = {0};

    for (size_t i = 0; i < ROWS * IN; i++)
        x[i] = parts_value(i, 9);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_exec_bind(exec, "x", x, sizeof x, NULL), TFM_STATUS_OK);
    for (unsigned i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%u", i);
        ck_assert_int_eq(tfm_exec_bind(exec, name, y[i], sizeof y[i], NULL), TFM_STATUS_OK);
    }
    const int32_t zero = 0;
    const struct tfm_rows rows = {ROWS, 1, 0, &zero, &zero, &zero, NULL};
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
    for (unsigned i = 0; i < LAYERS; i++) {
        for (size_t n = 0; n < ROWS; n++) {
            for (size_t o = 0; o < OUT; o++) {
                float sum = 0;
                for (size_t k = 0; k < IN; k++)
                    sum += x[n * IN + k] * parts_value(o * IN + k, i);
                ck_assert_float_eq_tol(y[i][n * OUT + o], sum, 1e-4);
            }
        }
    }
    tfm_exec_destroy(exec);
}

/* Panels of one weight: OUT rows padded to 48. */
static const size_t weight_bytes = 48 * IN * sizeof(float);

/* Buffers that the launches of the plan read weights from. */
static size_t count_buffers(const struct tfm_plan *plan)
{
    const struct tfm__cl_program *program = plan->segments[0].program.impl;
    cl_mem seen[LAYERS];
    size_t n = 0;

    for (uint32_t i = 0; i < program->n_launches; i++) {
        for (uint32_t k = 0; k < program->launches[i].n_operands; k++) {
            const struct tfm__cl_operand *o = &program->launches[i].operands[k];
            size_t s = 0;
            while (s < n && seen[s] != o->pool)
                s++;
            if (o->place == TFM__CL_POOL && s == n) {
                ck_assert_uint_lt(n, LAYERS);
                seen[n++] = o->pool;
            }
        }
    }
    return n;
}

/* Fault: the pool past the limit of one buffer: an offset counted on, a weight in the wrong buffer. */
START_TEST(a_full_buffer_is_followed_by_another)
{
    struct tfm_plan *plan = NULL;
    struct tfm_error err = {0};

    build();
    parts_handle(&devices)->max_alloc = 2 * weight_bytes + 128; /* two and two and one */
    ck_assert_msg(compile(&plan, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(count_buffers(plan), 3);
    check(plan);
    tfm_plan_destroy(plan);
}
END_TEST

/* Fault: a weight larger than any buffer ends in an OpenCL error without numbers. */
START_TEST(a_weight_larger_than_a_buffer_is_named_with_both_numbers)
{
    struct tfm_plan *plan = NULL;
    struct tfm_error err = {0};
    char numbers[2][32];

    build();
    snprintf(numbers[0], sizeof numbers[0], "%zu", weight_bytes);
    snprintf(numbers[1], sizeof numbers[1], "%zu", weight_bytes - 1);
    parts_handle(&devices)->max_alloc = weight_bytes - 1;
    ck_assert_int_eq(compile(&plan, &err), TFM_STATUS_NOMEM);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(err.text, "\"w0\"") && strstr(err.text, numbers[0]) &&
                      strstr(err.text, numbers[1]),
                  "%s", err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

static unsigned taken_calls;

static void taken(void *context, const void *data, size_t bytes)
{
    (void)context, (void)data, (void)bytes;
    taken_calls++;
}

/* Fault: a tied head is packed twice, a raw reader gets panels, a second plan packs again. */
START_TEST(each_form_of_a_weight_is_made_once)
{
    enum { VOCAB = 20 };
    const int64_t table_shape[] = {VOCAB, IN}, gamma_shape[] = {IN}, ids_shape[] = {0};
    float table[VOCAB * IN], gamma[IN], y[ROWS * VOCAB];
    int32_t ids[ROWS] = {19, 0, 7};
    struct tfm_plan *plan = NULL, *again = NULL;
    struct tfm_exec *exec = NULL;
    struct tfm_error err = {0};

    for (size_t i = 0; i < VOCAB * IN; i++)
        table[i] = parts_value(i, 1);
    for (size_t i = 0; i < IN; i++)
        gamma[i] = 2;
    taken_calls = 0;
    ck_assert_int_eq(tfm_weights_borrow(weights, "table", TFM_DTYPE_F32, 2, table_shape, table,
                                        sizeof table, taken, NULL, NULL),
                     TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_borrow(weights, "gamma", TFM_DTYPE_F32, 1, gamma_shape, gamma,
                                        sizeof gamma, taken, NULL, NULL),
                     TFM_STATUS_OK);
    struct tfm_tensor *t = tfm_graph_parameter(graph, "table", TFM_DTYPE_F32, 2, table_shape);
    struct tfm_tensor *x =
        tfm_op_embedding(graph, t, tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, ids_shape));
    x = tfm_op_rms_norm(graph, x,
                        tfm_graph_parameter(graph, "gamma", TFM_DTYPE_F32, 1, gamma_shape), 0);
    tfm_graph_output(graph, tfm_op_linear(graph, x, t, NULL), "y");
    ck_assert_msg(compile(&plan, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(taken_calls, 2);
    ck_assert_msg(compile(&again, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(taken_calls, 2);

    memset(table, 0xff, sizeof table); /* the pages of a mapped file are gone by now */
    memset(gamma, 0xff, sizeof gamma);
    ck_assert_msg(tfm_exec_create(again, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_exec_bind(exec, "ids", ids, sizeof ids, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "y", y, sizeof y, NULL), TFM_STATUS_OK);
    const int32_t zero = 0;
    const struct tfm_rows rows = {ROWS, 1, 0, &zero, &zero, &zero, NULL};
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
    for (size_t n = 0; n < ROWS; n++) {
        double squares = 0;
        for (size_t k = 0; k < IN; k++)
            squares += pow(parts_value((size_t)ids[n] * IN + k, 1), 2);
        for (size_t v = 0; v < VOCAB; v++) {
            double sum = 0;
            for (size_t k = 0; k < IN; k++)
                sum += 2 / sqrt(squares / IN) * parts_value((size_t)ids[n] * IN + k, 1) *
                       parts_value(v * IN + k, 1);
            ck_assert_double_eq_tol(y[n * VOCAB + v], sum, 1e-4);
        }
    }
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_plan_destroy(again);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("pool");
    TCase *tcase = tests_case(suite, "pool");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_full_buffer_is_followed_by_another);
    tcase_add_test(tcase, a_weight_larger_than_a_buffer_is_named_with_both_numbers);
    tcase_add_test(tcase, each_form_of_a_weight_is_made_once);
    return tests_run(suite);
}
