/* SPDX-License-Identifier: MIT
 * Gradients against central differences. Rows 0..2 are one sequence, 3 and 4 another; take_rows names row 4,
 * then row 1 twice, so that a row is taken never, once and twice. */
#include "tests/train/difference.h"

#include <math.h>
#include <stdio.h>

#include <tfm/grad.h>

enum { MOST = 10000 };

struct tfm_tensor *difference_input(struct net *net, const char *name, int64_t d1, int64_t d2)
{
    return tfm_graph_watch(net->graph, net_input(net, name, TFM_DTYPE_F64, d1, d2));
}

struct tfm_tensor *difference_ids(struct net *net, const char *name)
{
    return net_input(net, name, TFM_DTYPE_I32, 0, 0);
}

struct tfm_tensor *difference_parameter(struct net *net, const char *name, int64_t d0, int64_t d1)
{
    struct tfm_tensor *parameter =
        tfm_graph_parameter(net->graph, name, TFM_DTYPE_F64, d1 ? 2 : 1, (int64_t[]){d0, d1});
    double values[MOST];

    ck_assert_ptr_nonnull(parameter);
    ck_assert_uint_le(net_elements(parameter), MOST);
    net_fill(values, net_elements(parameter), parameter->id);
    net_set(net, name, values);
    return tfm_graph_train(net->graph, parameter);
}

static enum tfm_status train(void *context, const struct tfm_tensor *tensor)
{
    struct net *net = context;
    const size_t n = net_elements(tensor);
    double values[MOST];

    tfm_graph_train(net->graph, (struct tfm_tensor *)tensor);
    if (tensor->rank != 1 && !strstr(tensor->name, "rel_bias"))
        return TFM_STATUS_OK;
    ck_assert_uint_le(n, MOST);
    net_fill(values, n, tensor->id);
    for (size_t i = 0; i < n; i++)
        values[i] = 0.5 * values[i] + (strstr(tensor->name, "norm.weight") ? 1 : 0);
    net_set(net, tensor->name, values);
    return TFM_STATUS_OK;
}

void difference_train_all(struct net *net)
{
    tfm_graph_parameters(net->graph, train, net);
}

/* What the gradient of an input is called as an output. */
static void gradient_name(const char *name, char *text, size_t size)
{
    snprintf(text, size, "d(%s)", name);
}

enum tfm_status difference_backward(struct net *net, struct tfm_tensor *y, struct tfm_error *err)
{
    struct tfm_graph *graph = net->graph;
    const uint32_t tensors = tfm_graph_tensor_count(graph);
    int64_t shape[TFM_MAX_RANK];
    char name[64];

    ck_assert_msg(y != NULL, "%s", tfm_graph_check(graph, err) == TFM_STATUS_OK ? "" : err->text);
    memcpy(shape, y->shape, sizeof shape);
    struct tfm_tensor *seed = tfm_graph_input(graph, "seed", TFM_DTYPE_F64, y->rank, shape);
    if (y->extent == TFM_EXTENT_OUT_ROWS)
        seed = tfm_op_take_rows(graph, seed);
    if (y->kind != TFM_TENSOR_OUTPUT)
        tfm_graph_output(graph, y, "y");
    const enum tfm_status status = tfm_graph_backward(graph, 1, &y, &seed, err);
    for (uint32_t t = 0; t < tensors && status == TFM_STATUS_OK; t++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(graph, t);
        struct tfm_tensor *gradient = tfm_graph_gradient(graph, tensor);
        if (tensor->kind != TFM_TENSOR_INPUT || tensor->view_of || !gradient ||
            strcmp(tensor->name, "seed") == 0)
            continue;
        gradient_name(tensor->name, name, sizeof name);
        /* the gradient may be the seed itself: an output is the result of an op */
        tfm_graph_output(graph, tfm_op_scale(graph, gradient, 1), name);
    }
    return status == TFM_STATUS_OK ? tfm_graph_check(graph, err) : status;
}

/* ---- runs ---- */

static const int32_t out[] = {4, 1, 1};

static double loss(struct net *net)
{
    static const int32_t slot[] = {0, 1}, start[] = {0, 3}, past[] = {0, 0};
    const struct tfm_rows rows = {DIFFERENCE_ROWS, 2, DIFFERENCE_OUT, slot, start, past, out};
    const struct tfm_tensor *y = tfm_graph_find(net->graph, "y");
    const char *name = y ? "y" : "logits";
    double values[MOST], seed[MOST], sum = 0;

    y = y ? y : tfm_graph_find(net->graph, name);
    const size_t width = (size_t)tfm_tensor_row_elements(y);
    const int dropped = y->extent == TFM_EXTENT_OUT_ROWS;
    const size_t n = dropped ? DIFFERENCE_OUT : DIFFERENCE_ROWS;
    net_run(net, &rows);
    net_get(net, name, 0, n * width, values);
    net_fill(seed, DIFFERENCE_ROWS * width, 99);
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < width; i++)
            sum += values[r * width + i] * seed[(dropped ? (size_t)out[r] : r) * width + i];
    }
    return sum;
}

static void fill_inputs(struct net *net)
{
    for (size_t b = 0; b < net->n_bound; b++) {
        const struct tfm_tensor *tensor = net->bound[b].tensor;
        const size_t n = net->bound[b].elements;
        double values[MOST];
        if (tensor->kind != TFM_TENSOR_INPUT)
            continue;
        ck_assert_uint_le(n, MOST);
        if (tensor->dtype == TFM_DTYPE_I32) {
            for (size_t i = 0; i < n; i++) {
                int32_t id = (int32_t)((int64_t)(i * 3 % 4) % tensor->limit);
                if (tensor->may_be_none && i % 4 == 1)
                    id = -1;
                net_put_i32(net, tensor->name, i, 1, &id);
            }
            continue;
        }
        net_fill(values, n, strcmp(tensor->name, "seed") == 0 ? 99 : 7 + tensor->id);
        net_put(net, tensor->name, 0, n, values);
    }
}

/* ---- comparing ---- */

static double slope(double above, double below)
{
    return (above - below) / 2e-6;
}

static void compare(double got, double want, const char *what, const char *name, size_t i)
{
    if (!(fabs(got - want) <= 1e-5 + 1e-3 * fabs(want)))
        ck_abort_msg("%s: the gradient of element %zu of %s is %.9g, differences give %.9g", what,
                     i, name, got, want);
}

static void check_parameter(struct net *net, const struct tfm_tensor *parameter, const char *what)
{
    const size_t n = net_elements(parameter), bytes = n * sizeof(double);
    double values[MOST], gradient[MOST], zero[MOST] = {0};
    struct tfm_error err = {0};
    char name[256];

    ck_assert_uint_le(n, MOST);
    snprintf(name, sizeof name, "%s.grad", parameter->name);
    /* runs add to it */
    ck_assert_msg(tfm_exec_state_write(net->exec, name, zero, bytes, &err) == TFM_STATUS_OK,
                  "%s: %s", what, err.text);
    (void)loss(net);
    ck_assert(tfm_exec_state_read(net->exec, name, gradient, bytes, &err) == TFM_STATUS_OK);
    ck_assert(tfm_exec_state_read(net->exec, parameter->name, values, bytes, &err) ==
              TFM_STATUS_OK);
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = values[i];
        double around[2];
        for (int side = 0; side < 2; side++) {
            values[i] = value + (side ? -1e-6 : 1e-6);
            ck_assert(tfm_exec_state_write(net->exec, parameter->name, values, bytes, &err) ==
                      TFM_STATUS_OK);
            around[side] = loss(net);
        }
        values[i] = value;
        compare(gradient[i], slope(around[0], around[1]), what, parameter->name, i);
        largest = fmax(largest, fabs(gradient[i]));
    }
    ck_assert(tfm_exec_state_write(net->exec, parameter->name, values, bytes, &err) ==
              TFM_STATUS_OK);
    /* what a bias of k adds to the scores of a row is the same for all of them, but for a rotation */
    ck_assert_msg(largest > 0 || strstr(parameter->name, ".k.bias"), "%s: nothing depends on %s",
                  what, parameter->name);
}

static void check_input(struct net *net, const struct tfm_tensor *input, const char *what)
{
    const size_t n = (size_t)tfm_tensor_row_elements(input) * DIFFERENCE_ROWS;
    double values[MOST], gradient[MOST];
    char name[64];

    ck_assert_uint_le(n, MOST);
    gradient_name(input->name, name, sizeof name);
    if (!tfm_graph_find(net->graph, name))
        return;
    (void)loss(net);
    net_get(net, name, 0, n, gradient);
    net_fill(values, n, 7 + input->id);
    for (size_t i = 0; i < n; i++) {
        double around[2];
        for (int side = 0; side < 2; side++) {
            const double moved = values[i] + (side ? -1e-6 : 1e-6);
            net_put(net, input->name, i, 1, &moved);
            around[side] = loss(net);
        }
        net_put(net, input->name, i, 1, &values[i]);
        compare(gradient[i], slope(around[0], around[1]), what, input->name, i);
    }
}

void difference_check(struct net *net, const char *what)
{
    uint32_t compared = 0;

    net_compile(net, 1);
    fill_inputs(net);
    for (uint32_t t = 0; t < tfm_graph_tensor_count(net->graph); t++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(net->graph, t);
        if (tensor->view_of)
            continue;
        if (tensor->kind == TFM_TENSOR_PARAMETER && tensor->is_trainable) {
            check_parameter(net, tensor, what);
            compared++;
        } else if (tensor->kind == TFM_TENSOR_INPUT && tensor->dtype == TFM_DTYPE_F64 &&
                   tfm_graph_gradient(net->graph, tensor)) {
            check_input(net, tensor, what);
            compared++;
        }
    }
    ck_assert_msg(compared > 0, "%s: no gradient was compared", what);
}
