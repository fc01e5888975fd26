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

static int has_cache(const struct tfm__sample *sample)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    return node->n_inputs > K_CACHE && node->inputs[K_CACHE];
}

struct kind {
    enum tfm_dtype dtype, cache;
    int64_t heads, groups, d;
    int64_t cells; /* 0 = without caches */
    int bidirectional, window;
    double softcap, scale;
    int64_t buckets, span; /* of the relative bias; 0 = none */
    const char *text;
};

static void add_bias(struct tfm__sample *sample, const struct kind *kind,
                     struct tfm_attention *config)
{
    const int64_t bias_shape[] = {kind->buckets, kind->heads},
                  bucket_shape[] = {2 * kind->span + 1};

    config->rel_bias = tfm__sample_parameter(sample, "rel_bias", kind->dtype, 2, bias_shape);
    config->rel_bucket = tfm__sample_buffer(sample, "rel_bucket", TFM_DTYPE_I32, 1, bucket_shape);
    for (size_t i = 0; i < tfm__sample_count(sample, config->rel_bucket); i++) {
        const double bucket = (double)(i * 7 % (size_t)kind->buckets);
        tfm__sample_set(sample, config->rel_bucket, i, 1, &bucket);
    }
}

static void make(struct tfm__sample *sample, const struct kind *kind, uint32_t rows, int lse)
{
    struct tfm_tensor *second = NULL;
    const int64_t q_shape[] = {kind->heads, kind->d}, k_shape[] = {kind->groups, kind->d};
    const int64_t cache_shape[] = {SLOTS, kind->cells, kind->groups, kind->d};
    struct tfm_attention config = {.scale = kind->scale,
                                   .bidirectional = kind->bidirectional,
                                   .window = kind->window,
                                   .softcap = kind->softcap,
                                   .lse = lse ? &second : NULL};

    tfm__sample_begin(sample, rows, "%s, %s%s, %lld/%lld heads of %lld%s%s",
                      tfm_dtype_name(kind->dtype), kind->cells ? "cache " : "no cache",
                      kind->cells ? tfm_dtype_name(kind->cache) : "", (long long)kind->heads,
                      (long long)kind->groups, (long long)kind->d, kind->text, lse ? ", lse" : "");
    sample->capacity.sequences = SLOTS;
    sample->only_nan = 1;
    struct tfm_tensor *q = tfm__sample_input(sample, "q", kind->dtype, 3, q_shape);
    struct tfm_tensor *k = tfm__sample_input(sample, "k", kind->dtype, 3, k_shape);
    struct tfm_tensor *v = tfm__sample_input(sample, "v", kind->dtype, 3, k_shape);
    if (kind->cells) {
        config.k_cache = tfm__sample_state(sample, "k_cache", kind->cache, 4, cache_shape);
        config.v_cache = tfm__sample_state(sample, "v_cache", kind->cache, 4, cache_shape);
    }
    if (kind->buckets)
        add_bias(sample, kind, &config);
    sample->special = q;
    tfm__sample_output(sample, tfm_op_attention(sample->graph, q, k, v, &config));
}

#define F32_F32 TFM_DTYPE_F32, TFM_DTYPE_F32
#define F32_F16 TFM_DTYPE_F32, TFM_DTYPE_F16
#define F64_F64 TFM_DTYPE_F64, TFM_DTYPE_F64
static const struct kind kinds[] = {
    /* what every attention must do */
    {F32_F32, 1, 1, 1, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 9, 3, 64, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 8, 2, 24, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 8, 1, 3, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 6, 6, 31, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 4, 2, 128, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 8, 2, 16, CELLS, 0, 0, 0, 0.5, 0, 0, ", scale 0.5"},
    {F32_F16, 1, 1, 1, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F16, 9, 3, 64, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F16, 8, 2, 24, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F16, 6, 6, 31, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F32_F16, 71, 1, 4, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F64_F64, 9, 3, 64, CELLS, 0, 0, 0, 0, 0, 0, ""},
    {F64_F64, 8, 1, 3, CELLS, 0, 0, 0, 0, 0, 0, ""},
    /* ABI minor 1 */
    {F32_F32, 9, 3, 16, CELLS, 0, 7, 0, 0, 0, 0, ", window 7"},
    {F32_F16, 8, 2, 24, CELLS, 0, 1, 0, 0, 0, 0, ", window 1"},
    {F32_F32, 8, 2, 24, CELLS, 1, 0, 0, 0, 0, 0, ", bidirectional"},
    {F32_F16, 6, 3, 8, CELLS, 1, 9, 0, 0, 0, 0, ", bidirectional, window 9"},
    {F32_F32, 8, 4, 16, CELLS, 0, 0, 2, 1, 0, 0, ", softcap 2"},
    {F32_F32, 6, 2, 16, CELLS, 0, 0, 0, 0, 8, 5, ", relative bias"},
    {F32_F32, 9, 3, 16, 0, 0, 0, 0, 0, 0, 0, ""},
    {F32_F32, 8, 2, 31, 0, 1, 0, 0, 0, 0, 0, ", bidirectional"},
    {F32_F32, 4, 4, 8, 0, 1, 5, 3, 0, 16, 40,
     ", bidirectional, window 5, softcap 3, relative bias"},
    {F64_F64, 6, 2, 16, CELLS, 1, 9, 2, 0, 8, 5,
     ", bidirectional, window 9, softcap 2, relative bias"},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* The kinds without caches once more, with lse. */
static const uint32_t with_lse[] = {20, 21, 22};
enum { WITH_LSE = sizeof with_lse / sizeof *with_lse };

static void build(struct tfm__sample *sample, uint32_t i)
{
    if (i < KINDS)
        make(sample, &kinds[i], ROWS, 0);
    else
        make(sample, &kinds[with_lse[i - KINDS]], ROWS, 1);
}

/* ---- values before a run ---- */

static void fill_cache(struct tfm__sample *sample, const struct tfm_tensor *cache,
                       const struct tfm__check_rows *run)
{
    const size_t cell = (size_t)(cache->shape[2] * cache->shape[3]);

    memset(sample->data[cache->id], 0xff, tfm__drive_bytes(cache, cache->shape[0]));
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
    for (int i = K_CACHE; i <= V_CACHE && has_cache(sample); i++)
        fill_cache(sample, input(sample, i), run);
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
    if (has_cache(sample))
        memcpy(run->past, past, sizeof past);
    fill(sample, run);
}

static void an_empty_sequence(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    three_sequences(sample, run, argument);
    run->start[1] = 6; /* no rows for sequence 1 */
}

/* All keys weigh the same and a value is the number of its cell: what comes out is the mean of the
 * cells that were seen (without a bias). */
static void cells_up_to_own(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    const struct tfm_tensor *v = input(sample, V);
    const struct tfm_tensor *cache = has_cache(sample) ? input(sample, V_CACHE) : NULL;
    const size_t width = (size_t)tfm_tensor_row_elements(v);
    const size_t first = cache ? (size_t)cache->shape[1] * width : 0; /* of slot 1 */

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

static int is_plain(const struct tfm__sample *sample)
{
    const struct tfm_attrs *attrs = &tfm_graph_node(sample->graph, 0)->attrs;
    return has_cache(sample) && !attrs->bidirectional && !attrs->window;
}

static int is_other(const struct tfm__sample *sample)
{
    return has_cache(sample) && !is_plain(sample);
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
    {"a row sees the cells up to its own", cells_up_to_own, 4003, 0, 0, is_plain},
    {"a row sees the cells that it may", cells_up_to_own, 14003, 0, 0, is_other},
    {"a row sees the rows that it may", cells_up_to_own, 14000, 0, 0, NULL},
    {"a prompt of 33 rows", one_sequence, 33000, 0, 0, NULL},
    {"1 row, nothing before it", one_sequence, 1000, 0, 0, NULL},
    {"1 row after 63 cells", one_sequence, 1063, 0, 0, has_cache},
    {"1 row in the last cell", one_sequence, 1000 + CELLS - 1, 0, 0, has_cache},
    {"9 rows after 30 cells", one_sequence, 9030, 0, 0, has_cache},
    {"33 rows up to the last cell", one_sequence, 33000 + CELLS - 33, 0, 0, has_cache},
    {"three sequences", three_sequences, 0, 0, 0, NULL},
    {"an empty sequence among three", an_empty_sequence, 0, 0, 0, NULL},
    {"NaN in one query", nan_in_a_query, 5000, 0, 0, NULL},
    {"no rows", one_sequence, 0, 0, 0, NULL},
    {"1 row after 12 cells, memory for 1", one_sequence, 1012, 1, 0, has_cache},
};

/* ---- performance ---- */

/* A step after 511 cells, a prompt of 128; F32 with an F32 and an F16 cache, F64; a prompt without. */
static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const struct kind large[] = {{F32_F32, 9, 3, 64, 512, 0, 0, 0, 0, 0, 0, ""},
                                        {F32_F16, 9, 3, 64, 512, 0, 0, 0, 0, 0, 0, ""},
                                        {F64_F64, 9, 3, 64, 512, 0, 0, 0, 0, 0, 0, ""},
                                        {F32_F32, 9, 3, 64, 0, 0, 0, 0, 0, 0, 0, ""}};
    make(sample, &large[i / 2], i % 2 ? 128 : 1, 0);
}

static int32_t large_past(uint32_t i)
{
    return i % 2 || i / 2 == 3 ? 0 : 511;
}

static double bytes(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const int64_t n = rows->n, cells = rows->past[0] + n;
    double sum = (double)tfm__drive_bytes(sample->outputs[0], n);

    for (int i = Q; i <= V; i++)
        sum += (double)tfm__drive_bytes(input(sample, i), n);
    for (int i = K_CACHE; i <= V_CACHE && has_cache(sample); i++)
        sum += (double)tfm__drive_bytes(input(sample, i), 1) * (double)cells /
               (double)input(sample, i)->shape[1];
    return sum;
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const double cells = rows->past[0] + (rows->n + 1) / 2.0; /* a row sees on average */
    return 4 * cells * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_gqa_attention = {
    .samples = KINDS + WITH_LSE,
    .build = build,
    .ways = ways,
    .n_ways = sizeof ways / sizeof *ways,
    .large = 8,
    .build_large = build_large,
    .large_past = large_past,
    .operations = operations,
    .bytes = bytes,
};
