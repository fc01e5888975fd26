/* SPDX-License-Identifier: MIT
 * Trainable parameters, gradients of a graph, and execs that share their variables, on `reference`. */
#include <string.h>

#include <tfm/grad.h>
#include <tfm/plan.h>

#include "tests/core/runner.h"

static const int64_t shape_w[] = {2, 3}, shape_x[] = {0, 3}, shape_y[] = {0, 2};

static void ok(enum tfm_status status, const struct tfm_error *err)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err->text);
}

/* y = x w^T, and if `backward` its gradients from dy; w is trained if `train`. */
static struct tfm_graph *net(int train, int backward, enum tfm_dtype dtype)
{
    struct tfm_graph *graph;
    struct tfm_error err = {0};

    ok(tfm_graph_create(&graph, &err), &err);
    struct tfm_tensor *x = tfm_graph_input(graph, "x", dtype, 2, shape_x);
    struct tfm_tensor *w = tfm_graph_parameter(graph, "w", dtype, 2, shape_w);
    if (train)
        tfm_graph_train(graph, w);
    struct tfm_tensor *y = tfm_graph_output(graph, tfm_op_linear(graph, x, w, NULL), "y");
    if (backward) {
        struct tfm_tensor *dy = tfm_graph_input(graph, "dy", dtype, 2, shape_y);
        ok(tfm_graph_backward(graph, 1, &y, &dy, &err), &err);
        ck_assert_str_eq(tfm_graph_gradient(graph, w)->name, "w.grad");
        ck_assert_ptr_null(tfm_graph_gradient(graph, x)); /* nobody asked */
    }
    return graph;
}

struct session {
    struct tfm_registry *registry;
    struct tfm_device *devices[1];
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
};

static void start(struct session *s)
{
    static const float w[] = {1, 2, 3, 4, 5, 6};
    struct tfm_error err = {0};
    size_t n = 0;

    *s = (struct session){0};
    ok(tfm_registry_create(NULL, 0, &s->registry, &err), &err);
    ok(tfm_devices_open(s->registry, "reference", 0, s->devices, 1, &n, &err), &err);
    ok(tfm_weights_create(&s->weights, &err), &err);
    ok(tfm_weights_set(s->weights, "w", TFM_DTYPE_F32, 2, shape_w, w, sizeof w, &err), &err);
}

static void compile(struct session *s, struct tfm_graph *graph)
{
    const struct tfm_capacity capacity = {2, 1, 0};
    struct tfm_error err = {0};

    ok(tfm_plan_compile(graph, s->weights, s->devices, 1, &capacity, &s->plan, &err), &err);
    tfm_graph_destroy(graph);
}

static void finish(struct session *s)
{
    tfm_exec_destroy(s->exec);
    tfm_plan_destroy(s->plan);
    tfm_weights_release(s->weights);
    tfm_device_release(s->devices[0]);
    tfm_registry_destroy(s->registry);
}

static void run(struct tfm_exec *exec, const float *x, const float *dy, float *y)
{
    static const int32_t zero[] = {0};
    const struct tfm_rows rows = {2, 1, 0, zero, zero, zero, NULL};
    struct tfm_error err = {0};

    ok(tfm_exec_bind(exec, "x", (void *)x, 6 * sizeof *x, &err), &err);
    ok(tfm_exec_bind(exec, "y", y, 4 * sizeof *y, &err), &err);
    if (dy)
        ok(tfm_exec_bind(exec, "dy", (void *)dy, 4 * sizeof *dy, &err), &err);
    ok(tfm_exec_run(exec, &rows, &err), &err);
}

/* Catches: values of a trainable parameter that do not come from the weights, a gradient that is overwritten
 * instead of added to, one that is wrong. */
START_TEST(gradients_add_up)
{
    static const float x[] = {1, 0, 2, 0, 1, 0}, dy[] = {1, 10, 100, 1000};
    static const float want[] = {1, 100, 2, 10, 1000, 20};
    float y[4], grad[6];
    struct tfm_error err = {0};
    struct session s;

    start(&s);
    compile(&s, net(1, 1, TFM_DTYPE_F32));
    ok(tfm_exec_create(s.plan, &s.exec, &err), &err);
    for (int times = 1; times <= 2; times++) {
        run(s.exec, x, dy, y);
        ck_assert(y[0] == 7 && y[1] == 16 && y[2] == 2 && y[3] == 5);
        ok(tfm_exec_state_read(s.exec, "w.grad", grad, sizeof grad, &err), &err);
        for (int i = 0; i < 6; i++)
            ck_assert(grad[i] == (float)times * want[i]);
    }
    finish(&s);
}
END_TEST

/* Catches: an exec that has a copy instead of the other's memory, and memory that goes with the exec that made
 * it while another uses it. */
START_TEST(shared_memory_outlives_its_maker)
{
    static const float x[] = {1, 0, 0, 0, 0, 1}, w[] = {7, 0, 0, 0, 0, 9};
    float y[4], back[6];
    struct tfm_error err = {0};
    struct tfm_exec *second = NULL;
    struct session s, t;

    start(&s);
    compile(&s, net(1, 1, TFM_DTYPE_F32));
    ok(tfm_exec_create(s.plan, &s.exec, &err), &err);
    t = s;
    compile(&t, net(1, 0, TFM_DTYPE_F32));
    ok(tfm_exec_create_sharing(t.plan, s.exec, &second, &err), &err);
    ok(tfm_exec_state_write(s.exec, "w", w, sizeof w, &err), &err);
    run(second, x, NULL, y);
    ck_assert(y[0] == 7 && y[1] == 0 && y[2] == 0 && y[3] == 9);
    ck_assert_int_eq(tfm_exec_state_read(second, "w.grad", back, sizeof back, &err),
                     TFM_STATUS_NOT_FOUND);
    finish(&s);
    ok(tfm_exec_state_read(second, "w", back, sizeof back, &err), &err);
    ck_assert(memcmp(back, w, sizeof w) == 0);
    tfm_exec_destroy(second);
    tfm_plan_destroy(t.plan);
}
END_TEST

/* Catches: values that an exec or a plan of its own goes on reading after they were given up. */
START_TEST(values_that_are_given_up)
{
    static const float x[] = {1, 0, 0, 0, 0, 1};
    float y[4];
    struct tfm_error err = {0};
    struct tfm_exec *second = NULL, *third = NULL;
    struct tfm_weight weight;
    enum tfm_dtype dtype;
    struct session s, t, frozen;

    start(&s);
    compile(&s, net(1, 1, TFM_DTYPE_F32));
    ok(tfm_exec_create(s.plan, &s.exec, &err), &err);
    ck_assert_int_eq(tfm_weights_forget(s.weights, "v", &err), TFM_STATUS_NOT_FOUND);
    ok(tfm_weights_forget(s.weights, "w", &err), &err);
    ok(tfm_weights_forget(s.weights, "w", &err), &err); /* once more changes nothing */
    ck_assert_int_eq(tfm_weights_get(s.weights, "w", &dtype, &weight, &err), TFM_STATUS_NOT_FOUND);
    t = frozen = s;
    compile(&t, net(1, 0, TFM_DTYPE_F32)); /* shape and dtype are still known */
    ok(tfm_exec_create_sharing(t.plan, s.exec, &second, &err), &err);
    run(second, x, NULL, y);
    ck_assert(y[0] == 1 && y[1] == 4 && y[2] == 3 && y[3] == 6);
    ck_assert_int_eq(tfm_exec_create(t.plan, &third, &err), TFM_STATUS_NOT_FOUND);
    ck_assert_msg(strstr(err.text, "\"w\"") && strstr(err.text, "given up"), "%s", err.text);
    struct tfm_graph *graph = net(0, 0, TFM_DTYPE_F32);
    const struct tfm_capacity capacity = {2, 1, 0};
    ck_assert_int_eq(
        tfm_plan_compile(graph, frozen.weights, frozen.devices, 1, &capacity, &frozen.plan, &err),
        TFM_STATUS_NOT_FOUND);
    ck_assert_msg(strstr(err.text, "given up") != NULL, "%s", err.text);
    tfm_graph_destroy(graph);
    tfm_exec_destroy(second);
    tfm_plan_destroy(t.plan);
    finish(&s);
}
END_TEST

/* Catches: a plan that goes on with the values of the weights while another exec trains them. */
START_TEST(a_frozen_use_of_what_is_trained_is_refused)
{
    struct tfm_error err = {0};
    struct tfm_exec *second = NULL;
    struct session s, t;

    start(&s);
    compile(&s, net(1, 1, TFM_DTYPE_F32));
    ok(tfm_exec_create(s.plan, &s.exec, &err), &err);
    t = s;
    compile(&t, net(0, 0, TFM_DTYPE_F32));
    ck_assert_int_eq(tfm_exec_create_sharing(t.plan, s.exec, &second, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert(strstr(err.text, "\"w\"") && strstr(err.text, "frozen"));
    ck_assert_ptr_null(second);
    tfm_plan_destroy(t.plan);
    finish(&s);
}
END_TEST

/* Catches: variables of one name and another form that share memory. */
START_TEST(another_shape_is_refused)
{
    static const int64_t other[] = {3, 2};
    struct tfm_error err = {0};
    struct tfm_exec *second = NULL;
    struct tfm_graph *graph;
    struct session s, t;

    start(&s);
    compile(&s, net(1, 1, TFM_DTYPE_F32));
    ok(tfm_exec_create(s.plan, &s.exec, &err), &err);
    t = s;
    ok(tfm_graph_create(&graph, &err), &err);
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, 2});
    struct tfm_tensor *dy = tfm_graph_input(graph, "dy", TFM_DTYPE_F32, 2, (int64_t[]){0, 3});
    struct tfm_tensor *dw = tfm_graph_state(graph, "w.grad", TFM_DTYPE_F32, 2, other);
    ck_assert_ptr_eq(tfm_op_linear_grad_w(graph, x, dy, dw, NULL), dw);
    compile(&t, graph);
    ck_assert_int_eq(tfm_exec_create_sharing(t.plan, s.exec, &second, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert(strstr(err.text, "w.grad") && strstr(err.text, "[3, 2]") &&
              strstr(err.text, "[2, 3]"));
    tfm_plan_destroy(t.plan);
    finish(&s);
}
END_TEST

/* Catches: a gradient that does not fit, a parameter that cannot be trained, or an op without gradient that is
 * passed over; an error without layer and op. */
START_TEST(refusals)
{
    static const int64_t ids[] = {0};
    struct tfm_error err = {0};
    struct tfm_graph *graph = net(1, 0, TFM_DTYPE_F32);
    struct tfm_tensor *y = (struct tfm_tensor *)tfm_graph_find(graph, "y"), *seed;

    switch (_i) {
    case 0:
        seed = tfm_graph_input(graph, "dy", TFM_DTYPE_F32, 2, shape_x);
        ck_assert_int_eq(tfm_graph_backward(graph, 1, &y, &seed, &err), TFM_STATUS_SHAPE);
        ck_assert(strstr(err.text, "[N, 3]") && strstr(err.text, "[N, 2]"));
        break;
    case 1:
        tfm_graph_train(graph,
                        tfm_graph_parameter(graph, "q", TFM_DTYPE_Q8_0, 2, (int64_t[]){2, 32}));
        ck_assert_int_eq(tfm_graph_check(graph, &err), TFM_STATUS_INVALID_ARGUMENT);
        ck_assert(strstr(err.text, "\"q\"") && strstr(err.text, "q8_0"));
        break;
    case 2:
        tfm_graph_watch(graph, tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, ids));
        ck_assert_int_eq(tfm_graph_check(graph, &err), TFM_STATUS_INVALID_ARGUMENT);
        ck_assert(strstr(err.text, "\"ids\"") && strstr(err.text, "i32"));
        break;
    default:
        tfm_graph_scope_push(graph, "mixer", "blk.7");
        y = tfm_op_linear_grad_x(graph, tfm_graph_parameter(graph, "v", TFM_DTYPE_F32, 2, shape_w),
                                 y);
        tfm_graph_scope_pop(graph);
        seed = tfm_graph_input(graph, "dz", TFM_DTYPE_F32, 2, shape_x);
        ck_assert_int_eq(tfm_graph_backward(graph, 1, &y, &seed, &err), TFM_STATUS_UNSUPPORTED);
        ck_assert(strstr(err.text, "blk.7: linear_grad_x has no gradient"));
    }
    tfm_graph_destroy(graph);
}
END_TEST

/* Catches: gradients that point to tensors which a rewind has taken back. */
START_TEST(a_rewind_takes_gradients_back)
{
    struct tfm_error err = {0};
    struct tfm_graph *graph = net(1, 0, TFM_DTYPE_F32);
    struct tfm_tensor *y = (struct tfm_tensor *)tfm_graph_find(graph, "y");
    struct tfm_tensor *dy = tfm_graph_input(graph, "dy", TFM_DTYPE_F32, 2, shape_y);
    const struct tfm_tensor *x = tfm_graph_find(graph, "x");
    const uint32_t nodes = tfm_graph_node_count(graph);
    struct tfm_graph_mark mark;

    tfm_graph_watch(graph, (struct tfm_tensor *)x);
    tfm_graph_mark(graph, &mark);
    for (int times = 0; times < 2; times++) {
        ok(tfm_graph_backward(graph, 1, &y, &dy, &err), &err);
        ck_assert_ptr_nonnull(tfm_graph_gradient(graph, x));
        ck_assert_uint_eq(tfm_graph_node_count(graph), nodes + 2);
        ok(tfm_graph_rewind(graph, &mark, &err), &err);
        ck_assert_ptr_null(tfm_graph_gradient(graph, x));
        ck_assert_ptr_null(tfm_graph_gradient(graph, tfm_graph_find(graph, "w")));
    }
    tfm_graph_destroy(graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train");
    TCase *tcase = tests_case(suite, "variables");

    tcase_add_test(tcase, gradients_add_up);
    tcase_add_test(tcase, shared_memory_outlives_its_maker);
    tcase_add_test(tcase, values_that_are_given_up);
    tcase_add_test(tcase, a_frozen_use_of_what_is_trained_is_refused);
    tcase_add_test(tcase, another_shape_is_refused);
    tcase_add_loop_test(tcase, refusals, 0, 4);
    tcase_add_test(tcase, a_rewind_takes_gradients_back);
    return tests_run(suite);
}
