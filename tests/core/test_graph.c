/* SPDX-License-Identifier: MIT
 * Faults caught: a wrong shape that gets through a builder, an error that does not name layer and shapes,
 * a later error that hides the first, a graph that changes after compile, one that is of no use after an
 * error: of what is taken back something stays, or something goes that was there before. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/core/runner.h"

#define SHAPE(...)  \
    (int64_t[])     \
    {               \
        __VA_ARGS__ \
    }

static struct tfm_graph *graph;

static void setup(void)
{
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
}

static struct tfm_tensor *input(const char *name, int64_t width)
{
    return tfm_graph_input(graph, name, TFM_DTYPE_F32, 2, SHAPE(0, width));
}

static void zero_extent(void)
{
    tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 2, SHAPE(4, 0));
}
static void rank_five(void)
{
    tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 5, SHAPE(1, 1, 1, 1, 1));
}
static void huge(void)
{
    tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 3, SHAPE(1ll << 40, 1ll << 40, 1ll << 40));
}
static void part_block(void)
{
    tfm_graph_parameter(graph, "w", TFM_DTYPE_Q4_1, 2, SHAPE(4, 48));
}
static void no_dtype(void)
{
    tfm_graph_parameter(graph, "w", (enum tfm_dtype)77, 1, SHAPE(4));
}
static void declared_twice(void)
{
    tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 2, SHAPE(4, 3));
    tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 2, SHAPE(3, 4));
}
static void reshape_loses(void)
{
    tfm_graph_reshape(graph, input("x", 12), 3, SHAPE(0, 3, 5));
}
static void output_of_input(void)
{
    tfm_graph_output(graph, input("x", 12), "y");
}
static void linear_width(void)
{
    tfm_graph_scope_push(graph, "linear", "blk.7.ffn");
    struct tfm_tensor *w = tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 2, SHAPE(5, 7));
    tfm_op_linear(graph, input("x", 6), w, NULL);
}
static void missing_input(void)
{
    tfm_op_add(graph, input("x", 4), NULL);
}
static void heads_do_not_divide(void)
{
    struct tfm_tensor *x = input("x", 24);
    struct tfm_nn_attention a = {.heads = 3, .kv_heads = 2, .head_dim = 8, .slots = 1, .cells = 4};
    tfm_nn_attention(graph, "blk.0.attn", x, &a);
}
static void foreign_tensor(void)
{
    static struct tfm_graph *other;
    ck_assert_int_eq(tfm_graph_create(&other, NULL), TFM_STATUS_OK);
    struct tfm_tensor *foreign = tfm_graph_input(other, "z", TFM_DTYPE_F32, 2, SHAPE(0, 4));
    tfm_op_add(graph, input("x", 4), foreign);
    tfm_graph_destroy(other);
}

static const struct {
    void (*build)(void);
    enum tfm_status status;
    const char *text[3]; /* all in the error */
} faults[] = {
    {zero_extent, TFM_STATUS_SHAPE, {"\"w\"", "[4, 0]", "positive"}},
    {rank_five, TFM_STATUS_SHAPE, {"\"w\"", "rank 5", "1..4"}},
    {huge, TFM_STATUS_SHAPE, {"\"w\"", "too large", ""}},
    {part_block, TFM_STATUS_SHAPE, {"q4_1", "[4, 48]", "32"}},
    {no_dtype, TFM_STATUS_DTYPE, {"\"w\"", "77", ""}},
    {declared_twice, TFM_STATUS_INVALID_ARGUMENT, {"\"w\"", "[4, 3]", "[3, 4]"}},
    {reshape_loses, TFM_STATUS_SHAPE, {"\"x\"", "[N, 3, 5]", "[N, 12]"}},
    {output_of_input, TFM_STATUS_INVALID_ARGUMENT, {"\"y\"", "\"x\"", ""}},
    {linear_width, TFM_STATUS_SHAPE, {"blk.7.ffn: linear", "[N, 6]", "[5, 7]"}},
    {missing_input, TFM_STATUS_INVALID_ARGUMENT, {"add", "input 1", ""}},
    {heads_do_not_divide, TFM_STATUS_SHAPE, {"blk.0.attn", "gqa_attention", ""}},
    {foreign_tensor, TFM_STATUS_INVALID_ARGUMENT, {"add", "another graph", ""}},
};

START_TEST(faults_are_named)
{
    struct tfm_error err = {0};
    faults[_i].build();
    ck_assert_int_eq(tfm_graph_check(graph, &err), faults[_i].status);
    for (int k = 0; k < 3; k++)
        ck_assert_msg(strstr(err.text, faults[_i].text[k]) != NULL, "\"%s\" is not in: %s",
                      faults[_i].text[k], err.text);
    /* sticky: nothing is built any more, and the text stays */
    ck_assert_ptr_null(input("later", 3));
    struct tfm_error again = {0};
    tfm_graph_check(graph, &again);
    ck_assert_str_eq(again.text, err.text);
}
END_TEST

START_TEST(nodes_and_scopes)
{
    struct tfm_tensor *x = input("x", 8);
    tfm_graph_scope_push(graph, "outer", "a");
    struct tfm_tensor *y = tfm_nn_linear(graph, "a.up", x, 12, TFM_DTYPE_F32, 1);
    struct tfm_tensor *z = tfm_op_add(graph, y, y);
    tfm_graph_scope_pop(graph);
    ck_assert_ptr_nonnull(tfm_graph_output(graph, z, "z"));
    ck_assert_int_eq(tfm_graph_check(graph, NULL), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_graph_node_count(graph), 2);
    const struct tfm_node *linear = tfm_graph_node(graph, 0), *add = tfm_graph_node(graph, 1);
    ck_assert_str_eq(linear->scope->name, "a.up");
    ck_assert_str_eq(linear->scope->kind, "linear");
    ck_assert_str_eq(linear->scope->parent->name, "a");
    ck_assert_str_eq(add->scope->name, "a");
    ck_assert_uint_eq(linear->n_inputs, 3);
    ck_assert_int_eq(z->kind, TFM_TENSOR_OUTPUT);
    const struct tfm_tensor *bias = tfm_graph_find(graph, "a.up.bias");
    ck_assert_int_eq(bias->kind, TFM_TENSOR_PARAMETER);
    ck_assert_int_eq(bias->shape[0], 12);
    const struct tfm_tensor *weight = tfm_graph_find(graph, "a.up.weight");
    ck_assert_int_eq(weight->shape[0], 12);
    ck_assert_int_eq(weight->shape[1], 8);
    ck_assert_ptr_null(tfm_graph_node(graph, 2));
}
END_TEST

/* A tied head is one tensor; an absent optional input is no input. */
START_TEST(the_same_declaration_is_the_same_tensor)
{
    struct tfm_tensor *a = tfm_graph_parameter(graph, "w", TFM_DTYPE_Q8_0, 2, SHAPE(4, 32));
    struct tfm_tensor *b = tfm_graph_parameter(graph, "w", TFM_DTYPE_Q8_0, 2, SHAPE(4, 32));
    ck_assert_ptr_eq(a, b);
    tfm_op_linear(graph, input("x", 32), a, NULL);
    ck_assert_uint_eq(tfm_graph_node(graph, 0)->n_inputs, 2);
}
END_TEST

/* The smallest table bounds the ids of an input that two of them read. */
START_TEST(limits_of_ids)
{
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, SHAPE(0));
    tfm_nn_embedding(graph, "large", ids, 100, 8, TFM_DTYPE_F32);
    ck_assert_int_eq(ids->limit, 100);
    tfm_nn_embedding(graph, "small", ids, 10, 8, TFM_DTYPE_F32);
    tfm_nn_embedding(graph, "middle", ids, 50, 8, TFM_DTYPE_F32);
    ck_assert_int_eq(tfm_graph_check(graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(ids->limit, 10);
}
END_TEST

/* More than one growth of every array inside, with names that stay valid. */
START_TEST(many_nodes)
{
    struct tfm_tensor *x = input("x", 4), *y = x;
    for (int i = 0; i < 1000; i++)
        y = tfm_op_add(graph, y, x);
    ck_assert_int_eq(tfm_graph_check(graph, NULL), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_graph_node_count(graph), 1000);
    ck_assert_str_eq(x->name, "x");
    ck_assert_ptr_eq(tfm_graph_tensor(graph, y->id), y);
}
END_TEST

/* ---- back to a mark ---- */

static enum tfm_status make_ones(const struct tfm_tensor *buffer, const void *settings,
                                 void *values, struct tfm_error *err)
{
    (void)err;
    for (int64_t i = 0; i < buffer->shape[0]; i++)
        ((float *)values)[i] = *(const float *)settings;
    return TFM_STATUS_OK;
}

static struct tfm_tensor *ones(const char *name, float value)
{
    return tfm_graph_buffer_maker(graph, tfm_graph_buffer(graph, name, TFM_DTYPE_F32, 1, SHAPE(4)),
                                  make_ones, &value, sizeof value);
}

START_TEST(a_rewound_graph_is_as_it_was)
{
    struct tfm_graph_mark mark;
    float values[4];

    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, SHAPE(0));
    struct tfm_tensor *fresh = tfm_graph_input(graph, "fresh", TFM_DTYPE_I32, 1, SHAPE(0));
    struct tfm_tensor *x = tfm_nn_embedding(graph, "words", ids, 100, 4, TFM_DTYPE_F32);
    ones("kept", 2);
    tfm_graph_scope_push(graph, "outer", "a");
    struct tfm_tensor *y = tfm_op_add(graph, x, x);
    char name[64];
    snprintf(name, sizeof name, "%s", y->name);
    tfm_graph_mark(graph, &mark);
    const uint32_t nodes = tfm_graph_node_count(graph), tensors = tfm_graph_tensor_count(graph);

    for (int turn = 0; turn < 3; turn++) { /* in the last with an error */
        tfm_nn_embedding(graph, "few", ids, 7 + turn, 4, TFM_DTYPE_F32);
        tfm_nn_learned_positions(graph, "late", x, fresh, 9, TFM_DTYPE_F32);
        ones("dropped", (float)turn);
        tfm_graph_scope_push(graph, "inner", "a.b");
        ck_assert_ptr_nonnull(tfm_graph_output(graph, y, "y"));
        for (int i = 0; i < 200; i++) /* more than one growth */
            x = tfm_op_add(graph, x, y);
        if (turn == 2)
            tfm_nn_linear(graph, "words", x, 3, TFM_DTYPE_F32, 0); /* words.weight, another shape */
        else
            tfm_graph_scope_pop(graph);
        ck_assert_int_eq(ids->limit, 7 + turn);
        ck_assert_int_eq(fresh->limit, 9);
        ck_assert_int_eq(tfm_graph_check(graph, NULL) != TFM_STATUS_OK, turn == 2);
        tfm_graph_scope_pop(graph);

        ck_assert_int_eq(tfm_graph_rewind(graph, &mark, NULL), TFM_STATUS_OK);
        x = (struct tfm_tensor *)tfm_graph_node(graph, 0)->outputs[0];
        ck_assert_int_eq(tfm_graph_check(graph, NULL), TFM_STATUS_OK);
        ck_assert_uint_eq(tfm_graph_node_count(graph), nodes);
        ck_assert_uint_eq(tfm_graph_tensor_count(graph), tensors);
        ck_assert_int_eq(ids->limit, 100);
        ck_assert(fresh->limit == 0 && !fresh->is_position && !ids->is_position);
        ck_assert_int_eq(y->kind, TFM_TENSOR_INTERMEDIATE);
        ck_assert_str_eq(y->name, name);
        ck_assert_ptr_null(tfm_graph_find(graph, "few.weight"));
        ck_assert_ptr_null(tfm_graph_find(graph, "dropped"));
    }
    /* and goes on: in the scope of the mark, with names and values that were taken back */
    ck_assert_ptr_nonnull(ones("dropped", 5));
    ck_assert_ptr_nonnull(tfm_graph_output(graph, tfm_op_add(graph, y, y), "y"));
    ck_assert_str_eq(tfm_graph_node(graph, nodes)->scope->name, "a");
    tfm_graph_scope_pop(graph);
    ck_assert_int_eq(tfm_graph_check(graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(
        tfm_graph_buffer_values(graph, tfm_graph_find(graph, "kept"), values, sizeof values, NULL),
        TFM_STATUS_OK);
    ck_assert_float_eq(values[3], 2);
    ck_assert_int_eq(tfm_graph_buffer_values(graph, tfm_graph_find(graph, "dropped"), values,
                                             sizeof values, NULL),
                     TFM_STATUS_OK);
    ck_assert_float_eq(values[3], 5);
}
END_TEST

/* A mark that does not stand any more is refused, and nothing is lost. */
START_TEST(marks_that_do_not_stand)
{
    struct tfm_graph_mark empty, early, late, foreign;
    struct tfm_graph *other = NULL;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_graph_create(&other, NULL), TFM_STATUS_OK);
    tfm_graph_mark(other, &foreign);
    tfm_graph_mark(graph, &empty);
    struct tfm_tensor *x = input("x", 8);
    tfm_graph_mark(graph, &early);
    tfm_graph_scope_push(graph, "outer", "a");
    tfm_op_add(graph, x, x);
    tfm_graph_mark(graph, &late);
    ck_assert_int_eq(tfm_graph_rewind(graph, &foreign, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_graph_rewind(graph, &early, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_graph_rewind(graph, &late, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "taken back") != NULL, "%s", err.text);
    /* as many nodes and tensors as the mark has, but others: y stands on what would go */
    struct tfm_tensor *w = input("w", 8);
    tfm_op_add(graph, w, w);
    input("more", 8);
    late.scopes = late.scope = NULL;
    late.tensors = 2;
    ck_assert_int_eq(tfm_graph_rewind(graph, &late, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_uint_eq(tfm_graph_node_count(graph), 1);
    ck_assert_uint_eq(tfm_graph_tensor_count(graph), 4);
    ck_assert_int_eq(tfm_graph_rewind(graph, &early, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_graph_rewind(graph, &empty, &err), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_graph_tensor_count(graph), 0);
    ck_assert_ptr_nonnull(input("x", 5));
    tfm_graph_destroy(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tcase = tests_case(suite, "graph");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, faults_are_named, 0, (int)(sizeof faults / sizeof *faults));
    tcase_add_test(tcase, nodes_and_scopes);
    tcase_add_test(tcase, the_same_declaration_is_the_same_tensor);
    tcase_add_test(tcase, limits_of_ids);
    tcase_add_test(tcase, many_nodes);
    tcase_add_test(tcase, a_rewound_graph_is_as_it_was);
    tcase_add_test(tcase, marks_that_do_not_stand);
    return tests_run(suite);
}
