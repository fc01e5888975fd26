/* SPDX-License-Identifier: MIT
 * Jacobians of blocks in double precision on `reference`, by central differences: a pre-norm sublayer has
 * I + J_F J_N, a post-norm one J_N (I + J_F), one with both I + J_N' J_F J_N, and a block is the product of
 * its two sublayers. Faults caught: residual, norm and sublayer in another order, a sublayer that reads
 * what is not normed, one norm used twice. */
#include <math.h>

#include "tests/nn/net.h"

enum { N = 3, D = 4, SIZE = N * D };

static const double STEP = 1e-6, BOUND = 1e-6;

typedef double matrix[SIZE][SIZE];

/* The parts of the block in one graph, each with an input of its own and the block's parameters. */
enum part { BLOCK, ATTN_NORM, ATTN, ATTN_POST, FFN_NORM, FFN, FFN_POST, PARTS };
static const char *const inputs[PARTS] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6"};
static const char *const outputs[PARTS] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6"};

static const struct {
    const char *name;
    enum tfm_nn_block_kind kind;
    enum tfm_nn_norm_kind norm;
    enum tfm_nn_ffn_kind ffn;
    int bidirectional;
} rows[] = {
    {"pre-norm, RMSNorm, SwiGLU", TFM_NN_BLOCK_PRE, TFM_NN_NORM_RMS, TFM_NN_FFN_SWIGLU, 0},
    {"pre-norm, LayerNorm, GELU", TFM_NN_BLOCK_PRE, TFM_NN_NORM_LAYER, TFM_NN_FFN_GELU, 1},
    {"post-norm, LayerNorm, GELU", TFM_NN_BLOCK_POST, TFM_NN_NORM_LAYER, TFM_NN_FFN_GELU, 1},
    {"post-norm, RMSNorm, SwiGLU", TFM_NN_BLOCK_POST, TFM_NN_NORM_RMS, TFM_NN_FFN_SWIGLU, 0},
    {"both, RMSNorm, GEGLU", TFM_NN_BLOCK_PRE_POST, TFM_NN_NORM_RMS, TFM_NN_FFN_GEGLU, 0},
};

static struct net net;

static enum tfm_status disturb(void *context, const struct tfm_tensor *tensor)
{
    double values[16];

    (void)context;
    if (tensor->rank != 1)
        return TFM_STATUS_OK;
    net_fill(values, net_elements(tensor), tensor->id);
    for (size_t i = 0; i < net_elements(tensor); i++)
        values[i] += strstr(tensor->name, "weight") ? 1.5 : 0;
    net_set(&net, tensor->name, values);
    return TFM_STATUS_OK;
}

static void build(int row)
{
    const struct tfm_nn_block block = {
        .eps = 1e-5,
        .attention = {.heads = 2,
                      .kv_heads = 1,
                      .head_dim = 3,
                      .q = TFM_DTYPE_F64,
                      .k = TFM_DTYPE_F64,
                      .v = TFM_DTYPE_F64,
                      .o = TFM_DTYPE_F64,
                      .bidirectional = rows[row].bidirectional},
        .ffn = {.kind = rows[row].ffn,
                .width = 5,
                .gate = TFM_DTYPE_F64,
                .up = TFM_DTYPE_F64,
                .down = TFM_DTYPE_F64},
        .kind = rows[row].kind,
        .norm = rows[row].norm,
    };
    const struct tfm_nn_norm norm = {.kind = rows[row].norm, .eps = 1e-5};
    struct tfm_tensor *x[PARTS], *y[PARTS];
    struct tfm_error err = {0};

    net_begin(&net, N, 1);
    for (int i = 0; i < PARTS; i++)
        x[i] = net_input(&net, inputs[i], TFM_DTYPE_F64, D, 0);
    y[BLOCK] = tfm_nn_block(net.graph, "b", x[BLOCK], &block);
    y[ATTN_NORM] = tfm_nn_norm(net.graph, "b.attn_norm", x[ATTN_NORM], &norm);
    y[ATTN] = tfm_nn_attention(net.graph, "b.attn", x[ATTN], &block.attention);
    y[ATTN_POST] = tfm_nn_norm(net.graph, "b.attn_post_norm", x[ATTN_POST], &norm);
    y[FFN_NORM] = tfm_nn_norm(net.graph, "b.ffn_norm", x[FFN_NORM], &norm);
    y[FFN] = tfm_nn_ffn(net.graph, "b.ffn", x[FFN], &block.ffn);
    y[FFN_POST] = tfm_nn_norm(net.graph, "b.ffn_post_norm", x[FFN_POST], &norm);
    for (int i = 0; i < PARTS; i++) {
        tfm_graph_output(net.graph, y[i], outputs[i]);
    }
    ck_assert_msg(tfm_graph_check(net.graph, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_graph_parameters(net.graph, disturb, NULL);
    net_compile(&net, 3);
}

static void evaluate(enum part part, const double *x, double *y)
{
    net_put(&net, inputs[part], 0, SIZE, x);
    net_run_n(&net, N, 0);
    net_get(&net, outputs[part], 0, SIZE, y);
}

/* J[i][j] = d y_i / d x_j */
static void jacobian(enum part part, const double *at, matrix J)
{
    double x[SIZE], above[SIZE], below[SIZE];

    for (int j = 0; j < SIZE; j++) {
        memcpy(x, at, sizeof x);
        x[j] = at[j] + STEP;
        evaluate(part, x, above);
        x[j] = at[j] - STEP;
        evaluate(part, x, below);
        for (int i = 0; i < SIZE; i++)
            J[i][j] = (above[i] - below[i]) / (2 * STEP);
    }
}

static void multiply(matrix A, matrix B, matrix AB)
{
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            AB[i][j] = 0;
            for (int k = 0; k < SIZE; k++)
                AB[i][j] += A[i][k] * B[k][j];
        }
}

static void add_identity(matrix A)
{
    for (int i = 0; i < SIZE; i++)
        A[i][i] += 1;
}

static void add(const double *a, const double *b, double *sum)
{
    for (int i = 0; i < SIZE; i++)
        sum[i] = a[i] + b[i];
}

/* The Jacobian of one sublayer at x by its formula; x becomes the sublayer's output. */
static void sublayer(enum tfm_nn_block_kind kind, enum part norm, enum part layer, enum part post,
                     double *x, matrix J)
{
    static matrix JN, JF, JP, product;
    double h[SIZE], f[SIZE];

    if (kind == TFM_NN_BLOCK_POST) {
        jacobian(layer, x, JF);
        add_identity(JF);
        evaluate(layer, x, f);
        add(x, f, h);
        jacobian(norm, h, JN);
        multiply(JN, JF, J);
        evaluate(norm, h, x);
        return;
    }
    jacobian(norm, x, JN);
    evaluate(norm, x, h);
    jacobian(layer, h, JF);
    multiply(JF, JN, J);
    evaluate(layer, h, f);
    if (kind == TFM_NN_BLOCK_PRE_POST) {
        jacobian(post, f, JP);
        multiply(JP, J, product);
        memcpy(J, product, sizeof product);
        evaluate(post, f, h);
        memcpy(f, h, sizeof f);
    }
    add_identity(J);
    add(x, f, x);
}

START_TEST(block_jacobian)
{
    static matrix whole, first, second, product;
    double x[SIZE], y[SIZE], largest = 0;

    build(_i);
    net_fill(x, SIZE, 11);
    jacobian(BLOCK, x, whole);
    evaluate(BLOCK, x, y);
    sublayer(rows[_i].kind, ATTN_NORM, ATTN, ATTN_POST, x, first);
    sublayer(rows[_i].kind, FFN_NORM, FFN, FFN_POST, x, second);
    multiply(second, first, product);
    net_compare(x, y, SIZE, 1e-12, rows[_i].name);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            largest = fmax(largest, fabs(whole[i][j]));
            ck_assert_msg(fabs(whole[i][j] - product[i][j]) <= BOUND, "%s: [%d][%d] %g, not %g",
                          rows[_i].name, i, j, whole[i][j], product[i][j]);
        }
    ck_assert_double_gt(largest, 0.1);
    net_end(&net);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("jacobians");
    tcase_add_loop_test(net_case(suite, "blocks"), block_jacobian, 0,
                        (int)(sizeof rows / sizeof *rows));
    return suite;
}

int main(void)
{
    return net_main("reference", make);
}
