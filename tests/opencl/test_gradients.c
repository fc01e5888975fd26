/* SPDX-License-Identifier: MIT
 * Whole backward passes in F32 on the OpenCL backend (PoCL) in both shapes beside the reference: small stacks of every
 * kind.
 * Faults that one node alone does not show: memory of the arena that is given away too early, a gradient that goes to
 * the state of another parameter, sums that start anew in a second run, variables that are not shared, an op that one
 * shape refuses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tfm/grad.h>

#include "tests/nn/net.h"
#include "tests/train/stacks.h"

enum { ROWS = 37, VOCAB = 7, RUNS = 2, MOST = 4096 };

/* What a backend makes: logits, then all gradients, one after another. */
struct results {
    size_t n;
    double values[MOST];
};

static enum tfm_status train(void *context, const struct tfm_tensor *parameter)
{
    struct net *net = context;
    const size_t n = net_elements(parameter);
    double values[MOST];

    ck_assert_uint_le(n, MOST);
    tfm_graph_train(net->graph, (struct tfm_tensor *)parameter);
    net_fill(values, n, parameter->id);
    for (size_t i = 0; i < n; i++)
        values[i] = 0.5 * values[i] + (strstr(parameter->name, "norm.weight") ? 1 : 0);
    net_set(net, parameter->name, values);
    return TFM_STATUS_OK;
}

/* OK, or the status of what the graph or the plan refuses. */
static enum tfm_status build(struct net *net, const struct tfm_nn_decoder *config, int backward,
                             struct tfm_error *err)
{
    struct tfm_tensor *y = tfm_nn_decoder(net->graph, config);

    ck_assert_msg(tfm_graph_check(net->graph, err) == TFM_STATUS_OK, "%s", err->text);
    tfm_graph_parameters(net->graph, train, net);
    if (!backward)
        return TFM_STATUS_OK;
    struct tfm_tensor *seed = tfm_op_take_rows(
        net->graph, tfm_graph_input(net->graph, "seed", TFM_DTYPE_F32, 2, (int64_t[]){0, VOCAB}));
    return tfm_graph_backward(net->graph, 1, &y, &seed, err);
}

static void fill(struct net *net, int backward)
{
    int32_t ids[ROWS], pos[ROWS];
    double seed[ROWS * VOCAB];

    for (int32_t i = 0; i < ROWS; i++) {
        ids[i] = i * 5 % VOCAB;
        pos[i] = i % 8;
    }
    net_put_i32(net, "ids", 0, ROWS, ids);
    if (tfm_graph_find(net->graph, "pos"))
        net_put_i32(net, "pos", 0, ROWS, pos);
    net_fill(seed, ROWS * VOCAB, 5);
    if (backward)
        net_put(net, "seed", 0, ROWS * VOCAB, seed);
}

/* Sequences of 8 rows and a rest. */
static void run(struct net *net)
{
    static const int32_t slot[] = {0, 1, 2, 3, 4}, start[] = {0, 8, 16, 24, 32}, past[5];
    struct tfm_rows rows = net_rows(ROWS, 0);

    rows.n_seq = 5;
    rows.slot = slot;
    rows.start = start;
    rows.past = past;
    net_run(net, &rows);
}

static void take(struct results *r, const float *values, size_t n)
{
    ck_assert_uint_le(r->n + n, MOST);
    for (size_t i = 0; i < n; i++)
        r->values[r->n++] = (double)values[i];
}

static enum tfm_status collect(const char *backend, const struct tfm_nn_decoder *config,
                               struct results *r, struct tfm_error *err)
{
    struct net net;

    r->n = 0;
    net_backend_choose(backend);
    net_begin(&net, ROWS, 5);
    const enum tfm_status status = build(&net, config, 1, err);
    if (status == TFM_STATUS_OK) {
        net_compile(&net, 1);
        fill(&net, 1);
        for (int i = 0; i < RUNS; i++)
            run(&net);
        net_get(&net, "logits", 0, ROWS * VOCAB, r->values);
        r->n = ROWS * VOCAB;
        for (uint32_t t = 0; t < tfm_graph_tensor_count(net.graph); t++) {
            const struct tfm_tensor *state = tfm_graph_tensor(net.graph, t);
            float values[MOST];
            if (state->kind != TFM_TENSOR_STATE || state->view_of)
                continue;
            ck_assert_uint_le(net_elements(state), MOST);
            ck_assert_msg(tfm_exec_state_read(net.exec, state->name, values,
                                              net_elements(state) * sizeof *values,
                                              err) == TFM_STATUS_OK,
                          "%s", err->text);
            take(r, values, net_elements(state));
        }
    }
    net_end(&net);
    return status;
}

static const char *const shapes[] = {"wide", "group"};

START_TEST(stacks)
{
    const char *shape = shapes[_i / TRAINING_STACKS];
    static struct results want, got;
    struct tfm_nn_decoder config;
    struct tfm_error err = {0};
    double error = 0, size = 0;
    const char *name = training_stack(_i % TRAINING_STACKS, TFM_DTYPE_F32, &config);

    ck_assert_int_eq(setenv("TFM_OPENCL_SHAPE", shape, 1), 0);
    ck_assert_msg(collect("reference", &config, &want, &err) == TFM_STATUS_OK, "%s: %s", name,
                  err.text);
    ck_assert_msg(collect("opencl", &config, &got, &err) == TFM_STATUS_OK, "%s, %s: %s", name,
                  shape, err.text);
    ck_assert_uint_eq(got.n, want.n);
    for (size_t i = 0; i < want.n; i++) {
        error += (got.values[i] - want.values[i]) * (got.values[i] - want.values[i]);
        size += want.values[i] * want.values[i];
    }
    ck_assert_msg(error <= 1e-8 * size, "%s, %s: NMSE %.3g", name, shape, error / size);
}
END_TEST

/* Catches: a second exec on the device that has a copy of the parameters. */
START_TEST(sharing)
{
    struct tfm_nn_decoder config;
    struct tfm_error err = {0};
    struct net first, second;
    float table[VOCAB * 6], other[VOCAB * 6];

    (void)training_stack(5, TFM_DTYPE_F32, &config);
    config.layers = 0;
    net_begin(&first, ROWS, 5);
    ck_assert_msg(build(&first, &config, 1, &err) == TFM_STATUS_OK, "%s", err.text);
    net_compile(&first, 1);
    fill(&first, 1);
    second = first;
    second.exec = NULL;
    ck_assert(tfm_exec_create_sharing(first.plan, first.exec, &second.exec, &err) == TFM_STATUS_OK);
    run(&first);
    ck_assert(tfm_exec_state_read(second.exec, "token_embd.weight.grad", table, sizeof table,
                                  &err) == TFM_STATUS_OK);
    ck_assert(tfm_exec_state_read(first.exec, "token_embd.weight.grad", other, sizeof other,
                                  &err) == TFM_STATUS_OK);
    ck_assert(memcmp(table, other, sizeof table) == 0);
    double sum = 0;
    for (int i = 0; i < VOCAB * 6; i++)
        sum += fabs((double)table[i]);
    ck_assert(sum > 0);
    tfm_exec_destroy(second.exec);
    run(&first);
    net_end(&first);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("gradients");
    TCase *tcase = net_case(suite, "gradients");

    tcase_add_loop_test(tcase, stacks, 0, 2 * TRAINING_STACKS);
    tcase_add_test(tcase, sharing);
    return suite;
}

int main(void)
{
    return net_main("opencl", make);
}
