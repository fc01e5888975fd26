/* SPDX-License-Identifier: MIT
 * The gradient rule of every op, and of stacks of two blocks of every kind, against central differences. */
#include <tfm/grad.h>

#include "lib/core/op.h"
#include "tests/train/difference.h"
#include "tests/train/stacks.h"

/* ---- a graph for each op that has a gradient ---- */

static struct tfm_tensor *case_embedding(struct net *net)
{
    struct tfm_tensor *table = difference_parameter(net, "table", 3, 4);
    return tfm_op_embedding(net->graph, table, difference_ids(net, "ids"));
}

static struct tfm_tensor *case_positions(struct net *net)
{
    struct tfm_tensor *table = difference_parameter(net, "table", 4, 3);
    return tfm_op_position_embedding(net->graph, table, difference_ids(net, "pos"));
}

static struct tfm_tensor *case_linear(struct net *net)
{
    struct tfm_tensor *w = difference_parameter(net, "w", 3, 4);
    return tfm_op_linear(net->graph, difference_input(net, "x", 4, 0), w,
                         difference_parameter(net, "b", 3, 0));
}

/* The weight has two readers, and the input of the second is a view. */
static struct tfm_tensor *case_linear_twice(struct net *net)
{
    struct tfm_tensor *w = difference_parameter(net, "w", 4, 4);
    struct tfm_tensor *h = tfm_op_linear(net->graph, difference_input(net, "x", 2, 4), w, NULL);

    h = tfm_graph_reshape(net->graph, h, 3, (int64_t[]){0, 2, 4});
    return tfm_op_linear(net->graph, h, w, NULL);
}

static struct tfm_tensor *case_add(struct net *net)
{
    return tfm_op_add(net->graph, difference_input(net, "a", 3, 0),
                      difference_input(net, "b", 3, 0));
}

/* One tensor is both operands. */
static struct tfm_tensor *case_add_twice(struct net *net)
{
    struct tfm_tensor *a = difference_input(net, "a", 3, 0);
    return tfm_op_add(net->graph, tfm_op_add(net->graph, a, a), a);
}

static struct tfm_tensor *case_cast(struct net *net)
{
    return tfm_op_cast(net->graph, difference_input(net, "x", 3, 0), TFM_DTYPE_F64);
}

static struct tfm_tensor *case_take_rows(struct net *net)
{
    return tfm_op_take_rows(net->graph, difference_input(net, "x", 2, 3));
}

static struct tfm_tensor *case_rms_norm(struct net *net)
{
    struct tfm_tensor *gamma = difference_parameter(net, "gamma", 5, 0);
    return tfm_op_rms_norm(net->graph, difference_input(net, "x", 2, 5), gamma, 1e-3);
}

static struct tfm_tensor *rotate(struct net *net, enum tfm_rope_style style)
{
    struct tfm_tensor *table =
        tfm_graph_buffer(net->graph, "table", TFM_DTYPE_F64, 3, (int64_t[]){4, 2, 2});
    double cs[16];

    for (int i = 0; i < 8; i++) {
        cs[2 * i] = i % 2 ? 0.6 : -0.28;
        cs[2 * i + 1] = i % 2 ? 0.8 : 0.96;
    }
    net_set(net, "table", cs);
    return tfm_op_rope(net->graph, difference_input(net, "x", 2, 6), difference_ids(net, "pos"),
                       table, style);
}

static struct tfm_tensor *case_rope(struct net *net)
{
    return rotate(net, TFM_ROPE_ADJACENT);
}

static struct tfm_tensor *case_rope_halves(struct net *net)
{
    return rotate(net, TFM_ROPE_HALVES);
}

static struct tfm_tensor *attend(struct net *net, struct tfm_attention *config)
{
    struct tfm_tensor *q = difference_input(net, "q", 4, 3), *k = difference_input(net, "k", 2, 3);
    return tfm_op_attention(net->graph, q, k, difference_input(net, "v", 2, 3), config);
}

static struct tfm_tensor *case_attention(struct net *net)
{
    return attend(net, &(struct tfm_attention){0});
}

static struct tfm_tensor *case_attention_masks(struct net *net)
{
    return attend(net, &(struct tfm_attention){
                           .bidirectional = 1, .window = 2, .softcap = 1.5, .scale = 0.7});
}

static struct tfm_tensor *case_attention_bias(struct net *net)
{
    struct tfm_tensor *bias = difference_parameter(net, "rel_bias", 3, 4);
    struct tfm_tensor *bucket =
        tfm_graph_buffer(net->graph, "rel_bucket", TFM_DTYPE_I32, 1, (int64_t[]){5});
    const double buckets[] = {0, 1, 2, 1, 0};

    net_set(net, "rel_bucket", buckets);
    return attend(net, &(struct tfm_attention){.rel_bias = bias, .rel_bucket = bucket});
}

static struct tfm_tensor *case_swiglu(struct net *net)
{
    struct tfm_tensor *gate = difference_input(net, "gate", 3, 0);
    return tfm_op_swiglu(net->graph, gate, difference_input(net, "up", 3, 0));
}

static struct tfm_tensor *case_layer_norm(struct net *net)
{
    struct tfm_tensor *gamma = difference_parameter(net, "gamma", 5, 0);
    return tfm_op_layer_norm(net->graph, difference_input(net, "x", 2, 5), gamma,
                             difference_parameter(net, "beta", 5, 0), 1e-3);
}

static struct tfm_tensor *case_relu(struct net *net)
{
    return tfm_op_relu(net->graph, difference_input(net, "x", 7, 0));
}

static struct tfm_tensor *case_silu(struct net *net)
{
    return tfm_op_silu(net->graph, difference_input(net, "x", 7, 0));
}

static struct tfm_tensor *case_gelu(struct net *net)
{
    return tfm_op_gelu(net->graph, difference_input(net, "x", 7, 0), 0);
}

static struct tfm_tensor *case_gelu_tanh(struct net *net)
{
    return tfm_op_gelu(net->graph, difference_input(net, "x", 7, 0), 1);
}

static struct tfm_tensor *case_glu(struct net *net)
{
    struct tfm_tensor *gate = difference_input(net, "gate", 3, 0);
    return tfm_op_glu(net->graph, gate, difference_input(net, "up", 3, 0));
}

static struct tfm_tensor *case_mul(struct net *net)
{
    return tfm_op_mul(net->graph, difference_input(net, "a", 3, 0),
                      difference_input(net, "b", 3, 0));
}

static struct tfm_tensor *case_square(struct net *net)
{
    struct tfm_tensor *a = difference_input(net, "a", 3, 0);
    return tfm_op_mul(net->graph, a, a);
}

static struct tfm_tensor *case_scale(struct net *net)
{
    return tfm_op_scale(net->graph, difference_input(net, "x", 3, 0), -0.75);
}

static struct tfm_tensor *case_softcap(struct net *net)
{
    return tfm_op_softcap(net->graph, difference_input(net, "x", 3, 0), 0.8);
}

/* Row 1 has no target. */
static struct tfm_tensor *case_cross_entropy(struct net *net)
{
    struct tfm_tensor *x = difference_input(net, "x", 5, 0),
                      *w = difference_parameter(net, "w", 7, 5);
    return tfm_op_cross_entropy(net->graph, x, w, difference_ids(net, "targets"), 0, NULL);
}

static struct tfm_tensor *case_capped_classes(struct net *net)
{
    struct tfm_tensor *x = difference_input(net, "x", 5, 0),
                      *w = difference_parameter(net, "w", 7, 5);
    return tfm_op_cross_entropy(net->graph, x, w, difference_ids(net, "targets"), 0.8, NULL);
}

/* The targets lie in one half of the classes, of which there are more than a tile has. */
static struct tfm_tensor *case_many_classes(struct net *net)
{
    struct tfm_tensor *x = difference_input(net, "x", 2, 0),
                      *w = difference_parameter(net, "w", 41, 2);
    return tfm_op_cross_entropy(net->graph, x, w, difference_ids(net, "targets"), 0, NULL);
}

static const struct {
    enum tfm_op op;
    const char *name;
    struct tfm_tensor *(*build)(struct net *net);
} cases[] = {
    {TFM_OP_EMBEDDING, "embedding", case_embedding},
    {TFM_OP_EMBEDDING, "embedding of positions", case_positions},
    {TFM_OP_LINEAR, "linear", case_linear},
    {TFM_OP_LINEAR, "linear with one weight twice", case_linear_twice},
    {TFM_OP_ADD, "add", case_add},
    {TFM_OP_ADD, "add of one tensor", case_add_twice},
    {TFM_OP_CAST, "cast", case_cast},
    {TFM_OP_TAKE_ROWS, "take_rows", case_take_rows},
    {TFM_OP_RMS_NORM, "rms_norm", case_rms_norm},
    {TFM_OP_ROPE, "rope", case_rope},
    {TFM_OP_ROPE, "rope of halves", case_rope_halves},
    {TFM_OP_GQA_ATTENTION, "attention", case_attention},
    {TFM_OP_GQA_ATTENTION, "attention with masks and a cap", case_attention_masks},
    {TFM_OP_GQA_ATTENTION, "attention with a relative bias", case_attention_bias},
    {TFM_OP_SWIGLU, "swiglu", case_swiglu},
    {TFM_OP_LAYER_NORM, "layer_norm", case_layer_norm},
    {TFM_OP_RELU, "relu", case_relu},
    {TFM_OP_SILU, "silu", case_silu},
    {TFM_OP_GELU, "gelu", case_gelu},
    {TFM_OP_GELU, "gelu of tanh", case_gelu_tanh},
    {TFM_OP_GLU, "glu", case_glu},
    {TFM_OP_MUL, "mul", case_mul},
    {TFM_OP_MUL, "square", case_square},
    {TFM_OP_SCALE, "scale", case_scale},
    {TFM_OP_SCALE, "softcap", case_softcap},
    {TFM_OP_CROSS_ENTROPY, "cross_entropy", case_cross_entropy},
    {TFM_OP_CROSS_ENTROPY, "cross_entropy with a soft cap", case_capped_classes},
    {TFM_OP_CROSS_ENTROPY, "cross_entropy of many classes", case_many_classes},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The graph is there; its gradients. */
static void check(struct net *net, struct tfm_tensor *y, const char *what)
{
    struct tfm_error err = {0};
    const enum tfm_status status = difference_backward(net, y, &err);

    ck_assert_msg(status == TFM_STATUS_OK, "%s: %s", what, err.text);
    difference_check(net, what);
}

/* Catches: a rule that is wrong in any element, forgets an input, or does not add up several uses. */
START_TEST(ops)
{
    struct net net;

    net_begin(&net, DIFFERENCE_ROWS, 2);
    check(&net, cases[_i].build(&net), cases[_i].name);
    net_end(&net);
}
END_TEST

/* Catches: an op that says in ops.def that it has a gradient and has no rule or no case here, or that has one
 * and says that it has not. */
START_TEST(every_op)
{
    for (int op = 0; op < TFM_OP_LIMIT; op++) {
        const struct tfm_op_info *info = tfm_op_info((enum tfm_op)op);
        size_t i = 0;
        if (!info)
            continue;
        while (i < CASES && cases[i].op != (enum tfm_op)op)
            i++;
        ck_assert_msg(!info->differentiable || i < CASES, "%s has no case", info->name);
        const int has_rule = tfm__op_rule((enum tfm_op)op)->gradient != NULL;
        ck_assert_msg(has_rule == (info->differentiable != 0), "%s: %s", info->name,
                      has_rule ? "has a gradient: differentiable is 1" : "has no gradient");
    }
}
END_TEST

/* ---- stacks ---- */

/* Catches: gradients that are right op by op and wrong together: residuals, views, tied weights, groups of
 * heads, several sequences. */
START_TEST(stacks)
{
    struct tfm_error err = {0};
    struct tfm_nn_decoder config;
    struct net net;
    const char *name = training_stack(_i, TFM_DTYPE_F64, &config);

    net_begin(&net, DIFFERENCE_ROWS, 2);
    struct tfm_tensor *y = tfm_nn_decoder(net.graph, &config);
    ck_assert_msg(tfm_graph_check(net.graph, &err) == TFM_STATUS_OK, "%s", err.text);
    difference_train_all(&net);
    check(&net, y, name);
    net_end(&net);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("gradients");
    TCase *tcase = net_case(suite, "gradients");

    tcase_add_loop_test(tcase, ops, 0, CASES);
    tcase_add_test(tcase, every_op);
    tcase_add_loop_test(tcase, stacks, 0, TRAINING_STACKS);
    return suite;
}

int main(void)
{
    return net_main("reference", make);
}
