/* SPDX-License-Identifier: MIT
 * Worked numbers, part 2: linear, embedding, norms, SiLU and shared heads. Faults caught: a transposed
 * weight, a norm that reaches over tokens, subtracts what it must not or scales to length 1, an
 * activation off in the far tail, query heads that share more than keys and values. */
#include <math.h>

#include "tests/nn/net.h"
#include "tests/nn/worked_cases.h"

static struct net net;

static void setup(void)
{
    net_begin(&net, 4, 1);
}

static void teardown(void)
{
    net_end(&net);
}

static void expect(const char *row, double got, double want, double tolerance)
{
    ck_assert_msg(fabs(got - want) <= tolerance, "%s: %.9g, but %.9g is right", row, got, want);
}

/* ---- linear and embedding ---- */

/* y_i = sum_j W_ij x_j for a W that is not square, so that a transposed one cannot pass. */
START_TEST(linear_rows)
{
    static const double W[6] = {1, 2, 3, 4, 5, 6}, b[2] = {0.5, -0.5}, x[3] = {1, 0.5, -2};
    double y[2];

    net_output(&net, tfm_nn_linear(net.graph, "l", net_input(&net, "x", TFM_DTYPE_F32, 3, 0), 2,
                                   TFM_DTYPE_F32, 1));
    ck_assert_int_eq(tfm_graph_find(net.graph, "l.weight")->shape[0], 2);
    ck_assert_int_eq(tfm_graph_find(net.graph, "l.weight")->shape[1], 3);
    net_set(&net, "l.weight", W);
    net_set(&net, "l.bias", b);
    net_compile(&net, 1);
    net_put(&net, "x", 0, 3, x);
    net_run_n(&net, 1, 0);
    net_get(&net, "y", 0, 2, y);
    expect("row 0 of W is output 0", y[0], 1 + 1 - 6 + 0.5, 1e-6);
    expect("row 1 of W is output 1", y[1], 4 + 2.5 - 12 - 0.5, 1e-6);
}
END_TEST

/* A look-up is x W with a one-hot x: the linear of the transposed table. */
START_TEST(embedding_is_one_hot_linear)
{
    enum { V = 5, D = 3, N = 4 };
    static const int32_t ids[N] = {4, 0, 4, 2};
    double table[V * D], transposed[D * V], hot[N * V] = {0}, looked_up[N * D], multiplied[N * D];

    struct tfm_tensor *in = net_input(&net, "ids", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *x = net_input(&net, "x", TFM_DTYPE_F32, V, 0);
    tfm_graph_output(net.graph, tfm_nn_embedding(net.graph, "e", in, V, D, TFM_DTYPE_F32), "e");
    net_output(&net, tfm_nn_linear(net.graph, "l", x, D, TFM_DTYPE_F32, 0));
    net_fill(table, V * D, 3);
    for (int v = 0; v < V; v++)
        for (int d = 0; d < D; d++)
            transposed[d * V + v] = table[v * D + d];
    net_set(&net, "e.weight", table);
    net_set(&net, "l.weight", transposed);
    net_compile(&net, 1);
    for (int n = 0; n < N; n++)
        hot[n * V + ids[n]] = 1;
    net_put_i32(&net, "ids", 0, N, ids);
    net_put(&net, "x", 0, N * V, hot);
    net_run_n(&net, N, 0);
    net_get(&net, "e", 0, N * D, looked_up);
    net_get(&net, "y", 0, N * D, multiplied);
    for (int i = 0; i < N * D; i++)
        ck_assert_double_eq(looked_up[i], multiplied[i]);
}
END_TEST

/* ---- norms of x = [1, 3] ---- */

enum { LAYER, RMS };

/* gamma 1, beta 0; n rows of two values. */
static void norm(int kind, double eps, const double *x, uint32_t n, double *y)
{
    net_end(&net);
    setup();
    struct tfm_tensor *in = net_input(&net, "x", TFM_DTYPE_F32, 2, 0);
    net_output(&net, kind == LAYER ? tfm_nn_layer_norm(net.graph, "n", in, eps)
                                   : tfm_nn_rms_norm(net.graph, "n", in, eps));
    net_compile(&net, 1);
    net_put(&net, "x", 0, 2 * n, x);
    net_run_n(&net, n, 0);
    net_get(&net, "y", 0, 2 * n, y);
}

START_TEST(norm_of)
{
    static const double root5 = 2.2360679774997896964;
    static const struct {
        const char *name;
        int kind;
        double eps, x[2], y[2], tolerance;
    } rows[] = {
        {"LayerNorm of [1, 3]", LAYER, 0, {1, 3}, {-1, 1}, 1e-6},
        {"LayerNorm: unchanged by a common shift", LAYER, 0, {101, 103}, {-1, 1}, 1e-5},
        {"LayerNorm: x -> -x", LAYER, 0, {-1, -3}, {1, -1}, 1e-6},
        {"RMSNorm of [1, 3]", RMS, 0, {1, 3}, {1 / root5, 3 / root5}, 1e-6},
        {"RMSNorm: a shift changes it", RMS, 0, {101, 103}, {0.990148, 1.009755}, 2e-5},
        {"RMSNorm: x -> -x flips it", RMS, 0, {-1, -3}, {-1 / root5, -3 / root5}, 1e-6},
        {"RMSNorm: x/1000 with eps 1e-5 is 0.57735 of it",
         RMS,
         1e-5,
         {1e-3, 3e-3},
         {0.57735 / root5, 0.57735 * 3 / root5},
         5e-6},
    };
    double y[2];

    norm(rows[_i].kind, rows[_i].eps, rows[_i].x, 1, y);
    for (int i = 0; i < 2; i++)
        expect(rows[_i].name, y[i], rows[_i].y[i], rows[_i].tolerance);
}
END_TEST

START_TEST(rms_norm_is_no_unit_vector)
{
    static const double x[2] = {1, 3};
    double y[2];

    norm(RMS, 0, x, 1, y);
    expect("mean square 1", (y[0] * y[0] + y[1] * y[1]) / 2, 1, 1e-6);
    expect("length sqrt 2", sqrt(y[0] * y[0] + y[1] * y[1]), 1.4142135623730951, 1e-6);
}
END_TEST

START_TEST(norms_act_on_each_token_alone)
{
    static const double x[6] = {1, 3, -2, 5, 0.25, 7}, other[6] = {1, 3, 900, -4, 0.25, 7};
    double y[6], z[6];

    norm(_i, 1e-5, x, 3, y);
    norm(_i, 1e-5, other, 3, z);
    for (int i = 0; i < 6; i++) {
        if (i / 2 == 1)
            ck_assert_double_ne(y[i], z[i]);
        else
            ck_assert_double_eq(y[i], z[i]);
    }
}
END_TEST

/* ---- SiLU, through an FFN of width 1 with weights 1 ---- */

static void silu(const double *x, uint32_t n, double *y)
{
    const struct tfm_nn_ffn ffn = {.kind = TFM_NN_FFN_SILU, .width = 1};

    net_end(&net);
    net_begin(&net, 8, 1);
    net_output(&net, tfm_nn_ffn(net.graph, "f", net_input(&net, "x", TFM_DTYPE_F32, 1, 0), &ffn));
    net_set_all(&net, "f.up.weight", 1);
    net_set_all(&net, "f.down.weight", 1);
    net_compile(&net, 1);
    net_put(&net, "x", 0, n, x);
    net_run_n(&net, n, 0);
    net_get(&net, "y", 0, n, y);
}

START_TEST(silu_values)
{
    static const double at = -1.278465, h = 1.0 / 16;
    const double x[8] = {at, at - h, at + h, 1 - 2 * h, 1 - h, 1 + h, 1 + 2 * h, 2};
    double y[8];

    silu(x, 8, y);
    expect("SiLU: minimum -0.278465", y[0], -0.278465, 1e-6);
    ck_assert_msg(y[1] > y[0] && y[2] > y[0], "SiLU: the minimum is at -1.278465");
    /* central difference of fourth order */
    expect("SiLU'(1) = 0.927671", (8 * (y[5] - y[4]) - (y[6] - y[3])) / (12 * h), 0.927671, 1e-5);
    ck_assert_msg(y[0] < 0, "a gate can be negative");
    ck_assert_msg(y[7] > 1, "a gate is no probability");
    expect("SiLU(2)", y[7], 1.76159416, 1e-6);
}
END_TEST

/* ---- heads that share keys and values ---- */

START_TEST(shared_heads_have_rows_of_their_own)
{
    /* H = 2, G = 1, d = 2: both rows ask [1, 0] with head 0 and [0, 1] with head 1 */
    static const double q[8] = {1, 0, 0, 1, 1, 0, 0, 1}, k[4] = {2, 0, 0, 2}, v[4] = {1, 1, 3, 3};
    const struct tfm_attention config = {.bidirectional = 1};
    double y[8];

    struct tfm_tensor *qt = net_input(&net, "q", TFM_DTYPE_F32, 2, 2);
    struct tfm_tensor *kt = net_input(&net, "k", TFM_DTYPE_F32, 1, 2);
    struct tfm_tensor *vt = net_input(&net, "v", TFM_DTYPE_F32, 1, 2);
    net_output(&net, tfm_op_attention(net.graph, qt, kt, vt, &config));
    net_compile(&net, 1);
    net_put(&net, "q", 0, 8, q);
    net_put(&net, "k", 0, 4, k);
    net_put(&net, "v", 0, 4, v);
    net_run_n(&net, 2, 0);
    net_get(&net, "y", 0, 8, y);
    for (int row = 0; row < 2; row++) {
        expect("head 0", y[4 * row], 1.39114, 1e-5);
        expect("head 1", y[4 * row + 2], 2.60886, 1e-5);
    }
}
END_TEST

void worked_values_add(Suite *suite)
{
    TCase *tcase = net_case(suite, "what layers compute");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, linear_rows);
    tcase_add_test(tcase, embedding_is_one_hot_linear);
    tcase_add_loop_test(tcase, norm_of, 0, 7);
    tcase_add_test(tcase, rms_norm_is_no_unit_vector);
    tcase_add_loop_test(tcase, norms_act_on_each_token_alone, LAYER, RMS + 1);
    tcase_add_test(tcase, silu_values);
    tcase_add_test(tcase, shared_heads_have_rows_of_their_own);
}
