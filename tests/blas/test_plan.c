/* SPDX-License-Identifier: MIT
 * The blas backend in a plan: exactly the linear nodes with float weights go to it, and what comes out is
 * what the reference computes. */
#include <math.h>
#include <stdlib.h>

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/skip.h"

enum { ROWS = 33, WIDTH = 96, VOCAB = 40 };

static struct tfm_registry *registry;
static struct tfm_weights *weights;
static struct tfm_graph *graph;
static struct tfm_error err;
static int32_t ids[ROWS];

static void ok(enum tfm_status status)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

static double value(size_t i)
{
    uint32_t x = (uint32_t)(i + 1) * 2654435761u;
    x = (x ^ (x >> 15)) * 2246822519u;
    return (double)(x ^ (x >> 13)) / 2147483648.0 - 1;
}

/* A parameter with values of its own. */
static struct tfm_tensor *parameter(const char *name, enum tfm_dtype dtype, int rank, int64_t d0,
                                    int64_t d1)
{
    const int64_t shape[] = {d0, d1};
    const size_t n = (size_t)(rank == 1 ? d0 : d0 * d1);
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    double *values = malloc(n * sizeof *values);
    void *data = malloc(n / info->block * info->bytes);

    ck_assert(values && data);
    for (size_t i = 0; i < n; i++)
        values[i] = value(i + (size_t)name[0] * 7919 + (size_t)dtype * 104729);
    tfm_dtype_from_f64(dtype, values, data, 0, n);
    ok(tfm_weights_set(weights, name, dtype, rank, shape, data, n / info->block * info->bytes,
                       &err));
    free(values);
    free(data);
    return tfm_graph_parameter(graph, name, dtype, rank, shape);
}

static void setup(void)
{
    ok(tfm_registry_create(NULL, 0, &registry, &err));
    ok(tfm_weights_create(&weights, &err));
    ok(tfm_graph_create(&graph, &err));
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * 7 % VOCAB;
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    tfm_registry_destroy(registry);
}

/* Linear layers of every weight dtype, with and without bias, among other ops; the last one sees the
 * rows that take_rows keeps. */
static void build_f32(void)
{
    static const struct {
        const char *name;
        enum tfm_dtype dtype;
        int64_t out;
        int biased;
    } layers[] = {{"a", TFM_DTYPE_F32, 31, 0}, {"b", TFM_DTYPE_F16, 65, 1},
                  {"c", TFM_DTYPE_Q8_0, 7, 0}, {"d", TFM_DTYPE_BF16, 129, 0},
                  {"e", TFM_DTYPE_F32, 96, 1}, {"f", TFM_DTYPE_Q4_1, 33, 1},
                  {"g", TFM_DTYPE_Q4_0, 96, 0}};
    struct tfm_tensor *id = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *x =
        tfm_op_embedding(graph, parameter("table", TFM_DTYPE_F32, 2, VOCAB, WIDTH), id);

    x = tfm_op_rms_norm(graph, x, parameter("norm", TFM_DTYPE_F32, 1, WIDTH, 0), 1e-5);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char bias[8], output[8];
        snprintf(bias, sizeof bias, "%sb", layers[i].name);
        snprintf(output, sizeof output, "y%s", layers[i].name);
        struct tfm_tensor *y = tfm_op_linear(
            graph, x, parameter(layers[i].name, layers[i].dtype, 2, layers[i].out, WIDTH),
            layers[i].biased ? parameter(bias, TFM_DTYPE_F32, 1, layers[i].out, 0) : NULL);
        if (layers[i].out == WIDTH)
            x = tfm_op_add(graph, x, y);
        else
            tfm_graph_output(graph, y, output);
    }
    x = tfm_op_take_rows(graph, x);
    tfm_graph_output(
        graph, tfm_op_linear(graph, x, parameter("h", TFM_DTYPE_F32, 2, VOCAB, WIDTH), NULL), "yh");
    ok(tfm_graph_check(graph, &err));
}

static void build_f64(void)
{
    struct tfm_tensor *id = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *x =
        tfm_op_embedding(graph, parameter("table", TFM_DTYPE_F64, 2, VOCAB, WIDTH), id);

    tfm_graph_output(graph,
                     tfm_op_linear(graph, x, parameter("w", TFM_DTYPE_F64, 2, 31, WIDTH),
                                   parameter("b", TFM_DTYPE_F64, 1, 31, 0)),
                     "y");
    ok(tfm_graph_check(graph, &err));
}

struct session {
    struct tfm_device *devices[2];
    size_t n;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    void *outputs[8];
    const struct tfm_tensor *tensors[8];
    size_t n_outputs;
};

static void open_session(struct session *s, const char *spec)
{
    const struct tfm_capacity capacity = {ROWS, 1, 5};

    memset(s, 0, sizeof *s);
    ok(tfm_devices_open(registry, spec, 0, s->devices, 2, &s->n, &err));
    ok(tfm_plan_compile(graph, weights, s->devices, s->n, &capacity, &s->plan, &err));
    ok(tfm_exec_create(s->plan, &s->exec, &err));
    ok(tfm_exec_bind(s->exec, "ids", ids, sizeof ids, &err));
    for (uint32_t i = 0; i < tfm_graph_tensor_count(graph); i++) {
        const struct tfm_tensor *t = tfm_graph_tensor(graph, i);
        if (t->kind != TFM_TENSOR_OUTPUT)
            continue;
        const size_t bytes =
            (size_t)(ROWS * tfm_tensor_row_elements(t)) * tfm_dtype_info(t->dtype)->bytes;
        ck_assert_uint_lt(s->n_outputs, 8);
        s->tensors[s->n_outputs] = t;
        s->outputs[s->n_outputs] = malloc(bytes);
        ck_assert_ptr_nonnull(s->outputs[s->n_outputs]);
        memset(s->outputs[s->n_outputs], 0xff, bytes); /* NaN */
        ok(tfm_exec_bind(s->exec, t->name, s->outputs[s->n_outputs++], bytes, &err));
    }
}

static void close_session(struct session *s)
{
    for (size_t i = 0; i < s->n_outputs; i++)
        free(s->outputs[i]);
    tfm_exec_destroy(s->exec);
    tfm_plan_destroy(s->plan);
    for (size_t i = 0; i < s->n; i++)
        tfm_device_release(s->devices[i]);
}

static int wants_blas(const struct tfm_node *node)
{
    return node->op == TFM_OP_LINEAR &&
           tfm_dtype_info(node->inputs[1]->dtype)->dtype_class == TFM_DTYPE_FLOAT;
}

/* Every node where it belongs, with a reason where blas refused it; returns how many blas has. */
static uint32_t check_places(const struct session *s)
{
    struct tfm_plan_summary summary;
    uint32_t taken = 0;

    tfm_plan_summarize(s->plan, &summary);
    for (uint32_t i = 0; i < summary.nodes; i++) {
        struct tfm_plan_node node;
        ok(tfm_plan_describe(s->plan, i, &node));
        ck_assert_str_eq(node.backend, wants_blas(node.node) ? "blas" : "reference");
        ck_assert_int_eq(node.fallback, !wants_blas(node.node));
        ck_assert_msg(strstr(node.refusal, wants_blas(node.node) ? ""
                                           : node.node->op == TFM_OP_LINEAR
                                               ? "blas: linear: only float weights"
                                               : "blas: only linear") != NULL,
                      "%s", node.refusal);
        taken += wants_blas(node.node) != 0;
    }
    ck_assert_uint_eq(summary.fallbacks, summary.nodes - taken);
    return taken;
}

static void compare(const struct session *a, const struct session *b, const struct tfm_rows *rows)
{
    for (size_t o = 0; o < a->n_outputs; o++) {
        const struct tfm_tensor *t = a->tensors[o];
        const size_t n = (size_t)(tfm_tensor_rows(t, rows) * tfm_tensor_row_elements(t));
        double error = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            double x, y;
            tfm_dtype_to_f64(t->dtype, a->outputs[o], i, 1, &x);
            tfm_dtype_to_f64(t->dtype, b->outputs[o], i, 1, &y);
            error += (x - y) * (x - y);
            size += y * y;
        }
        ck_assert(size > 0 || n == 0);
        /* not >: a NaN fails */
        if (n > 0 && !(error <= 1e-9 * size))
            ck_abort_msg("'%s', %u rows: nmse %g", t->name, rows->n, error / size);
    }
}

/* Catches: a node taken that blas cannot run, a linear that falls back, values that differ: a transposed
 * weight, a bias left out or added twice, old NaN of the output times beta 0 (A01), a tail of rows. */
START_TEST(linear_nodes_go_to_blas)
{
    static const uint32_t counts[] = {33, 1, 2, 7, 31, 0, 32};
    static const int32_t zero[] = {0};
    struct session blas, reference;

    if (_i)
        build_f64();
    else
        build_f32();
    open_session(&blas, "blas");
    open_session(&reference, "reference");
    ck_assert_uint_eq(check_places(&blas), _i ? 1 : 5);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int32_t out[] = {0, (int32_t)(counts[c] / 2), (int32_t)counts[c] - 1};
        const struct tfm_rows rows = {counts[c], counts[c] > 0, counts[c] ? 3 : 0, zero, zero, zero,
                                      out};
        ok(tfm_exec_run(blas.exec, &rows, &err));
        ok(tfm_exec_run(reference.exec, &rows, &err));
        compare(&blas, &reference, &rows);
    }
    close_session(&blas);
    close_session(&reference);
}
END_TEST

/* Catches: a score that puts it before an OpenCL device, or behind the reference. */
START_TEST(its_score_lies_between)
{
    const struct tfm_backend_row *row = NULL;

    for (size_t i = 0; i < tfm_registry_count(registry) && (!row || strcmp(row->name, "blas")); i++)
        row = tfm_registry_row(registry, i);
    ck_assert_str_eq(row->name, "blas");
    ck_assert_msg(row->status == TFM_STATUS_OK, "%s", row->reason);
    ck_assert_int_gt(row->probe->score, 0);
    ck_assert_int_lt(row->probe->score, 50);
}
END_TEST

int main(void)
{
    test_backend = "blas";
    if (!tests_ask(test_devices_present))
        return tests_skip("the blas backend cannot be used here");

    Suite *suite = suite_create("blas plan");
    TCase *tcase = tests_case(suite, "plan");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, linear_nodes_go_to_blas, 0, 2);
    tcase_add_test(tcase, its_score_lies_between);
    return tests_run(suite);
}
