/* SPDX-License-Identifier: MIT
 * Faults caught: a rotary table from the wrong base, position or pairing, a layer that declares other
 * parameters than its header says, a decoder whose head runs on rows nobody asked for. */
#include <check.h>
#include <math.h>
#include <string.h>

#include <tfm/nn.h>

#include "tests/core/runner.h"

START_TEST(rope_table_values)
{
    static const struct {
        double theta;
        int64_t dims, position, pair;
        float factor;
        double angle;
    } rows[] = {
        {1e4, 4, 1, 0, 1, 1.0},      {1e4, 4, 1, 1, 1, 0.01},
        {1e4, 4, 8191, 1, 1, 81.91}, {1e6, 4, 10, 1, 1, 0.01}, /* case A11 */
        {1e5, 64, 515, 0, 1, 515.0}, /* case A12: one bfloat16 step apart from 516 */
        {1e4, 4, 10, 1, 8, 0.1 / 8}, {5e5, 128, 8191, 63, 1, 8191 * 2.4551459e-6},
    };
    float table[8192 * 128], factors[64];
    struct tfm_error err = {0};

    for (int i = 0; i < 64; i++)
        factors[i] = rows[_i].factor;
    ck_assert_msg(tfm_nn_rope_table(TFM_DTYPE_F32, 8192, rows[_i].dims, rows[_i].theta, factors,
                                    table, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    const float *pair = table + (rows[_i].position * (rows[_i].dims / 2) + rows[_i].pair) * 2;
    ck_assert_double_le(fabs((double)pair[0] - cos(rows[_i].angle)), 1e-7);
    ck_assert_double_le(fabs((double)pair[1] - sin(rows[_i].angle)), 1e-7);
}
END_TEST

START_TEST(rope_table_refusals)
{
    static const struct {
        enum tfm_dtype dtype;
        int64_t positions, dims;
        double theta;
        float factor;
        enum tfm_status status;
    } rows[] = {
        {TFM_DTYPE_F16, 4, 4, 1e4, 1, TFM_STATUS_DTYPE},
        {TFM_DTYPE_F32, 4, 3, 1e4, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 0, 1e4, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 0, 4, 1e4, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 4, 0, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 4, (double)NAN, 1, TFM_STATUS_INVALID_ARGUMENT},
        {TFM_DTYPE_F32, 4, 4, 1e4, 0, TFM_STATUS_INVALID_ARGUMENT},
    };
    float table[64], factors[2] = {rows[_i].factor, rows[_i].factor};
    ck_assert_int_eq(tfm_nn_rope_table(rows[_i].dtype, rows[_i].positions, rows[_i].dims,
                                       rows[_i].theta, factors, table, NULL),
                     rows[_i].status);
}
END_TEST

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

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tests_case(suite, "layers");
    tcase_add_loop_test(tcase, rope_table_values, 0, 7);
    tcase_add_loop_test(tcase, rope_table_refusals, 0, 7);
    tcase_add_loop_test(tcase, decoder_declares, 0, 2);
    return tests_run(suite);
}
