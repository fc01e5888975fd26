/* SPDX-License-Identifier: MIT
 * ops_table BACKEND: prints the table of docs/ops.md that tells which dtypes of each op a backend takes, by
 * asking supports() about a node of each. Exit 77: the backend is not here. */
#include <stdio.h>
#include <string.h>

#include <tfm/grad.h>

#include "tests/ops/drive_backend.h"

/* Every row asks about one tensor of the node; the others are what goes with its dtype. */
enum { N_SLOTS = 2, CELLS = 64, H = 4, G = 2, D = 32, T = 3, WIDTH = 64, OUT = 96, TABLE = 100 };

static enum tfm_dtype beside(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

static struct tfm_tensor *in(struct tfm_graph *g, const char *name, enum tfm_dtype dtype, int rank,
                             int64_t d1, int64_t d2, int64_t d3)
{
    return tfm_graph_input(g, name, dtype, rank, (int64_t[]){0, d1, d2, d3});
}

static struct tfm_tensor *weight(struct tfm_graph *g, const char *name, enum tfm_dtype dtype,
                                 int rank, int64_t d0, int64_t d1, int64_t d2)
{
    return tfm_graph_parameter(g, name, dtype, rank, (int64_t[]){d0, d1, d2});
}

static struct tfm_tensor *x_of(struct tfm_graph *g, enum tfm_dtype dtype)
{
    return in(g, "x", dtype, 2, WIDTH, 0, 0);
}

static struct tfm_tensor *y_of(struct tfm_graph *g, enum tfm_dtype dtype)
{
    return in(g, "y", dtype, 2, WIDTH, 0, 0);
}

/* ---- a node of each op ---- */

static void ask_embedding(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_embedding(g, weight(g, "table", dtype, 2, TABLE, WIDTH, 0),
                     in(g, "ids", TFM_DTYPE_I32, 1, 0, 0, 0));
}

static void ask_positions(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_position_embedding(g, weight(g, "table", dtype, 2, TABLE, WIDTH, 0),
                              in(g, "pos", TFM_DTYPE_I32, 1, 0, 0, 0));
}

static void ask_linear(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_linear(g, x_of(g, beside(dtype)), weight(g, "weight", dtype, 2, OUT, WIDTH, 0), NULL);
}

static void ask_linear_bias(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_linear(g, x_of(g, beside(dtype)), weight(g, "weight", dtype, 2, OUT, WIDTH, 0),
                  weight(g, "bias", beside(dtype), 1, OUT, 0, 0));
}

static void ask_add(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_add(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_cast_from(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_cast(g, x_of(g, dtype), TFM_DTYPE_F32);
}

static void ask_cast_to(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_cast(g, x_of(g, TFM_DTYPE_F32), dtype);
}

static void ask_take_rows(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_take_rows(g, x_of(g, dtype));
}

static void ask_rms_norm(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_rms_norm(g, x_of(g, dtype), weight(g, "gamma", beside(dtype), 1, WIDTH, 0, 0), 1e-5);
}

static void ask_layer_norm(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_layer_norm(g, x_of(g, dtype), weight(g, "gamma", beside(dtype), 1, WIDTH, 0, 0),
                      weight(g, "beta", beside(dtype), 1, WIDTH, 0, 0), 1e-5);
}

static void ask_rope(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_rope(g, in(g, "x", dtype, 3, H, D, 0), in(g, "pos", TFM_DTYPE_I32, 1, 0, 0, 0),
                weight(g, "table", beside(dtype), 3, TABLE, D / 2, 2), TFM_ROPE_HALVES);
}

static void ask_rope_heads_first(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_rope_layout(g, in(g, "x", dtype, 4, H, T, D), in(g, "pos", TFM_DTYPE_I32, 2, T, 0, 0),
                       weight(g, "table", beside(dtype), 3, TABLE, D / 2, 2), TFM_ROPE_ADJACENT,
                       TFM_ROPE_HEADS_FIRST);
}

static void ask_rope_tokens_first(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_rope_layout(g, in(g, "x", dtype, 4, T, H, D), in(g, "pos", TFM_DTYPE_I32, 2, T, 0, 0),
                       weight(g, "table", beside(dtype), 3, TABLE, D / 2, 2), TFM_ROPE_ADJACENT,
                       TFM_ROPE_TOKENS_FIRST);
}

static void attention(struct tfm_graph *g, enum tfm_dtype dtype, const struct tfm_attention *config)
{
    tfm_op_attention(g, in(g, "q", dtype, 3, H, D, 0), in(g, "k", dtype, 3, G, D, 0),
                     in(g, "v", dtype, 3, G, D, 0), config);
}

static void ask_attention(struct tfm_graph *g, enum tfm_dtype dtype)
{
    attention(g, dtype, &(struct tfm_attention){0});
}

static void ask_attention_cache(struct tfm_graph *g, enum tfm_dtype dtype)
{
    const int64_t shape[] = {N_SLOTS, CELLS, G, D};

    attention(g, beside(dtype),
              &(struct tfm_attention){.k_cache = tfm_graph_state(g, "k_cache", dtype, 4, shape),
                                      .v_cache = tfm_graph_state(g, "v_cache", dtype, 4, shape)});
}

static void ask_attention_mask(struct tfm_graph *g, enum tfm_dtype dtype)
{
    attention(g, dtype, &(struct tfm_attention){.bidirectional = 1, .window = T, .softcap = 30});
}

static void ask_attention_bias(struct tfm_graph *g, enum tfm_dtype dtype)
{
    struct tfm_tensor *bias = weight(g, "rel_bias", dtype, 2, 8, H, 0);

    attention(g, dtype,
              &(struct tfm_attention){.rel_bias = bias,
                                      .rel_bucket = tfm_graph_buffer(g, "rel_bucket", TFM_DTYPE_I32,
                                                                     1, (int64_t[]){2 * T + 1})});
}

static void ask_swiglu(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_swiglu(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_glu(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_glu(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_mul(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_mul(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_relu(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_relu(g, x_of(g, dtype));
}

static void ask_silu(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_silu(g, x_of(g, dtype));
}

static void ask_gelu(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_gelu(g, x_of(g, dtype), 0);
}

static void ask_gelu_tanh(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_gelu(g, x_of(g, dtype), 1);
}

static void ask_scale(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_scale(g, x_of(g, dtype), 0.5);
}

static void ask_softcap(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_softcap(g, x_of(g, dtype), 30);
}

static void ask_linear_trainable(struct tfm_graph *g, enum tfm_dtype dtype)
{
    struct tfm_tensor *w = tfm_graph_train(g, weight(g, "weight", dtype, 2, OUT, WIDTH, 0));

    tfm_op_linear(g, x_of(g, beside(dtype)), w, NULL);
}

static void ask_linear_grad_x(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_linear_grad_x(g, weight(g, "weight", dtype, 2, WIDTH, OUT, 0), x_of(g, beside(dtype)));
}

static void ask_linear_grad_x_trainable(struct tfm_graph *g, enum tfm_dtype dtype)
{
    struct tfm_tensor *w = tfm_graph_train(g, weight(g, "weight", dtype, 2, WIDTH, OUT, 0));

    tfm_op_linear_grad_x(g, w, x_of(g, beside(dtype)));
}

static void ask_linear_grad_w(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_linear_grad_w(g, x_of(g, dtype), y_of(g, dtype),
                         tfm_graph_state(g, "dw", dtype, 2, (int64_t[]){WIDTH, WIDTH}),
                         tfm_graph_state(g, "db", dtype, 1, (int64_t[]){WIDTH}));
}

static void ask_embedding_trainable(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_embedding(g, tfm_graph_train(g, weight(g, "table", dtype, 2, TABLE, WIDTH, 0)),
                     in(g, "ids", TFM_DTYPE_I32, 1, 0, 0, 0));
}

static void ask_embedding_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_embedding_grad(g, in(g, "ids", TFM_DTYPE_I32, 1, 0, 0, 0), x_of(g, dtype),
                          tfm_graph_state(g, "dtable", dtype, 2, (int64_t[]){TABLE, WIDTH}), 0);
}

static void ask_take_rows_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_take_rows_grad(g, tfm_op_take_rows(g, x_of(g, dtype)));
}

static void ask_rms_norm_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_rms_norm_grad(g, x_of(g, dtype), weight(g, "gamma", dtype, 1, WIDTH, 0, 0),
                         y_of(g, dtype), tfm_graph_state(g, "dgamma", dtype, 1, (int64_t[]){WIDTH}),
                         1e-5);
}

static void ask_layer_norm_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_layer_norm_grad(g, x_of(g, dtype), weight(g, "gamma", dtype, 1, WIDTH, 0, 0),
                           y_of(g, dtype),
                           tfm_graph_state(g, "dgamma", dtype, 1, (int64_t[]){WIDTH}),
                           tfm_graph_state(g, "dbeta", dtype, 1, (int64_t[]){WIDTH}), 1e-5);
}

static void ask_sum_squares(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_sum_squares(g, tfm_graph_state(g, "x", dtype, 2, (int64_t[]){OUT, WIDTH}));
}

/* w and what belongs to it */
static void ask_adamw(struct tfm_graph *g, enum tfm_dtype dtype)
{
    static const char *const names[] = {"g", "m", "v", "master"};
    const int64_t shape[] = {OUT, WIDTH};
    struct tfm_tensor *states[4];

    for (int i = 0; i < 4; i++)
        states[i] = tfm_graph_state(g, names[i], beside(dtype), 2, shape);
    tfm_op_adamw(g, tfm_graph_train(g, weight(g, "w", dtype, 2, OUT, WIDTH, 0)), states[0],
                 states[1], states[2], in(g, "hyper", beside(dtype), 2, TFM_ADAMW_HYPERS, 0, 0),
                 dtype == beside(dtype) ? NULL : states[3]);
}

static void ask_relu_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_relu_grad(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_silu_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_silu_grad(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_swiglu_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    struct tfm_tensor *dup;

    tfm_op_swiglu_grad(g, x_of(g, dtype), y_of(g, dtype), in(g, "dy", dtype, 2, WIDTH, 0, 0), &dup);
}

static void ask_gelu_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_gelu_grad(g, x_of(g, dtype), y_of(g, dtype), 0);
}

static void ask_gelu_grad_tanh(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_gelu_grad(g, x_of(g, dtype), y_of(g, dtype), 1);
}

static void ask_sigmoid_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_sigmoid_grad(g, x_of(g, dtype), y_of(g, dtype));
}

static void ask_scale_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_scale_grad(g, x_of(g, dtype), y_of(g, dtype), 2, 30);
}

static struct tfm_tensor *column(struct tfm_graph *g, const char *name, enum tfm_dtype dtype)
{
    return in(g, name, dtype, 1, 0, 0, 0);
}

static void ask_cross_entropy(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_cross_entropy(g, x_of(g, beside(dtype)), weight(g, "weight", dtype, 2, OUT, WIDTH, 0),
                         column(g, "targets", TFM_DTYPE_I32), 0, NULL);
}

static void ask_cross_entropy_trainable(struct tfm_graph *g, enum tfm_dtype dtype)
{
    tfm_op_cross_entropy(g, x_of(g, beside(dtype)),
                         tfm_graph_train(g, weight(g, "weight", dtype, 2, OUT, WIDTH, 0)),
                         column(g, "targets", TFM_DTYPE_I32), 0, NULL);
}

static void ask_cross_entropy_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    const enum tfm_dtype x = beside(dtype);

    tfm_op_cross_entropy_grad(
        g, x_of(g, x), tfm_graph_train(g, weight(g, "weight", dtype, 2, OUT, WIDTH, 0)),
        column(g, "targets", TFM_DTYPE_I32), column(g, "lse", x), column(g, "dloss", x), 0,
        tfm_graph_state(g, "dweight", x, 2, (int64_t[]){OUT, WIDTH}));
}

static void ask_attention_lse(struct tfm_graph *g, enum tfm_dtype dtype)
{
    struct tfm_tensor *lse;

    attention(g, dtype, &(struct tfm_attention){.lse = &lse});
}

static void ask_attention_grad(struct tfm_graph *g, enum tfm_dtype dtype)
{
    struct tfm_tensor *dk, *dv;

    tfm_op_attention_grad(g, in(g, "q", dtype, 3, H, D, 0), in(g, "k", dtype, 3, G, D, 0),
                          in(g, "v", dtype, 3, G, D, 0), in(g, "dy", dtype, 3, H, D, 0),
                          in(g, "lse", dtype, 2, H, 0, 0), &(struct tfm_attention){0}, NULL, &dk,
                          &dv);
}

/* ---- the table ---- */

static const struct {
    enum tfm_op op;
    const char *variant, *of; /* more about the node; the tensor whose dtype is in the column */
    void (*ask)(struct tfm_graph *g, enum tfm_dtype dtype);
} rows[] = {
    {TFM_OP_EMBEDDING, "", "table", ask_embedding},
    {TFM_OP_EMBEDDING, "of positions", "table", ask_positions},
    {TFM_OP_LINEAR, "", "weight", ask_linear},
    {TFM_OP_LINEAR, "with bias", "weight", ask_linear_bias},
    {TFM_OP_ADD, "", "a, b", ask_add},
    {TFM_OP_CAST, "to f32", "x", ask_cast_from},
    {TFM_OP_CAST, "from f32", "result", ask_cast_to},
    {TFM_OP_TAKE_ROWS, "", "x", ask_take_rows},
    {TFM_OP_RMS_NORM, "", "x", ask_rms_norm},
    {TFM_OP_ROPE, "", "x", ask_rope},
    {TFM_OP_ROPE, "rope_layout 1", "x", ask_rope_heads_first},
    {TFM_OP_ROPE, "rope_layout 2", "x", ask_rope_tokens_first},
    {TFM_OP_GQA_ATTENTION, "", "q, k, v", ask_attention},
    {TFM_OP_GQA_ATTENTION, "with caches", "caches", ask_attention_cache},
    {TFM_OP_GQA_ATTENTION, "bidirectional, window, softcap", "q, k, v", ask_attention_mask},
    {TFM_OP_GQA_ATTENTION, "relative bias", "q, k, v", ask_attention_bias},
    {TFM_OP_SWIGLU, "", "gate, up", ask_swiglu},
    {TFM_OP_LAYER_NORM, "", "x", ask_layer_norm},
    {TFM_OP_RELU, "", "x", ask_relu},
    {TFM_OP_SILU, "", "x", ask_silu},
    {TFM_OP_GELU, "erf", "x", ask_gelu},
    {TFM_OP_GELU, "tanh", "x", ask_gelu_tanh},
    {TFM_OP_GLU, "", "gate, up", ask_glu},
    {TFM_OP_MUL, "", "a, b", ask_mul},
    {TFM_OP_SCALE, "", "x", ask_scale},
    {TFM_OP_SCALE, "softcap", "x", ask_softcap},
    {TFM_OP_LINEAR, "trainable weight", "weight", ask_linear_trainable},
    {TFM_OP_LINEAR_GRAD_X, "", "weight", ask_linear_grad_x},
    {TFM_OP_LINEAR_GRAD_X, "trainable weight", "weight", ask_linear_grad_x_trainable},
    {TFM_OP_LINEAR_GRAD_W, "", "x, dy", ask_linear_grad_w},
    {TFM_OP_EMBEDDING, "trainable table", "table", ask_embedding_trainable},
    {TFM_OP_EMBEDDING_GRAD, "", "dy", ask_embedding_grad},
    {TFM_OP_TAKE_ROWS_GRAD, "", "dy", ask_take_rows_grad},
    {TFM_OP_RMS_NORM_GRAD, "", "x, dy", ask_rms_norm_grad},
    {TFM_OP_LAYER_NORM_GRAD, "", "x, dy", ask_layer_norm_grad},
    {TFM_OP_RELU_GRAD, "", "x, dy", ask_relu_grad},
    {TFM_OP_SILU_GRAD, "", "x, dy", ask_silu_grad},
    {TFM_OP_SWIGLU_GRAD, "", "gate, up, dy", ask_swiglu_grad},
    {TFM_OP_GELU_GRAD, "erf", "x, dy", ask_gelu_grad},
    {TFM_OP_GELU_GRAD, "tanh", "x, dy", ask_gelu_grad_tanh},
    {TFM_OP_SIGMOID_GRAD, "", "x, dy", ask_sigmoid_grad},
    {TFM_OP_SCALE_GRAD, "", "x, dy", ask_scale_grad},
    {TFM_OP_GQA_ATTENTION, "with lse", "q, k, v", ask_attention_lse},
    {TFM_OP_ATTENTION_GRAD, "", "q, k, v", ask_attention_grad},
    {TFM_OP_CROSS_ENTROPY, "", "weight", ask_cross_entropy},
    {TFM_OP_CROSS_ENTROPY, "trainable weight", "weight", ask_cross_entropy_trainable},
    {TFM_OP_CROSS_ENTROPY_GRAD, "trainable weight", "weight", ask_cross_entropy_grad},
    {TFM_OP_SUM_SQUARES, "", "x", ask_sum_squares},
    {TFM_OP_ADAMW, "", "w", ask_adamw},
};

/* An op without a row would be missing in the documentation. */
static int every_op_has_a_row(void)
{
    int missing = 0;

    for (int op = 1; op < TFM_OP_LIMIT; op++) {
        size_t i = 0;
        while (i < sizeof rows / sizeof *rows && rows[i].op != (enum tfm_op)op)
            i++;
        if (i == sizeof rows / sizeof *rows && tfm_op_info((enum tfm_op)op)) {
            fprintf(stderr, "ops_table: %s has no row\n", tfm_op_name((enum tfm_op)op));
            missing = 1;
        }
    }
    return !missing;
}

/* "-": the shape rule wants another dtype, so that no backend is asked. */
static const char *answer(const struct tfm__drive_backend *b, size_t row, enum tfm_dtype dtype)
{
    const struct tfm_capacity capacity = {64, 2, 64};
    struct tfm_graph *graph = NULL;
    char reason[300] = "";
    const char *said = "-";

    if (tfm_graph_create(&graph, NULL) != TFM_STATUS_OK)
        return "out of memory";
    rows[row].ask(graph, dtype);
    if (tfm_graph_check(graph, NULL) == TFM_STATUS_OK) {
        const struct tfm_node *node = tfm_graph_node(graph, tfm_graph_node_count(graph) - 1);
        said = b->table->supports(b->device, node, &capacity, reason, sizeof reason) ? "yes" : "no";
    }
    tfm_graph_destroy(graph);
    return said;
}

static void print_table(const struct tfm__drive_backend *b)
{
    printf("| op | dtype of |");
    for (int d = 0; d < TFM_DTYPE_COUNT; d++)
        printf(" %s |", tfm_dtype_name((enum tfm_dtype)d));
    printf("\n|---|---|");
    for (int d = 0; d < TFM_DTYPE_COUNT; d++)
        printf("---|");
    printf("\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("| %s%s%s | %s |", tfm_op_name(rows[i].op), *rows[i].variant ? ", " : "",
               rows[i].variant, rows[i].of);
        for (int d = 0; d < TFM_DTYPE_COUNT; d++)
            printf(" %s |", answer(b, i, (enum tfm_dtype)d));
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    struct tfm__drive_backend backend;
    struct tfm_error err = {0};

    if (argc != 2) {
        fprintf(stderr, "usage: ops_table BACKEND\n");
        return 2;
    }
    if (!every_op_has_a_row())
        return 1;
    const enum tfm_status status = drive_open(argv[1], &backend, &err);
    if (status != TFM_STATUS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return status == TFM_STATUS_NOT_FOUND ? 77 : 1;
    }
    print_table(&backend);
    tfm__drive_close(&backend);
    return 0;
}
