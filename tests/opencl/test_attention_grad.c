/* SPDX-License-Identifier: MIT
 * attention_grad makes the sums of rows and of cells in one launch or in two; every gradient must have the same bits
 * from both. What it computes is checked by the cases of tests/ops. */
#include "tests/opencl/parts.h"

#include <tfm/grad.h>

/* More cells than a part keeps the weights of, and no multiple of a tile. */
enum { ROWS = 1100, HEADS = 3, DIM = 40, BUCKETS = 6, SPAN = 9 };
enum { QUERY = HEADS * DIM, BIAS = BUCKETS * HEADS };

/* The inputs of a run and what it makes. */
static float q[ROWS * QUERY], dy[ROWS * QUERY], k[ROWS * DIM], v[ROWS * DIM], lse[ROWS * HEADS];
struct results {
    float dq[ROWS * QUERY], dk[ROWS * DIM], dv[ROWS * DIM], dbias[BIAS];
};
static struct results once, twice;

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;
static struct tfm_plan *plan;
static struct tfm_exec *exec;

static const struct kind {
    int bidirectional, window;
    double softcap;
    int biased;
} kinds[] = {{0, 0, 0, 0}, {0, 100, 0, 0}, {1, 0, 2, 1}};

static void add_bias(struct tfm_attention *config, struct tfm_tensor **dbias)
{
    static const int64_t shape[] = {BUCKETS, HEADS}, distances[] = {2 * SPAN + 1};
    int32_t buckets[2 * SPAN + 1];
    float bias[BIAS];

    for (size_t i = 0; i < 2 * SPAN + 1; i++)
        buckets[i] = (int32_t)(i % BUCKETS);
    for (size_t i = 0; i < BIAS; i++)
        bias[i] = parts_value(i, 9);
    config->rel_bias = tfm_graph_parameter(graph, "rel_bias", TFM_DTYPE_F32, 2, shape);
    config->rel_bucket = tfm_graph_buffer(graph, "rel_bucket", TFM_DTYPE_I32, 1, distances);
    *dbias = tfm_graph_state(graph, "dbias", TFM_DTYPE_F32, 2, shape);
    ck_assert_int_eq(tfm_weights_add_copy(weights, "rel_bias", TFM_DTYPE_F32, 2, shape, bias,
                                          sizeof bias, NULL),
                     TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_add_copy(weights, "rel_bucket", TFM_DTYPE_I32, 1, distances,
                                          buckets, sizeof buckets, NULL),
                     TFM_STATUS_OK);
}
