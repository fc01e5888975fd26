/* SPDX-License-Identifier: MIT
 * Faults caught: a layer that declares other parameters than its header says, or a table as a parameter,
 * a decoder whose head runs on rows nobody asked for, a walk that misses one or counts it twice. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <tfm/nn.h>

#include "tests/core/runner.h"

/* Every parameter, buffer and state of a decoder, by name. */
START_TEST(decoder_declares)
{
    static const char *const untied[] = {"output.weight"};
    static const char *const names[] = {
        "token_embd.weight",      "rope.table",
        "blk.1.attn_norm.weight", "blk.1.attn.q.weight",
        "blk.1.attn.k.weight",    "blk.1.attn.v.weight",
        "blk.1.attn.o.weight",    "blk.1.attn.k_cache",
        "blk.1.attn.v_cache",     "blk.1.ffn_norm.weight",
        "blk.1.ffn.gate.weight",  "blk.1.ffn.up.weight",
        "blk.1.ffn.down.weight",  "output_norm.weight",
    };
    struct tfm_nn_decoder config = {
        .vocab = 10,
        .width = 8,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 2,
        .ffn_width = 6,
        .rope_dims = 2,
        .positions = 16,
        .slots = 1,
        .cells = 16,
        .tied = _i,
    };
    struct tfm_graph *graph = NULL;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_graph_create(&graph, &err), TFM_STATUS_OK);
    tfm_nn_decoder(graph, &config);
    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(tfm_graph_find(graph, names[i]) != NULL, "%s", names[i]);
    ck_assert_int_eq(tfm_graph_find(graph, untied[0]) == NULL, _i);
    ck_assert_int_eq(tfm_graph_find(graph, "blk.1.attn.k.weight")->shape[0], 4);
    ck_assert_int_eq(tfm_graph_find(graph, "blk.1.attn.k_cache")->shape[2], 2);
    ck_assert_int_eq(tfm_graph_find(graph, "logits")->extent, TFM_EXTENT_OUT_ROWS);
    ck_assert_int_eq(tfm_graph_find(graph, "rope.table")->kind, TFM_TENSOR_BUFFER);
    tfm_graph_destroy(graph);
}
END_TEST

/* ---- what each layer declares, as one text: parameters, then buffers, then states ---- */

static struct tfm_graph *graph;

static void setup(void)
{
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
}

struct listing {
    char text[1024];
    size_t used;
};

static enum tfm_status list(void *context, const struct tfm_tensor *tensor)
{
    struct listing *l = context;

    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s%s",
                                l->used ? " " : "", tensor->name);
    for (int32_t i = 0; i < tensor->rank; i++)
        l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%c%d",
                                    i ? 'x' : ':', (int)tensor->shape[i]);
    ck_assert_uint_lt(l->used, sizeof l->text);
    return TFM_STATUS_OK;
}

static void declares(const char *name, const char *parameters, const char *buffers,
                     const char *states)
{
    struct listing p = {0}, b = {0}, s = {0};
    struct tfm_error err = {0};

    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s: %s", name, err.text);
    ck_assert_int_eq(tfm_graph_parameters(graph, list, &p), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_graph_buffers(graph, list, &b), TFM_STATUS_OK);
    for (uint32_t i = 0; i < tfm_graph_tensor_count(graph); i++)
        if (tfm_graph_tensor(graph, i)->kind == TFM_TENSOR_STATE)
            list(&s, tfm_graph_tensor(graph, i));
    ck_assert_msg(strcmp(p.text, parameters) == 0, "%s: parameters %s", name, p.text);
    ck_assert_msg(strcmp(b.text, buffers) == 0, "%s: buffers %s", name, b.text);
    ck_assert_msg(strcmp(s.text, states) == 0, "%s: states %s", name, s.text);
}

static struct tfm_tensor *x12(void)
{
    return tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, 12});
}

static struct tfm_tensor *pos(void)
{
    return tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 1, (int64_t[]){0});
}

static struct tfm_tensor *linear(void)
{
    return tfm_nn_linear(graph, "a", x12(), 5, TFM_DTYPE_F16, 0);
}

static struct tfm_tensor *linear_bias(void)
{
    return tfm_nn_linear(graph, "a", x12(), 5, TFM_DTYPE_F32, 1);
}

/* over the last extent of [N, T, in] and [N, T, H, in] */
static struct tfm_tensor *linear_rank_4(void)
{
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 4, (int64_t[]){0, 2, 3, 12});
    struct tfm_tensor *y = tfm_nn_linear(graph, "a", x, 5, TFM_DTYPE_F32, 0);
    ck_assert_int_eq(y->rank, 4);
    ck_assert_int_eq(y->shape[2], 3);
    ck_assert_int_eq(y->shape[3], 5);
    return y;
}

/* ids [B, T] -> [B, T, D] */
static struct tfm_tensor *embedding_rank_3(void)
{
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 2, (int64_t[]){0, 4});
    struct tfm_tensor *y = tfm_nn_embedding(graph, "a", ids, 9, 12, TFM_DTYPE_F32);
    ck_assert_int_eq(y->rank, 3);
    ck_assert_int_eq(y->shape[1], 4);
    ck_assert_int_eq(y->shape[2], 12);
    return y;
}

static struct tfm_tensor *norm_of(enum tfm_nn_norm_kind kind)
{
    const struct tfm_nn_norm norm = {.kind = kind, .eps = 1e-5};
    return tfm_nn_norm(graph, "a", x12(), &norm);
}

static struct tfm_tensor *rms(void)
{
    return norm_of(TFM_NN_NORM_RMS);
}

static struct tfm_tensor *layer(void)
{
    return norm_of(TFM_NN_NORM_LAYER);
}

static struct tfm_tensor *none(void)
{
    struct tfm_tensor *y = norm_of(TFM_NN_NORM_NONE);
    ck_assert_ptr_eq(y, x12());
    return y;
}

static struct tfm_tensor *ffn_of(enum tfm_nn_ffn_kind kind, int bias)
{
    const struct tfm_nn_ffn ffn = {
        .kind = kind, .width = 7, .gate_bias = bias, .up_bias = bias, .down_bias = bias};
    return tfm_nn_ffn(graph, "a", x12(), &ffn);
}

static struct tfm_tensor *swiglu(void)
{
    const struct tfm_nn_swiglu config = {.width = 7};
    return tfm_nn_swiglu(graph, "a", x12(), &config);
}

static struct tfm_tensor *ffn_swiglu(void)
{
    return ffn_of(TFM_NN_FFN_SWIGLU, 0);
}

static struct tfm_tensor *ffn_glu(void)
{
    return ffn_of(TFM_NN_FFN_GLU, 1);
}

static struct tfm_tensor *ffn_relu(void)
{
    return ffn_of(TFM_NN_FFN_RELU, 1);
}

static struct tfm_tensor *ffn_silu(void)
{
    return ffn_of(TFM_NN_FFN_SILU, 0);
}

static struct tfm_tensor *learned(void)
{
    return tfm_nn_learned_positions(graph, "a", x12(), pos(), 6, TFM_DTYPE_F32);
}

static struct tfm_tensor *sinusoidal(void)
{
    return tfm_nn_sinusoidal_positions(graph, "a", x12(), pos(), 6);
}

static struct tfm_tensor *attention(int64_t H, int64_t G, int64_t d, int64_t cells, int norms,
                                    int biases)
{
    const struct tfm_nn_attention a = {.heads = H,
                                       .kv_heads = G,
                                       .head_dim = d,
                                       .slots = cells ? 2 : 0,
                                       .cells = cells,
                                       .q_norm = norms,
                                       .k_norm = norms,
                                       .q_bias = biases,
                                       .k_bias = biases,
                                       .v_bias = biases,
                                       .o_bias = biases};
    return tfm_nn_attention(graph, "a", x12(), &a);
}

static struct tfm_tensor *mha(void)
{
    return attention(4, 4, 3, 0, 0, 1);
}

/* d is free of D / H */
static struct tfm_tensor *gqa(void)
{
    return attention(6, 2, 5, 8, 1, 0);
}

static struct tfm_tensor *mqa(void)
{
    return attention(6, 1, 2, 8, 0, 0);
}

static struct tfm_tensor *rotary(void)
{
    const struct tfm_nn_rope rope = {.dims = 4};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 3, (int64_t[]){0, 2, 6});
    return tfm_op_rope(graph, x, pos(), tfm_nn_rope_buffer(graph, "a", TFM_DTYPE_F32, 9, &rope),
                       TFM_ROPE_HALVES);
}

static struct tfm_tensor *relative(void)
{
    const struct tfm_nn_relative t5 = {.buckets = 8, .max_distance = 20};
    struct tfm_nn_attention a = {.heads = 3, .kv_heads = 1, .head_dim = 2};
    ck_assert_int_eq(
        tfm_nn_relative_bias(graph, "r", TFM_DTYPE_F32, 3, &t5, &a.rel_bias, &a.rel_bucket), 0);
    return tfm_nn_attention(graph, "a", x12(), &a);
}

static struct tfm_tensor *softcap(void)
{
    return tfm_nn_softcap(graph, "a", x12(), 30);
}

START_TEST(layer_declares)
{
    static const struct {
        const char *name;
        struct tfm_tensor *(*build)(void);
        const char *parameters, *buffers, *states;
    } rows[] = {
        {"linear", linear, "a.weight:5x12", "", ""},
        {"linear with a bias", linear_bias, "a.weight:5x12 a.bias:5", "", ""},
        {"linear of rank 4", linear_rank_4, "a.weight:5x12", "", ""},
        {"embedding of rank 3", embedding_rank_3, "a.weight:9x12", "", ""},
        {"RMSNorm", rms, "a.weight:12", "", ""},
        {"LayerNorm", layer, "a.weight:12 a.bias:12", "", ""},
        {"no norm", none, "", "", ""},
        {"SwiGLU, short form", swiglu, "a.gate.weight:7x12 a.up.weight:7x12 a.down.weight:12x7", "",
         ""},
        {"SwiGLU", ffn_swiglu, "a.gate.weight:7x12 a.up.weight:7x12 a.down.weight:12x7", "", ""},
        {"GLU with biases", ffn_glu,
         "a.gate.weight:7x12 a.gate.bias:7 a.up.weight:7x12 a.up.bias:7 a.down.weight:12x7 "
         "a.down.bias:12",
         "", ""},
        {"ReLU with biases", ffn_relu,
         "a.up.weight:7x12 a.up.bias:7 a.down.weight:12x7 a.down.bias:12", "", ""},
        {"SiLU owns no gate", ffn_silu, "a.up.weight:7x12 a.down.weight:12x7", "", ""},
        {"learned positions", learned, "a.weight:6x12", "", ""},
        {"sinusoidal positions are no parameter", sinusoidal, "", "a.table:6x12", ""},
        {"a rotary table is no parameter", rotary, "", "a.table:9x2x2", ""},
        {"MHA with biases", mha,
         "a.q.weight:12x12 a.q.bias:12 a.k.weight:12x12 a.k.bias:12 a.v.weight:12x12 a.v.bias:12 "
         "a.o.weight:12x12 a.o.bias:12",
         "", ""},
        {"GQA with norms of q and k, cache", gqa,
         "a.q.weight:30x12 a.k.weight:10x12 a.v.weight:10x12 a.q_norm.weight:5 a.k_norm.weight:5 "
         "a.o.weight:12x30",
         "", "a.k_cache:2x8x2x5 a.v_cache:2x8x2x5"},
        {"MQA", mqa, "a.q.weight:12x12 a.k.weight:2x12 a.v.weight:2x12 a.o.weight:12x12", "",
         "a.k_cache:2x8x1x2 a.v_cache:2x8x1x2"},
        {"relative bias", relative,
         "r.rel_bias:8x3 a.q.weight:6x12 a.k.weight:2x12 a.v.weight:2x12 a.o.weight:12x6",
         "r.rel_bucket:41", ""},
        {"soft cap", softcap, "", "", ""},
    };
    ck_assert_ptr_nonnull(rows[_i].build());
    declares(rows[_i].name, rows[_i].parameters, rows[_i].buffers, rows[_i].states);
}
END_TEST

/* Each kind of block has the norms of its own sublayers, and no others. */
START_TEST(block_declares)
{
    static const char *const norms[] = {
        "b.attn_norm.weight:4 b.ffn_norm.weight:4",
        "b.attn_norm.weight:4 b.ffn_norm.weight:4",
        ("b.attn_norm.weight:4 b.attn_post_norm.weight:4 b.ffn_norm.weight:4 "
         "b.ffn_post_norm.weight:4"),
    };
    const struct tfm_nn_block block = {.attention = {.heads = 1, .kv_heads = 1, .head_dim = 4},
                                       .ffn = {.width = 3},
                                       .kind = (enum tfm_nn_block_kind)_i};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, 4});
    struct listing found = {0};

    ck_assert_ptr_nonnull(tfm_nn_block(graph, "b", x, &block));
    for (uint32_t i = 0; i < tfm_graph_tensor_count(graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(graph, i);
        if (tensor->kind == TFM_TENSOR_PARAMETER && tensor->rank == 1)
            list(&found, tensor);
    }
    if (_i == TFM_NN_BLOCK_POST) /* norms come after their sublayers; their order is the same */
        ck_assert_str_eq(tfm_graph_tensor(graph, 1)->name, "b.attn.q.weight");
    ck_assert_str_eq(found.text, norms[_i]);
}
END_TEST

/* A visit that fails ends the walk. */
static enum tfm_status stop(void *context, const struct tfm_tensor *tensor)
{
    (void)tensor;
    ++*(int *)context;
    return TFM_STATUS_BUSY;
}

START_TEST(a_walk_can_be_ended)
{
    int visits = 0;

    gqa();
    ck_assert_int_eq(tfm_graph_parameters(graph, stop, &visits), TFM_STATUS_BUSY);
    ck_assert_int_eq(visits, 1);
    ck_assert_int_eq(tfm_graph_buffers(graph, stop, &visits), TFM_STATUS_OK);
    ck_assert_int_eq(visits, 1);
}
END_TEST

/* Only buffers are made, in memory of their size. */
START_TEST(buffers_are_made)
{
    struct tfm_error err = {0};
    float values[6 * 12];

    sinusoidal();
    const struct tfm_tensor *table = tfm_graph_find(graph, "a.table");
    ck_assert_int_eq(tfm_graph_buffer_values(graph, table, values, sizeof values, NULL),
                     TFM_STATUS_OK);
    ck_assert_float_eq_tol(values[12], 0.8414710f, 1e-7f);
    ck_assert_int_eq(tfm_graph_buffer_values(graph, table, values, sizeof values - 4, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    struct tfm_tensor *plain = tfm_graph_buffer(graph, "plain", TFM_DTYPE_F32, 1, (int64_t[]){4});
    ck_assert_int_eq(tfm_graph_buffer_values(graph, plain, values, 16, &err), TFM_STATUS_NOT_FOUND);
    ck_assert_msg(strstr(err.text, "\"plain\"") != NULL, "%s", err.text);
    ck_assert_ptr_null(tfm_graph_buffer_maker(graph, x12(), NULL, NULL, 0));
    ck_assert_int_eq(tfm_graph_check(graph, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "\"x\" is no buffer") != NULL, "%s", err.text);
}
END_TEST

/* Every setting reaches the table that a layer's buffer is made of. */
START_TEST(rotary_buffers_are_made)
{
    static const float factors[2] = {1.5f, 3};
    static const struct tfm_nn_rope rows[] = {
        {.dims = 4},
        {.dims = 4, .theta = 500},
        {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_LINEAR, .factor = 3},
        {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_NTK, .factor = 3},
        {.dims = 32,
         .scaling = TFM_NN_ROPE_SCALING_YARN,
         .factor = 3,
         .original_context = 64,
         .beta_fast = 9,
         .beta_slow = 0.2,
         .attn_factor = 0.7},
        {.dims = 4,
         .scaling = TFM_NN_ROPE_SCALING_LLAMA3,
         .factor = 3,
         .original_context = 64,
         .low_freq_factor = 0.05,
         .high_freq_factor = 0.5},
        {.dims = 4, .scaling = TFM_NN_ROPE_SCALING_FACTORS, .factors = factors, .attn_factor = 2},
    };
    float got[8 * 32], want[8 * 32], plain[8 * 32];
    const size_t bytes = 8 * (size_t)rows[_i].dims * sizeof *got;
    struct tfm_nn_rope unscaled = {.dims = rows[_i].dims};
    const struct tfm_tensor *table = tfm_nn_rope_buffer(graph, "a", TFM_DTYPE_F32, 8, &rows[_i]);

    ck_assert_ptr_nonnull(table);
    ck_assert_int_eq(tfm_graph_buffer_values(graph, table, got, bytes, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_nn_rope_table_scaled(TFM_DTYPE_F32, 8, &rows[_i], want, NULL),
                     TFM_STATUS_OK);
    ck_assert_mem_eq(got, want, bytes);
    ck_assert_int_eq(tfm_nn_rope_table_scaled(TFM_DTYPE_F32, 8, &unscaled, plain, NULL),
                     TFM_STATUS_OK);
    ck_assert_int_eq(memcmp(got, plain, bytes) == 0, _i == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tests_case(suite, "layers");
    tcase_add_loop_test(tcase, decoder_declares, 0, 2);
    tcase = tests_case(suite, "declarations");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, layer_declares, 0, 20);
    tcase_add_loop_test(tcase, block_declares, 0, 3);
    tcase_add_test(tcase, a_walk_can_be_ended);
    tcase_add_test(tcase, buffers_are_made);
    tcase_add_loop_test(tcase, rotary_buffers_are_made, 0, 7);
    return tests_run(suite);
}
