/* SPDX-License-Identifier: MIT
 * Worked numbers, part 3: rotations and relative buckets. Faults caught: another pairing, sign or
 * position of a rotation, a score that depends on more than the distance, and the claims that the notes
 * warn of: monotone scores, equal outputs whatever stands before. */
#include <math.h>

#include "tests/nn/net.h"
#include "tests/nn/worked_cases.h"

static void expect(const char *row, double got, double want, double tolerance)
{
    ck_assert_msg(fabs(got - want) <= tolerance, "%s: %.9g, but %.9g is right", row, got, want);
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* n vectors of d elements, each rotated at a position of its own. */
static void rotate(int d, double theta, uint32_t n, const double *x, const int32_t *pos, double *y)
{
    const struct tfm_nn_rope rope = {.dims = d, .theta = theta};
    struct net net;

    net_begin(&net, n, 1);
    struct tfm_tensor *in = net_input(&net, "x", TFM_DTYPE_F32, 1, d);
    struct tfm_tensor *at = net_input(&net, "pos", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *table = tfm_nn_rope_buffer(net.graph, "rope", TFM_DTYPE_F32, 64, &rope);
    net_output(&net, tfm_op_rope(net.graph, in, at, table, TFM_ROPE_ADJACENT));
    net_compile(&net, 1);
    net_put(&net, "x", 0, n * (size_t)d, x);
    net_put_i32(&net, "pos", 0, n, pos);
    net_run_n(&net, n, 0);
    net_get(&net, "y", 0, n * (size_t)d, y);
    net_end(&net);
}

/* d = 4, theta 10000: frequencies 1 and 0.01 */
static const double q[4] = {1, 2, 3, 4}, k[4] = {4, 3, 2, 1};

static double score(int32_t m, int32_t n)
{
    const double x[8] = {q[0], q[1], q[2], q[3], k[0], k[1], k[2], k[3]};
    const int32_t pos[2] = {m, n};
    double y[8];

    rotate(4, 10000, 2, x, pos, y);
    return dot(y, y + 4, 4);
}

START_TEST(rope_example)
{
    static const double q1[4] = {-1.1426, 1.9221, 2.9599, 4.0298};
    static const double k3[4] = {-4.3833, -2.4055, 1.9691, 1.0595};
    const double x[8] = {1, 2, 3, 4, 4, 3, 2, 1};
    const int32_t pos[2] = {1, 3};
    double y[8];

    rotate(4, 10000, 2, x, pos, y);
    for (int i = 0; i < 4; i++) {
        expect("q at 1", y[i], q1[i], 5.1e-5);
        expect("k at 3", y[4 + i], k3[i], 5.1e-5);
    }
    expect("their product", dot(y, y + 4, 4), 10.4830, 5.1e-5);
    expect("the same at (11, 13)", score(11, 13), 10.4830, 6e-5);
    expect("the same as q^T R_2 k", score(0, 2), 10.4830, 6e-5);
}
END_TEST

START_TEST(rope_scores_are_not_monotone)
{
    static const double scores[8] = {20,      19.6599, 10.4830, 0.9512,
                                     -0.1285, 8.2794,  18.4865, 21.1492};
    int rises = 0, falls = 0;

    for (int32_t distance = 0; distance < 8; distance++) {
        expect("score at a distance", score(5, 5 + distance), scores[distance], 8e-5);
        if (distance > 0) {
            rises += scores[distance] > scores[distance - 1];
            falls += scores[distance] < scores[distance - 1];
        }
    }
    ck_assert_int_gt(rises, 0);
    ck_assert_int_gt(falls, 0);
}
END_TEST

/* (a c + b d) cos((n - m) t) + (b c - a d) sin((n - m) t) */
START_TEST(rope_of_one_pair)
{
    static const struct {
        const char *name;
        double a, b, c, d;
        int32_t m, n;
    } rows[] = {
        {"equal positions", 1, 2, 3, 4, 7, 7},      {"one apart", 1, 2, 3, 4, 7, 8},
        {"before the query", 1, 2, 3, 4, 8, 3},     {"orthogonal", 1, 0, 0, 1, 0, 2},
        {"negative values", -2, 5, 0.5, -3, 4, 40},
    };
    /* one pair has frequency 1 whatever the base */
    const double x[4] = {rows[_i].a, rows[_i].b, rows[_i].c, rows[_i].d};
    const int32_t pos[2] = {rows[_i].m, rows[_i].n};
    const double t = rows[_i].n - rows[_i].m;
    double y[4];

    rotate(2, 10000, 2, x, pos, y);
    expect(rows[_i].name, dot(y, y + 2, 2),
           (x[0] * x[2] + x[1] * x[3]) * cos(t) + (x[1] * x[2] - x[0] * x[3]) * sin(t), 2e-5);
}
END_TEST

/* The relative property is one of fixed q and k: all positions moved give the same outputs; the same
 * distances behind another first token do not. */
START_TEST(another_context_gives_another_output)
{
    enum { N = 4, D = 8 };
    const struct tfm_nn_rope rope = {.dims = 4};
    struct tfm_nn_attention config = {.heads = 2, .kv_heads = 1, .head_dim = 4};
    double x[N * D], y[3][N * D];
    int32_t pos[N];
    struct net net;

    net_begin(&net, N, 1);
    struct tfm_tensor *in = net_input(&net, "x", TFM_DTYPE_F32, D, 0);
    config.pos = net_input(&net, "pos", TFM_DTYPE_I32, 0, 0);
    config.rope_table = tfm_nn_rope_buffer(net.graph, "rope", TFM_DTYPE_F32, 64, &rope);
    net_output(&net, tfm_nn_attention(net.graph, "attn", in, &config));
    net_compile(&net, 5);
    net_fill(x, N * D, 7);
    for (int turn = 0; turn < 3; turn++) { /* as it is; moved by 20; another first token */
        for (int32_t i = 0; i < N; i++)
            pos[i] = i + (turn == 1 ? 20 : 0);
        if (turn == 2)
            net_fill(x, D, 8);
        net_put(&net, "x", 0, N * D, x);
        net_put_i32(&net, "pos", 0, N, pos);
        net_run_n(&net, N, 0);
        net_get(&net, "y", 0, N * D, y[turn]);
    }
    net_compare(y[1], y[0], N * D, 1e-5, "moved as a whole");
    double most = 0;
    for (int i = (N - 1) * D; i < N * D; i++)
        most = fmax(most, fabs(y[2][i] - y[0][i]));
    ck_assert_msg(most > 1e-3, "the last token did not notice another first one: %g", most);
    net_end(&net);
}
END_TEST

START_TEST(t5_bucket)
{
    static const struct {
        int bidirectional;
        int64_t distance; /* key minus query */
        int32_t bucket;
    } rows[] = {
        {0, 0, 0},    {0, -1, 1},    {0, -15, 15},  {0, -16, 16},   {0, -17, 16},  {0, -24, 19},
        {0, -40, 23}, {0, -50, 24},  {0, -90, 29},  {0, -113, 31},  {0, -128, 31}, {0, -99999, 31},
        {0, 1, 0},    {0, 500, 0},   {1, 0, 0},     {1, 3, 19},     {1, -3, 3},    {1, 20, 26},
        {1, -20, 10}, {1, 1, 17},    {1, -7, 7},    {1, -8, 8},     {1, -64, 14},  {1, -63, 13},
        {1, 128, 31}, {1, 5000, 31}, {1, -128, 15}, {1, -5000, 15},
    };
    const struct tfm_nn_relative t5 = {32, 128, rows[_i].bidirectional};
    const int64_t d = rows[_i].distance;
    int32_t table[2 * 128 + 1], bucket = -1;

    ck_assert_int_eq(tfm_nn_relative_bucket(&t5, d, &bucket, NULL), TFM_STATUS_OK);
    ck_assert_msg(bucket == rows[_i].bucket, "distance %lld: bucket %d", (long long)d, bucket);
    ck_assert_int_eq(tfm_nn_relative_table(&t5, table, NULL), TFM_STATUS_OK);
    if (d >= -128 && d <= 128)
        ck_assert_int_eq(table[d + 128], rows[_i].bucket);
}
END_TEST

void worked_positions_add(Suite *suite)
{
    TCase *tcase = net_case(suite, "positions");
    tcase_add_test(tcase, rope_example);
    tcase_add_test(tcase, rope_scores_are_not_monotone);
    tcase_add_loop_test(tcase, rope_of_one_pair, 0, 5);
    tcase_add_test(tcase, another_context_gives_another_output);
    tcase_add_loop_test(tcase, t5_bucket, 0, 28);
}
