/* SPDX-License-Identifier: MIT
 * Initial values. Faults caught: bounds taken as absolute numbers, outliers of a saturated inverse (case
 * A52), clamping, a compensated deviation, numbers that depend on order, count or machine, a norm that
 * starts as 0, a parameter set by the caller that is overwritten. */
#include <check.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/nn.h>

#include "lib/nn/philox.h"
#include "tests/core/runner.h"

/* Known answers of the generator's authors (Random123, kat_vectors: philox4x32, 10 rounds). */
START_TEST(philox_known_answers)
{
    static const struct {
        struct tfm__philox counter;
        uint64_t key;
        uint32_t want[4];
    } rows[] = {
        {{{0, 0, 0, 0}}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         0xffffffffffffffff,
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    const struct tfm__philox got = tfm__philox(rows[_i].counter, rows[_i].key);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got.word[i], rows[_i].want[i]);
}
END_TEST

static void draw(uint64_t seed, const char *stream, double std, double cut, enum tfm_dtype dtype,
                 size_t n, void *values)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_nn_init_truncated_normal(seed, stream, std, cut, dtype, n, values, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
}

/* The same numbers as another program makes from the description in lib/nn/init.c. */
START_TEST(bits_of_a_seed)
{
    static const struct {
        uint64_t seed;
        const char *stream;
        double std, cut;
        double want[3];
    } rows[] = {
        {1,
         "blk.0.ffn.up.weight",
         0.03125,
         3,
         {0x1.36eeebd432e00p-13, -0x1.373a6a3318b03p-5, 0x1.c6aca18d64d2ap-6}},
        {0x123456789abcdef,
         "token_embd.weight",
         1,
         2,
         {-0x1.2dd30f74d3490p-3, 0x1.c549c9401945ep+0, 0x1.9e3f5c9d8fd1ep+0}},
    };
    double values[1000], fewer[3];
    float rounded[3];

    draw(rows[_i].seed, rows[_i].stream, rows[_i].std, rows[_i].cut, TFM_DTYPE_F64, 1000, values);
    draw(rows[_i].seed, rows[_i].stream, rows[_i].std, rows[_i].cut, TFM_DTYPE_F64, 3, fewer);
    draw(rows[_i].seed, rows[_i].stream, rows[_i].std, rows[_i].cut, TFM_DTYPE_F32, 3, rounded);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(values[i], rows[_i].want[i]);
        ck_assert_double_eq(fewer[i], rows[_i].want[i]); /* whatever their count */
        ck_assert_float_eq(rounded[i], (float)rows[_i].want[i]);
    }
}
END_TEST

/* Of a normal distribution cut at c: its deviation, and how much of it lies within x < c. */
static double truncated_std(double c)
{
    const double density = exp(-c * c / 2) / sqrt(2 * 3.14159265358979323846);
    return sqrt(1 - 2 * c * density / erf(c / sqrt(2)));
}

/* Case A52 and the cut at 3: 10^6 numbers of three seeds. */
START_TEST(spread)
{
    enum { COUNT = 1000000 };
    static const struct {
        double std, cut, right;
    } rows[] = {{0.02, 2, 0.8796}, {0.001, 2, 0.8796}, {0.03125, 3, 0.98658}, {1, 3, 0.98658}};
    const double std = rows[_i].std, cut = rows[_i].cut;
    float *values = malloc(COUNT * sizeof *values);

    ck_assert_ptr_nonnull(values);
    ck_assert_double_le(fabs(truncated_std(cut) - rows[_i].right), 1e-4);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double sum = 0, square = 0;
        size_t inner = 0, edge = 0, beyond = 0; /* an assertion a number would take minutes */
        draw(seed, "w", std, cut, TFM_DTYPE_F32, COUNT, values);
        for (size_t i = 0; i < COUNT; i++) {
            const double x = (double)values[i] / std;
            beyond += !(fabs((double)values[i]) <= cut * std);
            sum += x;
            square += x * x;
            inner += fabs(x) < 1;
            edge += fabs(x) > 0.99 * cut;
        }
        ck_assert_uint_eq(beyond, 0);
        /* bounds are four standard errors */
        ck_assert_double_le(fabs(sum / COUNT), 4e-3);
        ck_assert_double_le(fabs(sqrt(square / COUNT) / rows[_i].right - 1), 3e-3);
        const double all = erf(cut / sqrt(2));
        ck_assert_double_le(fabs((double)inner / COUNT - erf(1 / sqrt(2)) / all), 2e-3);
        /* clamping would heap up numbers here */
        const double outside = 1 - erf(0.99 * cut / sqrt(2)) / all;
        ck_assert_double_le(fabs((double)edge / COUNT - outside), 4 * sqrt(outside / COUNT));
    }
    free(values);
}
END_TEST

/* Seeds and streams are independent: no number comes twice, and no pattern of pairs. */
START_TEST(streams_differ)
{
    enum { COUNT = 20000 };
    static double a[COUNT], b[COUNT];
    double product = 0;
    int equal = 0;

    draw(1, "blk.0.attn.q.weight", 1, 3, TFM_DTYPE_F64, COUNT, a);
    draw(_i ? 2 : 1, _i ? "blk.0.attn.q.weight" : "blk.0.attn.k.weight", 1, 3, TFM_DTYPE_F64, COUNT,
         b);
    for (int i = 0; i < COUNT; i++) {
        equal += a[i] == b[i];
        product += a[i] * b[i];
    }
    ck_assert_int_eq(equal, 0);
    ck_assert_double_le(fabs(product / COUNT), 4 / sqrt(COUNT));
}
END_TEST

/* Rounding to a short type never passes the bound, and is the rounding of the same numbers. */
START_TEST(short_types)
{
    enum { COUNT = 64 * 1024 };
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F16, TFM_DTYPE_BF16, TFM_DTYPE_F32};
    static double exact[COUNT], got[COUNT];
    static unsigned char values[COUNT * 4];
    const double std = 0.0731, cut = 2;
    size_t equal = 0, beyond = 0;

    draw(5, "w", std, cut, TFM_DTYPE_F64, COUNT, exact);
    draw(5, "w", std, cut, dtypes[_i], COUNT, values);
    tfm_dtype_to_f64(dtypes[_i], values, 0, COUNT, got);
    tfm_dtype_from_f64(dtypes[_i], exact, values, 0, COUNT);
    tfm_dtype_to_f64(dtypes[_i], values, 0, COUNT, exact);
    for (size_t i = 0; i < COUNT; i++) {
        beyond += !(fabs(got[i]) <= cut * std);
        equal += got[i] == exact[i];
    }
    ck_assert_uint_eq(beyond, 0);
    ck_assert_uint_ge(equal, COUNT - COUNT / 1000); /* the others were drawn again */
}
END_TEST

START_TEST(block_types)
{
    enum { COUNT = 64 };
    double exact[COUNT];
    unsigned char want[COUNT * 2], got[COUNT * 2];
    const size_t bytes = COUNT / 32 * tfm_dtype_info(TFM_DTYPE_Q4_1)->bytes;

    draw(5, "w", 1, 3, TFM_DTYPE_F64, COUNT, exact);
    tfm_dtype_from_f64(TFM_DTYPE_Q4_1, exact, want, 0, COUNT);
    draw(5, "w", 1, 3, TFM_DTYPE_Q4_1, COUNT, got);
    ck_assert_mem_eq(got, want, bytes);
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        double std, cut;
        enum tfm_dtype dtype;
        size_t n;
        enum tfm_status status;
        const char *word;
    } rows[] = {
        {-1, 3, TFM_DTYPE_F32, 4, TFM_STATUS_INVALID_ARGUMENT, "-1"},
        {(double)NAN, 3, TFM_DTYPE_F32, 4, TFM_STATUS_INVALID_ARGUMENT, "nan"},
        {(double)INFINITY, 3, TFM_DTYPE_F32, 4, TFM_STATUS_INVALID_ARGUMENT, "inf"},
        {1, 0, TFM_DTYPE_F32, 4, TFM_STATUS_INVALID_ARGUMENT, "cut at 0"},
        {1, 17, TFM_DTYPE_F32, 4, TFM_STATUS_INVALID_ARGUMENT, "cut at 17"},
        {1, (double)NAN, TFM_DTYPE_F32, 4, TFM_STATUS_INVALID_ARGUMENT, "cut"},
        {1, 3, TFM_DTYPE_I32, 4, TFM_STATUS_DTYPE, "i32"},
        {1, 3, TFM_DTYPE_Q4_1, 33, TFM_STATUS_DTYPE, "33 values of q4_1"},
        {1, 3, TFM_DTYPE_COUNT, 4, TFM_STATUS_DTYPE, "?"},
    };
    struct tfm_error err = {0};
    float values[64];

    ck_assert_int_eq(tfm_nn_init_truncated_normal(1, "w", rows[_i].std, rows[_i].cut,
                                                  rows[_i].dtype, rows[_i].n, values, &err),
                     rows[_i].status);
    ck_assert_msg(strstr(err.text, rows[_i].word) != NULL, "%s", err.text);
}
END_TEST

/* ---- all weights of a graph ---- */

static struct tfm_graph *graph;
static struct tfm_weights *weights;

static void setup(void)
{
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
}

static const float *values_of(const char *name)
{
    struct tfm_weight weight;
    enum tfm_dtype dtype;
    ck_assert_msg(tfm_weights_get(weights, name, &dtype, &weight, NULL) == TFM_STATUS_OK, "%s",
                  name);
    ck_assert_int_eq(dtype, TFM_DTYPE_F32);
    return weight.data;
}

START_TEST(weights_of_a_stack)
{
    static const struct {
        const char *name;
        float least, most; /* of every element */
    } rows[] = {
        {"token_embd.weight", -3, 3},
        {"blk.0.attn.q.weight", -1.0607f, 1.0607f}, /* 3 sqrt(2 / 16) */
        {"blk.0.attn.q.bias", 0, 0},
        {"blk.0.attn_norm.weight", 1, 1},
        {"blk.0.attn_norm.bias", 0, 0},
        {"blk.0.attn.q_norm.weight", 1, 1},
        {"rel_pos.rel_bias", 0, 0},
        {"output_norm.weight", 1, 1},
    };
    const struct tfm_nn_decoder config = {
        .vocab = 32,
        .width = 8,
        .layers = 1,
        .heads = 2,
        .kv_heads = 1,
        .head_dim = 4,
        .ffn_width = 12,
        .norm = TFM_NN_NORM_LAYER,
        .position = TFM_NN_POSITION_RELATIVE,
        .relative = {8, 20, 0},
        .qk_norm = 1,
        .each = {.q_bias = 1},
        .tied = 1,
    };
    static const float mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct tfm_error err = {0};
    int32_t buckets[41];
    struct tfm_weight weight;
    enum tfm_dtype dtype;

    tfm_nn_decoder(graph, &config);
    ck_assert_int_eq(tfm_weights_set(weights, "blk.0.ffn_norm.bias", TFM_DTYPE_F32, 1,
                                     (int64_t[]){8}, mine, sizeof mine, NULL),
                     TFM_STATUS_OK);
    for (int turn = 0; turn < 2; turn++) /* the second finds everything there */
        ck_assert_msg(tfm_nn_init_weights(graph, 3, weights, &err) == TFM_STATUS_OK, "%s",
                      err.text);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct tfm_tensor *tensor = tfm_graph_find(graph, rows[r].name);
        const float *values = values_of(rows[r].name);
        float least = values[0], most = values[0];
        for (int64_t i = 0; i < tfm_tensor_elements(tensor); i++) {
            least = fminf(least, values[i]);
            most = fmaxf(most, values[i]);
        }
        ck_assert_msg(least >= rows[r].least && most <= rows[r].most, "%s: %g to %g", rows[r].name,
                      (double)least, (double)most);
        if (rows[r].most > rows[r].least) /* and they fill their range */
            ck_assert_msg(least < rows[r].least * 0.5f && most > rows[r].most * 0.5f,
                          "%s: %g to %g", rows[r].name, (double)least, (double)most);
    }
    ck_assert_mem_eq(values_of("blk.0.ffn_norm.bias"), mine, sizeof mine);
    ck_assert_int_eq(tfm_nn_relative_table(&config.relative, buckets, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_get(weights, "rel_pos.rel_bucket", &dtype, &weight, NULL),
                     TFM_STATUS_OK);
    ck_assert_uint_eq(weight.bytes, sizeof buckets);
    ck_assert_mem_eq(weight.data, buckets, sizeof buckets);
}
END_TEST

/* A head of its own starts with the same numbers whether logits or a loss are made of it. */
START_TEST(head_of_a_loss)
{
    const struct tfm_nn_decoder config = {.vocab = 32, .width = 8, .head_dim = 4, .positions = 4};
    float logits[32 * 8];
    struct tfm_error err = {0};

    tfm_nn_decoder(graph, &config);
    ck_assert_msg(tfm_nn_init_weights(graph, 3, weights, &err) == TFM_STATUS_OK, "%s", err.text);
    memcpy(logits, values_of("output.weight"), sizeof logits);
    teardown();
    setup();
    tfm_nn_decoder_loss(graph, &config);
    ck_assert_msg(tfm_nn_init_weights(graph, 3, weights, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_mem_eq(values_of("output.weight"), logits, sizeof logits);
}
END_TEST

/* A parameter or buffer of which no layer says how it starts is named. */
START_TEST(unknown_start)
{
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 3, (int64_t[]){0, 1, 4});
    struct tfm_tensor *pos = tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *table =
        _i ? tfm_graph_parameter(graph, "turns", TFM_DTYPE_F32, 3, (int64_t[]){8, 2, 2})
           : tfm_graph_buffer(graph, "turns", TFM_DTYPE_F32, 3, (int64_t[]){8, 2, 2});
    struct tfm_error err = {0};

    tfm_graph_output(graph, tfm_op_rope(graph, x, pos, table, TFM_ROPE_ADJACENT), "y");
    ck_assert_int_eq(tfm_nn_init_weights(graph, 1, weights, &err), TFM_STATUS_NOT_FOUND);
    ck_assert_msg(strstr(err.text, "\"turns\"") != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init");
    TCase *tcase = tests_case(suite, "numbers");
    tcase_add_loop_test(tcase, philox_known_answers, 0, 3);
    tcase_add_loop_test(tcase, bits_of_a_seed, 0, 2);
    tcase_add_loop_test(tcase, spread, 0, 4);
    tcase_add_loop_test(tcase, streams_differ, 0, 2);
    tcase_add_loop_test(tcase, short_types, 0, 3);
    tcase_add_test(tcase, block_types);
    tcase_add_loop_test(tcase, refusals, 0, 9);
    tcase = tests_case(suite, "weights");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, weights_of_a_stack);
    tcase_add_test(tcase, head_of_a_loss);
    tcase_add_loop_test(tcase, unknown_start, 0, 2);
    return tests_run(suite);
}
