/* SPDX-License-Identifier: MIT
 * attention_grad for the checker: masks, a soft cap, a relative bias with and without its gradient, groups of every
 * kind. lse is what the scores give at least, so that no probability is out of range. */
#include <math.h>
#include <string.h>

#include <tfm/grad.h>

#include "lib/check/op.h"

enum { ROWS = 130 };

struct kind {
    enum tfm_dtype dtype;
    int64_t heads, groups, d;
    int bidirectional, window;
    double softcap, scale;
    int64_t buckets, span; /* of the relative bias; 0 = none */
    int trained;           /* the bias */
    const char *text;
};

static const struct kind kinds[] = {
    {TFM_DTYPE_F32, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, ""},
    {TFM_DTYPE_F32, 9, 3, 64, 0, 0, 0, 0, 0, 0, 0, ""},
    {TFM_DTYPE_F32, 8, 1, 3, 0, 0, 0, 0, 0, 0, 0, ""},
    {TFM_DTYPE_F32, 3, 3, 31, 0, 0, 0, 0.5, 0, 0, 0, ", scale 0.5"},
    {TFM_DTYPE_F32, 4, 2, 65, 1, 0, 0, 0, 0, 0, 0, ", bidirectional"},
    {TFM_DTYPE_F32, 4, 2, 16, 0, 7, 0, 0, 0, 0, 0, ", window 7"},
    {TFM_DTYPE_F32, 2, 1, 8, 1, 70, 0, 0, 0, 0, 0, ", bidirectional, window 70"},
    {TFM_DTYPE_F32, 4, 4, 16, 0, 0, 2, 1, 0, 0, 0, ", softcap 2"},
    {TFM_DTYPE_F32, 6, 2, 16, 0, 0, 0, 0, 8, 5, 1, ", relative bias"},
    {TFM_DTYPE_F32, 2, 2, 8, 1, 9, 3, 0, 16, 40, 1,
     ", bidirectional, window 9, softcap 3, relative bias"},
    {TFM_DTYPE_F32, 6, 2, 8, 1, 0, 2, 0, 8, 5, 1, ", bidirectional, softcap 2, relative bias"},
    {TFM_DTYPE_F32, 3, 1, 8, 0, 0, 0, 0, 1, 0, 1, ", relative bias of one distance"},
    {TFM_DTYPE_F32, 2, 1, 8, 0, 0, 0, 0, 4, 3, 0, ", frozen relative bias"},
    {TFM_DTYPE_F64, 6, 2, 16, 1, 9, 2, 0, 8, 5, 1,
     ", bidirectional, window 9, softcap 2, relative bias"},
    {TFM_DTYPE_F64, 4, 1, 7, 0, 0, 0, 0, 0, 0, 0, ""},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void add_bias(struct tfm__sample *sample, const struct kind *kind,
                     struct tfm_attention *config)
{
    const int64_t bias_shape[] = {kind->buckets, kind->heads},
                  bucket_shape[] = {2 * kind->span + 1};

    config->rel_bias = kind->trained
                           ? tfm__sample_trainable(sample, "rel_bias", kind->dtype, 2, bias_shape)
                           : tfm__sample_parameter(sample, "rel_bias", kind->dtype, 2, bias_shape);
    config->rel_bucket = tfm__sample_buffer(sample, "rel_bucket", TFM_DTYPE_I32, 1, bucket_shape);
    for (size_t i = 0; i < tfm__sample_count(sample, config->rel_bucket); i++) {
        const double bucket = (double)(i * 7 % (size_t)kind->buckets);
        tfm__sample_set(sample, config->rel_bucket, i, 1, &bucket);
    }
}

static void make(struct tfm__sample *sample, const struct kind *kind, uint32_t rows)
{
    const int64_t q_shape[] = {kind->heads, kind->d}, k_shape[] = {kind->groups, kind->d};
    struct tfm_attention config = {.scale = kind->scale,
                                   .bidirectional = kind->bidirectional,
                                   .window = kind->window,
                                   .softcap = kind->softcap};
    struct tfm_tensor *dbias = NULL, *dk, *dv;

    tfm__sample_begin(sample, rows, "%s, %lld/%lld heads of %lld%s", tfm_dtype_name(kind->dtype),
                      (long long)kind->heads, (long long)kind->groups, (long long)kind->d,
                      kind->text);
    sample->capacity.sequences = TFM__CHECK_SEQUENCES;
    struct tfm_tensor *q = tfm__sample_input(sample, "q", kind->dtype, 3, q_shape);
    struct tfm_tensor *k = tfm__sample_input(sample, "k", kind->dtype, 3, k_shape);
    struct tfm_tensor *v = tfm__sample_input(sample, "v", kind->dtype, 3, k_shape);
    struct tfm_tensor *dy = tfm__sample_input(sample, "dy", kind->dtype, 3, q_shape);
    struct tfm_tensor *lse = tfm__sample_input(sample, "lse", kind->dtype, 2, q_shape);
    if (kind->buckets)
        add_bias(sample, kind, &config);
    if (kind->trained)
        dbias = tfm__sample_sum(sample, "drel_bias", kind->dtype, 2,
                                (const int64_t[]){kind->buckets, kind->heads});
    for (size_t i = 0; i < tfm__sample_count(sample, lse); i++) {
        /* the first rows see few cells; every seventh query saw nothing */
        const double about = i % 7 == 5 ? -INFINITY : 3 + tfm__sample_random(i);
        tfm__sample_set(sample, lse, i, 1, &about);
    }
    tfm__sample_output(
        sample, tfm_op_attention_grad(sample->graph, q, k, v, dy, lse, &config, dbias, &dk, &dv));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    make(sample, &kinds[i], ROWS);
}

static void one_sequence(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    (void)sample;
    tfm__check_rows_set(run, (uint32_t)n, 0);
}

static void three_sequences(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    static const int32_t slot[] = {2, 0, 1};
    const int32_t start[] = {0, argument, 75};

    (void)sample;
    tfm__check_rows_set(run, ROWS, 0);
    run->rows.n_seq = 3;
    memcpy(run->slot, slot, sizeof slot);
    memcpy(run->start, start, sizeof start);
}

/* Few enough for a simulator, and still more than one tile. */
static void short_sequences(struct tfm__sample *sample, struct tfm__check_rows *run, int argument)
{
    three_sequences(sample, run, argument);
    run->rows.n = 40;
    run->start[2] = 38;
}

static const struct tfm__check_way ways[] = {
    {"130 rows", one_sequence, 130, 0, 0, NULL},
    {"1 row", one_sequence, 1, 0, 0, NULL},
    {"33 rows", one_sequence, 33, 0, 0, NULL},
    {"64 rows", one_sequence, 64, 0, 0, NULL},
    {"three sequences", three_sequences, 5, 0, 0, NULL},
    {"three short sequences", short_sequences, 5, 0, 0, NULL},
    {"an empty sequence among three", three_sequences, 75, 0, 0, NULL},
    {"no rows", one_sequence, 0, 0, 0, NULL},
    {"3 rows, memory for 3", one_sequence, 3, 3, 0, NULL},
};

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const struct kind large[] = {{TFM_DTYPE_F32, 8, 4, 32, 0, 0, 0, 0, 0, 0, 0, ""},
                                        {TFM_DTYPE_F32, 9, 3, 64, 0, 0, 0, 0, 0, 0, 0, ""}};
    make(sample, &large[i], 256);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_tensor *q = tfm_graph_node(sample->graph, 0)->inputs[0];
    return 10 * ((rows->n + 1) / 2.0) * rows->n * (double)tfm_tensor_row_elements(q);
}

const struct tfm__check_op tfm__check_op_attention_grad = {
    .samples = KINDS,
    .build = build,
    .ways = ways,
    .n_ways = sizeof ways / sizeof *ways,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
};
