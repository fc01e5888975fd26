/* SPDX-License-Identifier: MIT
 * Bad input: a status and a line that names layer, tensor and both shapes; graph and process go on.
 * Faults caught: a crash, a shape that is cut to fit, an id that reaches a kernel, a name left out. */
#include <check.h>

#include <stdio.h>
#include <string.h>

#include "tests/nn/net.h"

static struct tfm_graph *graph;

static void setup(void)
{
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
}

/* The graph refuses with this status and a text that has all words; builders then return NULL, quietly. */
static void refused(enum tfm_status status, const char *const *words)
{
    struct tfm_error err = {0}, again = {0};

    ck_assert_int_eq(tfm_graph_check(graph, &err), status);
    for (int i = 0; i < 4 && words[i]; i++)
        ck_assert_msg(strstr(err.text, words[i]) != NULL, "no \"%s\" in: %s", words[i], err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    struct tfm_tensor *x = tfm_graph_input(graph, "later", TFM_DTYPE_F32, 2, (int64_t[]){0, 4});
    ck_assert_ptr_null(tfm_nn_linear(graph, "later", x, 4, TFM_DTYPE_F32, 0));
    ck_assert_int_eq(tfm_graph_check(graph, &again), status);
    ck_assert_str_eq(again.text, err.text);
}

static struct tfm_tensor *activations(int64_t width)
{
    return tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, width});
}

static struct tfm_tensor *heads(int64_t H, int64_t d)
{
    return tfm_graph_input(graph, "x", TFM_DTYPE_F32, 3, (int64_t[]){0, H, d});
}

static struct tfm_tensor *positions(void)
{
    return tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 1, (int64_t[]){0});
}

static struct tfm_tensor *table(int64_t dims)
{
    const struct tfm_nn_rope rope = {.dims = dims};
    return tfm_nn_rope_buffer(graph, "rope", TFM_DTYPE_F32, 8, &rope);
}

/* ---- what is built ---- */

static struct tfm_nn_attention plain(void)
{
    return (struct tfm_nn_attention){.heads = 8, .kv_heads = 2, .head_dim = 4};
}

static void odd_head(void)
{
    struct tfm_nn_attention a = plain();
    a.head_dim = 5;
    a.pos = positions();
    a.rope_table = table(4);
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void odd_rotation(void)
{
    table(5);
}

static void rotation_wider_than_head(void)
{
    struct tfm_nn_attention a = plain();
    a.pos = positions();
    a.rope_table = table(6);
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void no_multiple(void)
{
    struct tfm_nn_attention a = plain();
    a.kv_heads = 3;
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void no_heads(void)
{
    struct tfm_nn_attention a = plain();
    a.kv_heads = 0;
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void too_many_heads(void)
{
    struct tfm_nn_attention a = plain();
    a.heads = INT64_MAX;
    a.head_dim = 2;
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void negative_window(void)
{
    struct tfm_nn_attention a = plain();
    a.window = -1;
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void far_window(void)
{
    struct tfm_nn_attention a = plain();
    a.window = (int64_t)1 << 32;
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void half_a_cache(void)
{
    struct tfm_nn_attention a = plain();
    a.cells = 16;
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void bias_of_other_heads(void)
{
    const struct tfm_nn_relative t5 = {8, 20, 0};
    struct tfm_nn_attention a = plain();
    tfm_nn_relative_bias(graph, "rel", TFM_DTYPE_F32, 6, &t5, &a.rel_bias, &a.rel_bucket);
    tfm_nn_attention(graph, "blk.3.attn", activations(12), &a);
}

static void rope_of(int pos_rank, int64_t T, enum tfm_rope_layout layout)
{
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 4, (int64_t[]){0, 2, 5, 4});
    struct tfm_tensor *pos =
        pos_rank == 2 ? tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 2, (int64_t[]){0, T})
                      : tfm_graph_buffer(graph, "pos", TFM_DTYPE_I32, 1, (int64_t[]){T});
    tfm_graph_scope_push(graph, "rope", "blk.3.turn");
    tfm_op_rope_layout(graph, layout == TFM_ROPE_ROWS ? heads(2, 4) : x, pos, table(4),
                       TFM_ROPE_ADJACENT, layout);
    tfm_graph_scope_pop(graph);
}

static void positions_of_another_length(void)
{
    rope_of(2, 6, TFM_ROPE_HEADS_FIRST);
}

static void one_line_of_another_length(void)
{
    rope_of(1, 4, TFM_ROPE_HEADS_FIRST);
}

static void positions_of_another_rank(void)
{
    tfm_graph_scope_push(graph, "rope", "blk.3.turn");
    tfm_op_rope(graph, heads(2, 4),
                tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 2, (int64_t[]){0, 3}), table(4),
                TFM_ROPE_ADJACENT);
    tfm_graph_scope_pop(graph);
}

static void linear_of_nothing(void)
{
    tfm_nn_linear(graph, "blk.3.ffn.up", activations(12), 0, TFM_DTYPE_F32, 0);
}

static void quantized_rows_that_are_no_blocks(void)
{
    tfm_nn_linear(graph, "blk.3.ffn.up", activations(12), 4, TFM_DTYPE_Q4_1, 0);
}

static void one_name_two_shapes(void)
{
    tfm_nn_linear(graph, "l", activations(12), 4, TFM_DTYPE_F32, 0);
    tfm_nn_linear(graph, "l", activations(12), 5, TFM_DTYPE_F32, 0);
}

static void unknown_ffn(void)
{
    const struct tfm_nn_ffn ffn = {.kind = (enum tfm_nn_ffn_kind)99, .width = 4};
    tfm_nn_ffn(graph, "blk.3.ffn", activations(12), &ffn);
}

static void unknown_norm(void)
{
    const struct tfm_nn_norm norm = {.kind = (enum tfm_nn_norm_kind) - 1};
    tfm_nn_norm(graph, "blk.3.norm", activations(12), &norm);
}

static void unknown_block(void)
{
    const struct tfm_nn_block block = {.kind = (enum tfm_nn_block_kind)7};
    tfm_nn_block(graph, "blk.3", activations(12), &block);
}

static struct tfm_nn_decoder small(void)
{
    return (struct tfm_nn_decoder){.vocab = 8,
                                   .width = 8,
                                   .layers = 1,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .head_dim = 4,
                                   .ffn_width = 8,
                                   .positions = 8};
}

static void unknown_position(void)
{
    struct tfm_nn_decoder c = small();
    c.position = (enum tfm_nn_position_kind)12;
    tfm_nn_decoder(graph, &c);
}

static void two_rope_widths(void)
{
    struct tfm_nn_decoder c = small();
    c.rope_dims = 4;
    c.rope.dims = 2;
    tfm_nn_decoder(graph, &c);
}

static void no_positions(void)
{
    struct tfm_nn_decoder c = small();
    c.positions = 0;
    c.position = TFM_NN_POSITION_LEARNED;
    tfm_nn_decoder(graph, &c);
}

static void bad_scaling(void)
{
    struct tfm_nn_decoder c = small();
    c.rope.scaling = TFM_NN_ROPE_SCALING_LLAMA3;
    c.rope.factor = 8;
    tfm_nn_decoder(graph, &c);
}

static void bad_buckets(void)
{
    struct tfm_nn_decoder c = small();
    c.position = TFM_NN_POSITION_RELATIVE;
    c.relative.buckets = 1;
    tfm_nn_decoder(graph, &c);
}

static void bad_cap(void)
{
    tfm_nn_softcap(graph, "cap", activations(4), -3);
}

static void other_table_same_name(void)
{
    const struct tfm_nn_rope a = {.dims = 4}, b = {.dims = 4, .theta = 1e6};
    tfm_nn_rope_buffer(graph, "rope", TFM_DTYPE_F32, 8, &a);
    tfm_nn_rope_buffer(graph, "rope", TFM_DTYPE_F32, 8, &a); /* the same: fine */
    ck_assert_int_eq(tfm_graph_check(graph, NULL), TFM_STATUS_OK);
    tfm_nn_rope_buffer(graph, "rope", TFM_DTYPE_F32, 8, &b);
}

START_TEST(built)
{
    static const struct {
        const char *name;
        void (*build)(void);
        enum tfm_status status;
        const char *words[4];
    } rows[] = {
        {"odd d", odd_head, TFM_STATUS_SHAPE, {"blk.3.attn", "even", "[N, 8, 5]", "[8, 2, 2]"}},
        {"odd rotary width", odd_rotation, TFM_STATUS_INVALID_ARGUMENT, {"\"rope\"", "dims is 5"}},
        {"more than d rotated",
         rotation_wider_than_head,
         TFM_STATUS_SHAPE,
         {"blk.3.attn", "[8, 3, 2]", "[N, 8, 4]"}},
        {"H no multiple of G",
         no_multiple,
         TFM_STATUS_SHAPE,
         {"blk.3.attn", "multiple", "[N, 8, 4]", "[N, 3, 4]"}},
        {"no kv heads", no_heads, TFM_STATUS_SHAPE, {"blk.3.attn", "8 heads", "0 kv heads"}},
        {"too many heads",
         too_many_heads,
         TFM_STATUS_SHAPE,
         {"blk.3.attn", "9223372036854775807 heads"}},
        {"negative window",
         negative_window,
         TFM_STATUS_INVALID_ARGUMENT,
         {"blk.3.attn", "window of -1"}},
        {"window beyond 31 bits",
         far_window,
         TFM_STATUS_INVALID_ARGUMENT,
         {"blk.3.attn", "window of 4294967296"}},
        {"cells without slots",
         half_a_cache,
         TFM_STATUS_SHAPE,
         {"blk.3.attn.k_cache", "[0, 16, 2, 4]"}},
        {"bias of other heads",
         bias_of_other_heads,
         TFM_STATUS_SHAPE,
         {"blk.3.attn", "rel.rel_bias", "[8, 6]", "[N, 8, 4]"}},
        {"pos [N, T] of another T",
         positions_of_another_length,
         TFM_STATUS_SHAPE,
         {"blk.3.turn", "'pos' [N, 6]", "'x' [N, 2, 5, 4]"}},
        {"pos [T] of another T",
         one_line_of_another_length,
         TFM_STATUS_SHAPE,
         {"blk.3.turn", "'pos' [4]", "'x' [N, 2, 5, 4]"}},
        {"pos [N, T] for rows",
         positions_of_another_rank,
         TFM_STATUS_SHAPE,
         {"blk.3.turn", "'pos' [N, 3]", "'x' [N, 2, 4]"}},
        {"linear to nothing",
         linear_of_nothing,
         TFM_STATUS_SHAPE,
         {"blk.3.ffn.up.weight", "[0, 12]"}},
        {"rows that are no blocks",
         quantized_rows_that_are_no_blocks,
         TFM_STATUS_SHAPE,
         {"blk.3.ffn.up.weight", "[4, 12]", "32"}},
        {"one name, two shapes",
         one_name_two_shapes,
         TFM_STATUS_INVALID_ARGUMENT,
         {"l.weight", "[4, 12]", "[5, 12]"}},
        {"no such ffn", unknown_ffn, TFM_STATUS_INVALID_ARGUMENT, {"blk.3.ffn", "99"}},
        {"no such norm", unknown_norm, TFM_STATUS_INVALID_ARGUMENT, {"blk.3.norm", "-1"}},
        {"no such block", unknown_block, TFM_STATUS_INVALID_ARGUMENT, {"blk.3", "7"}},
        {"no such positions", unknown_position, TFM_STATUS_INVALID_ARGUMENT, {"decoder", "12"}},
        {"two rotary widths",
         two_rope_widths,
         TFM_STATUS_INVALID_ARGUMENT,
         {"rope_dims is 4", "rope.dims is 2"}},
        {"a table of no positions", no_positions, TFM_STATUS_SHAPE, {"pos_embd.weight", "[0, 8]"}},
        {"scaling without its context",
         bad_scaling,
         TFM_STATUS_INVALID_ARGUMENT,
         {"rope", "original_context is 0"}},
        {"one bucket", bad_buckets, TFM_STATUS_INVALID_ARGUMENT, {"rel_pos", "1 buckets"}},
        {"negative cap", bad_cap, TFM_STATUS_INVALID_ARGUMENT, {"cap", "-3"}},
        {"one name, two tables",
         other_table_same_name,
         TFM_STATUS_INVALID_ARGUMENT,
         {"rope.table", "different values"}},
    };
    struct tfm_graph_mark mark;
    struct tfm_error err = {0};

    ck_assert_int_eq((int)(sizeof rows / sizeof *rows), 26);
    struct tfm_tensor *given =
        tfm_graph_input(graph, "given", TFM_DTYPE_F32, 2, (int64_t[]){0, 12});
    struct tfm_tensor *y = tfm_nn_linear(graph, "first", given, 12, TFM_DTYPE_F32, 0);
    tfm_graph_mark(graph, &mark);
    rows[_i].build();
    refused(rows[_i].status, rows[_i].words);

    /* the graph goes on: what was refused is taken back, and the same names are built in the right way */
    ck_assert_int_eq(tfm_graph_rewind(graph, &mark, NULL), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_graph_node_count(graph), 1);
    const struct tfm_nn_block block = {.attention = {.heads = 8,
                                                     .kv_heads = 2,
                                                     .head_dim = 4,
                                                     .pos = positions(),
                                                     .rope_table = table(4),
                                                     .slots = 1,
                                                     .cells = 16},
                                       .ffn = {.width = 4}};
    y = tfm_nn_block(graph, "blk.3", y, &block);
    tfm_graph_output(graph, tfm_nn_linear(graph, "l", y, 5, TFM_DTYPE_F32, 0), "y");
    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s", err.text);
}
END_TEST

/* ---- what is compiled: a weight of another shape or dtype than the layer's ---- */

START_TEST(weight_of_the_wrong_shape)
{
    static const float data[24] = {0};
    static const struct {
        enum tfm_dtype dtype;
        int64_t shape[2];
        size_t bytes;
        enum tfm_status status;
        const char *words[3];
    } rows[] = {
        {TFM_DTYPE_F32, {6, 4}, 96, TFM_STATUS_SHAPE, {"blk.3.ffn.up.weight", "[4, 6]", "[6, 4]"}},
        {TFM_DTYPE_F32, {4, 5}, 80, TFM_STATUS_SHAPE, {"blk.3.ffn.up.weight", "[4, 6]", "[4, 5]"}},
        {TFM_DTYPE_F16, {4, 6}, 48, TFM_STATUS_DTYPE, {"blk.3.ffn.up.weight", "f32", "f16"}},
    };
    struct tfm_error err = {0};
    struct net net;

    net_begin(&net, 2, 1);
    net_output(&net, tfm_nn_linear(net.graph, "blk.3.ffn.up",
                                   net_input(&net, "x", TFM_DTYPE_F32, 6, 0), 4, TFM_DTYPE_F32, 0));
    ck_assert_int_eq(tfm_weights_set(net.weights, "blk.3.ffn.up.weight", rows[_i].dtype, 2,
                                     rows[_i].shape, data, rows[_i].bytes, NULL),
                     TFM_STATUS_OK);
    ck_assert_int_eq(tfm_plan_compile(net.graph, net.weights, net.devices.device, net.devices.n,
                                      &net.capacity, &net.plan, &err),
                     rows[_i].status);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(err.text, rows[_i].words[i]) != NULL, "%s", err.text);
    /* other weights make the same graph run */
    tfm_weights_release(net.weights);
    net.weights = NULL;
    ck_assert_int_eq(tfm_weights_create(&net.weights, NULL), TFM_STATUS_OK);
    net_compile(&net, 1);
    net_run_n(&net, 2, 0);
    net_end(&net);
}
END_TEST

/* ---- what is run: ids and positions; the exec goes on ---- */

START_TEST(values_out_of_range)
{
    static const struct {
        const char *name;
        const char *input;
        int32_t value;
        enum tfm_status status;
        const char *words[5]; /* value and place; layer, tensors with both shapes */
    } rows[] = {
        {"negative id",
         "ids",
         -1,
         TFM_STATUS_OUT_OF_RANGE,
         {"\"ids\": value -1 at 1", "token_embd: embedding", "'token_embd.weight' [8, 8]",
          "'ids' [N]"}},
        {"id = vocab",
         "ids",
         8,
         TFM_STATUS_OUT_OF_RANGE,
         {"\"ids\": value 8", "[0, 8)", "token_embd: embedding", "'token_embd.weight' [8, 8]",
          "'ids' [N]"}},
        {"id 2^31 - 1",
         "ids",
         INT32_MAX,
         TFM_STATUS_OUT_OF_RANGE,
         {"\"ids\": value 2147483647", "token_embd: embedding"}},
        {"negative position",
         "pos",
         -1,
         TFM_STATUS_OUT_OF_RANGE,
         {"\"pos\": value -1", "blk.0.attn", "'pos' [N]", "'rope.table' [16, 2, 2]"}},
        {"position past the table",
         "pos",
         16,
         TFM_STATUS_CONTEXT_FULL,
         {"context full: position 16", "blk.0.attn", "'pos' [N]", "'rope.table' [16, 2, 2]"}},
    };
    const struct tfm_nn_decoder config = {.vocab = 8,
                                          .width = 8,
                                          .layers = 1,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .head_dim = 4,
                                          .ffn_width = 8,
                                          .eps = 1e-5,
                                          .positions = 16,
                                          .slots = 1,
                                          .cells = 16};
    const int32_t right[2] = {1, 2};
    const struct tfm_rows run = net_rows(2, 0);
    struct tfm_error err = {0};
    double before[16], after[16];
    struct net net;

    net_begin(&net, 2, 1);
    tfm_nn_decoder(net.graph, &config);
    net_compile(&net, 1);
    net_put_i32(&net, "ids", 0, 2, right);
    net_put_i32(&net, "pos", 0, 2, right);
    net_run_n(&net, 2, 0);
    net_get(&net, "logits", 0, 16, before);
    net_put_i32(&net, rows[_i].input, 1, 1, &rows[_i].value);
    ck_assert_int_eq(net_try(&net, &run, &err), rows[_i].status);
    for (int i = 0; i < 5 && rows[_i].words[i]; i++)
        ck_assert_msg(strstr(err.text, rows[_i].words[i]) != NULL, "no \"%s\" in: %s",
                      rows[_i].words[i], err.text);
    net_put_i32(&net, rows[_i].input, 1, 1, &right[1]);
    net_run_n(&net, 2, 0);
    net_get(&net, "logits", 0, 16, after);
    net_compare(after, before, 16, 0, rows[_i].name);
    net_end(&net);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tcase = net_case(suite, "graphs");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, built, 0, 26);
    tcase = net_case(suite, "weights and values");
    tcase_add_loop_test(tcase, weight_of_the_wrong_shape, 0, 3);
    tcase_add_loop_test(tcase, values_out_of_range, 0, 5);
    return suite;
}

int main(void)
{
    return net_main("reference", make);
}
