/* SPDX-License-Identifier: MIT
 * gqa_attention for the checker. Before each run the caches hold NaN wherever nothing was appended: a
 * cell that a row must not see shows, also if its weight is 0. */
#include <math.h>
#include <string.h>

#include "lib/check/op.h"

enum { ROWS = 33, CELLS = 70, SLOTS = TFM__CHECK_SEQUENCES };

/* Of a sample; its node has them in this order. */
enum { Q, K, V, K_CACHE, V_CACHE };

static const struct tfm_tensor *input(const struct tfm__sample *sample, int i)
{
    return tfm_graph_node(sample->graph, 0)->inputs[i];
}

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, enum tfm_dtype cache,
                 int64_t heads, int64_t groups, int64_t d, uint32_t rows, int64_t cells)
{
    const int64_t q_shape[] = {heads, d}, k_shape[] = {groups, d};
    const int64_t cache_shape[] = {SLOTS, cells, groups, d};

    tfm__sample_begin(sample, rows, "%s, cache %s, %lld/%lld heads of %lld", tfm_dtype_name(dtype),
                      tfm_dtype_name(cache), (long long)heads, (long long)groups, (long long)d);
    sample->capacity.sequences = SLOTS;
    sample->only_nan = 1;
    struct tfm_tensor *q = tfm__sample_input(sample, "q", dtype, 3, q_shape);
    struct tfm_tensor *k = tfm__sample_input(sample, "k", dtype, 3, k_shape);
    struct tfm_tensor *v = tfm__sample_input(sample, "v", dtype, 3, k_shape);
    struct tfm_tensor *k_cache = tfm__sample_state(sample, "k_cache", cache, 4, cache_shape);
    struct tfm_tensor *v_cache = tfm__sample_state(sample, "v_cache", cache, 4, cache_shape);
    sample->special = q;
    tfm__sample_output(sample, tfm_op_gqa_attention(sample->graph, q, k, v, k_cache, v_cache, 0));
}

static const struct {
    enum tfm_dtype dtype, cache;
} types[] = {
    {TFM_DTYPE_F32, TFM_DTYPE_F32}, {TFM_DTYPE_F32, TFM_DTYPE_F16}, {TFM_DTYPE_F64, TFM_DTYPE_F64}};
static const struct {
    int64_t heads, groups, d;
} sizes[] = {{1, 1, 1}, {9, 3, 64}, {8, 2, 24}, {8, 1, 3}, {6, 6, 31}, {4, 2, 128}, {71, 1, 4}};

enum { TYPES = sizeof types / sizeof *types, SIZES = sizeof sizes / sizeof *sizes };

static void build(struct tfm__sample *sample, uint32_t i)
{
    const uint32_t s = i % SIZES;
    make(sample, types[i / SIZES].dtype, types[i / SIZES].cache, sizes[s].heads, sizes[s].groups,
         sizes[s].d, ROWS, CELLS);
}

/* ---- values before a run ---- */

static void fill_cache(struct tfm__sample *sample, const struct tfm_tensor *cache,
                       const struct tfm__check_rows *run)
{
    const size_t cell = (size_t)(cache->shape[2] * cache->shape[3]);

    memset(sample->data[cache->id], 0xff, drive_bytes(cache, cache->shape[0]));
    for (uint32_t s = 0; s < run->rows.n_seq; s++)
        tfm__sample_fill(sample, cache, 3 + s,
                         (size_t)run->slot[s] * (size_t)cache->shape[1] * cell,
                         (size_t)run->past[s] * cell, 1);
}

static void fill(struct tfm__sample *sample, const struct tfm__check_rows *run)
{
    for (int i = Q; i <= V; i++)
        tfm__sample_fill(sample, input(sample, i), 1, 0,
                         tfm__sample_count(sample, input(sample, i)), 1);
    fill_cache(sample, input(sample, K_CACHE), run);
    fill_cache(sample, input(sample, V_CACHE), run);
}

/* ---- ways ---- */

/* argument = 1000 rows + past */
static void one_sequence(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    tfm__check_rows_set(run, (uint32_t)(argument / 1000), argument % 1000);
    run->slot[0] = 1;
    fill(sample, run);
}

static void three_sequences(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    static const int32_t slot[] = {2, 0, 1}, start[] = {0, 5, 6}, past[] = {3, 40, 0};

    (void)argument;
    tfm__check_rows_set(run, 17, 0);
    run->rows.n_seq = 3;
    memcpy(run->slot, slot, sizeof slot);
    memcpy(run->start, start, sizeof start);
    memcpy(run->past, past, sizeof past);
    fill(sample, run);
}

static void an_empty_sequence(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    three_sequences(sample, run, argument);
    run->start[1] = 6; /* no rows for sequence 1 */
}

/* All keys weigh the same and a value is the number of its cell: what comes out is the mean of the
 * cells that were seen. */
static void cells_up_to_own(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    const struct tfm_tensor *v = input(sample, V), *cache = input(sample, V_CACHE);
    const size_t width = (size_t)tfm_tensor_row_elements(v);
    const size_t first = (size_t)cache->shape[1] * width; /* of slot 1 */

    one_sequence(sample, run, argument);
    tfm__sample_fill(sample, input(sample, Q), 1, 0, tfm__sample_count(sample, input(sample, Q)),
                     0);
    for (size_t i = 0; i < (run->rows.n + (size_t)run->past[0]) * width; i++) {
        const double value = (double)(i / width);
        if (i < (size_t)run->past[0] * width)
            tfm__sample_set(sample, cache, first + i, 1, &value);
        else
            tfm__sample_set(sample, v, i - (size_t)run->past[0] * width, 1, &value);
    }
}

/* A value is the number of its group: what comes out names the group that a head has read. */
static void own_group(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    const struct tfm_tensor *v = input(sample, V);
    const size_t d = (size_t)v->shape[2], groups = (size_t)v->shape[1];

    one_sequence(sample, run, argument);
    for (size_t i = 0; i < tfm__sample_count(sample, v); i++) {
        const double value = (double)(i / d % groups + 1);
        tfm__sample_set(sample, v, i, 1, &value);
    }
}

static int has_groups(const struct tfm__sample *sample)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    return node->attrs.kv_heads > 1 && node->attrs.kv_heads < node->attrs.heads;
}

static void nan_in_a_query(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    const double nan = NAN;

    one_sequence(sample, run, argument);
    tfm__sample_set(sample, input(sample, Q), (size_t)tfm_tensor_row_elements(input(sample, Q)), 1,
                    &nan);
}

static const struct tfm__check_way ways[] = {
    {"a head reads its own group", own_group, 5000, 0, 0, has_groups},
    {"a row sees the cells up to its own", cells_up_to_own, 4003, 0, 0, NULL},
    {"a prompt of 33 rows", one_sequence, 33000, 0, 0, NULL},
    {"1 row, nothing before it", one_sequence, 1000, 0, 0, NULL},
    {"1 row after 63 cells", one_sequence, 1063, 0, 0, NULL},
    {"1 row in the last cell", one_sequence, 1000 + CELLS - 1, 0, 0, NULL},
    {"9 rows after 30 cells", one_sequence, 9030, 0, 0, NULL},
    {"33 rows up to the last cell", one_sequence, 33000 + CELLS - 33, 0, 0, NULL},
    {"three sequences", three_sequences, 0, 0, 0, NULL},
    {"an empty sequence among three", an_empty_sequence, 0, 0, 0, NULL},
    {"NaN in one query", nan_in_a_query, 5002, 0, 0, NULL},
    {"no rows", one_sequence, 0, 0, 0, NULL},
    {"1 row, memory for 1", one_sequence, 1012, 1, 0, NULL},
};

/* ---- performance ---- */

/* A step after 511 cells, a prompt of 128; F32 with an F32 and an F16 cache, F64. */
static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, types[i / 2].dtype, types[i / 2].cache, 9, 3, 64, i % 2 ? 128 : 1, 512);
}

static int32_t large_past(uint32_t i)
{
    return i % 2 ? 0 : 511;
}

static double bytes(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const int64_t n = rows->n, cells = rows->past[0] + n;
    double sum = (double)drive_bytes(sample->output, n);

    for (int i = Q; i <= V; i++)
        sum += (double)drive_bytes(input(sample, i), n);
    for (int i = K_CACHE; i <= V_CACHE; i++)
        sum += (double)drive_bytes(input(sample, i), 1) * (double)cells /
               (double)input(sample, i)->shape[1];
    return sum;
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const double cells = rows->past[0] + (rows->n + 1) / 2.0; /* a row sees on average */
    return 4 * cells * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_gqa_attention = {
    .samples = TYPES * SIZES,
    .build = build,
    .ways = ways,
    .n_ways = sizeof ways / sizeof *ways,
    .large = 2 * TYPES,
    .build_large = build_large,
    .large_past = large_past,
    .operations = operations,
    .bytes = bytes,
};
