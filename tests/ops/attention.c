/* SPDX-License-Identifier: MIT
 * An attention under test, and its oracle. */
#include "tests/ops/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct attention attention;

static void build_caches(struct trial *t, const struct attention_kind *kind)
{
    attention.k_cache =
        trial_state(t, "k_cache", kind->cache, kind->slots, kind->cells, kind->groups, kind->d);
    attention.v_cache =
        trial_state(t, "v_cache", kind->cache, kind->slots, kind->cells, kind->groups, kind->d);
}

static void build_bias(struct trial *t, const struct attention_kind *kind)
{
    attention.rel_bias = trial_parameter(t, "rel_bias", kind->dtype, 2, kind->buckets, kind->heads);
    attention.rel_bucket =
        trial_buffer(t, "rel_bucket", TFM_DTYPE_I32, 1, 2 * kind->span + 1, 0, 0);
    for (int64_t i = 0; i <= 2 * kind->span; i++) {
        const double bucket = (double)((i * 7 + 3) % kind->buckets);
        trial_set(t, attention.rel_bucket, (size_t)i, 1, &bucket);
    }
}

void attention_build(struct trial *t, uint32_t rows, const struct attention_kind *kind)
{
    trial_begin(t, rows,
                "gqa_attention %s cache %s, %lld/%lld heads of %lld%s window %d cap %g bias %lld",
                tfm_dtype_name(kind->dtype), kind->cells ? tfm_dtype_name(kind->cache) : "none",
                (long long)kind->heads, (long long)kind->groups, (long long)kind->d,
                kind->bidirectional ? " bidirectional" : "", kind->window, kind->softcap,
                (long long)kind->buckets);
    t->capacity.sequences = (uint32_t)kind->slots;
    memset(&attention, 0, sizeof attention);
    attention.kind = *kind;
    attention.q = trial_input(t, "q", kind->dtype, 3, kind->heads, kind->d);
    attention.k = trial_input(t, "k", kind->dtype, 3, kind->groups, kind->d);
    attention.v = trial_input(t, "v", kind->dtype, 3, kind->groups, kind->d);
    if (kind->cells)
        build_caches(t, kind);
    if (kind->buckets)
        build_bias(t, kind);
    const struct tfm_attention config = {
        .scale = kind->scale,
        .bidirectional = kind->bidirectional,
        .window = kind->window,
        .softcap = kind->softcap,
        .k_cache = attention.k_cache,
        .v_cache = attention.v_cache,
        .rel_bias = attention.rel_bias,
        .rel_bucket = attention.rel_bucket,
    };
    trial_output(t, tfm_op_attention(t->graph, attention.q, attention.k, attention.v, &config));
    if (kind->cells) {
        memset(t->data[attention.k_cache->id], 0xff,
               tfm__drive_bytes(attention.k_cache, kind->slots));
        memset(t->data[attention.v_cache->id], 0xff,
               tfm__drive_bytes(attention.v_cache, kind->slots));
    }
}

void attention_refill(struct trial *t, uint64_t seed, double size)
{
    const struct tfm_tensor *const inputs[] = {attention.q, attention.k, attention.v};

    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < trial_count(t, inputs[k]); i++) {
            const double value =
                size * (2 * trial_random(seed * 7919 + inputs[k]->id * 104729 + i) - 1);
            trial_set(t, inputs[k], i, 1, &value);
        }
    }
}

/* ---- the oracle ---- */

static double as_cached(double value)
{
    unsigned char bytes[8];
    const enum tfm_dtype dtype = attention.k_cache->dtype;

    tfm_dtype_from_f64(dtype, &value, bytes, 0, 1);
    tfm_dtype_to_f64(dtype, bytes, 0, 1, &value);
    return value;
}

static uint32_t sequence_of(const struct tfm_rows *rows, uint32_t row)
{
    uint32_t s = rows->n_seq - 1;
    while (rows->start[s] > (int32_t)row)
        s--;
    return s;
}

/* Element e of a key or value in `cell` of a sequence: from before the run, or of this run. */
static double cell_value(const struct trial *trial, const struct tfm_rows *rows, uint32_t s,
                         int64_t cell, int64_t g, int64_t e, const struct tfm_tensor *fresh,
                         const struct tfm_tensor *cache)
{
    const int64_t G = fresh->shape[1], d = fresh->shape[2];

    if (cell < rows->past[s])
        return trial->values[cache->id][((rows->slot[s] * cache->shape[1] + cell) * G + g) * d + e];
    const int64_t row = rows->start[s] + cell - rows->past[s];
    const double value = trial->values[fresh->id][(row * G + g) * d + e];
    return cache ? as_cached(value) : value;
}

static int sees(int64_t position, int64_t cell)
{
    const struct attention_kind *kind = &attention.kind;

    if (!kind->bidirectional && cell > position)
        return 0;
    return !kind->window || llabs((long long)(cell - position)) < kind->window;
}

static double bias_of(const struct trial *trial, int64_t position, int64_t cell, int64_t h)
{
    const int64_t span = attention.kind.span;
    int64_t distance = cell - position;

    if (!attention.rel_bias)
        return 0;
    distance = distance < -span ? -span : distance > span ? span : distance;
    const int64_t bucket = (int64_t)trial->values[attention.rel_bucket->id][distance + span];
    return trial->values[attention.rel_bias->id][bucket * attention.kind.heads + h];
}

static void naive_head(const struct trial *trial, const struct tfm_rows *rows, uint32_t n,
                       int64_t h, double *weight, double *want)
{
    const struct attention_kind *kind = &attention.kind;
    const uint32_t s = sequence_of(rows, n);
    const int64_t d = kind->d, g = h / (kind->heads / kind->groups);
    const int64_t position = rows->past[s] + (int32_t)n - rows->start[s];
    const int64_t end = s + 1 < rows->n_seq ? rows->start[s + 1] : (int64_t)rows->n;
    const int64_t cells = rows->past[s] + end - rows->start[s];
    const double scale = kind->scale != 0 ? kind->scale : 1 / sqrt((double)d);
    const double *query = trial->values[attention.q->id] + (n * kind->heads + h) * d;
    double most = -INFINITY, total = 0;

    for (int64_t c = 0; c < cells; c++) {
        weight[c] = -INFINITY;
        if (!sees(position, c))
            continue;
        double score = 0;
        for (int64_t e = 0; e < d; e++)
            score += query[e] * cell_value(trial, rows, s, c, g, e, attention.k, attention.k_cache);
        score *= scale;
        if (kind->softcap > 0)
            score = kind->softcap * tanh(score / kind->softcap);
        weight[c] = score + bias_of(trial, position, c, h);
        most = fmax(most, weight[c]);
    }
    for (int64_t c = 0; c < cells; c++)
        total += weight[c] = weight[c] == -INFINITY ? 0 : exp(weight[c] - most);
    for (int64_t e = 0; e < d; e++) {
        double sum = 0;
        for (int64_t c = 0; c < cells; c++) {
            if (weight[c] > 0)
                sum += weight[c] / total *
                       cell_value(trial, rows, s, c, g, e, attention.v, attention.v_cache);
        }
        want[e] = sum;
    }
}

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t heads = attention.kind.heads, d = attention.kind.d;

    for (uint32_t n = 0; n < rows->n; n++) {
        const uint32_t s = sequence_of(rows, n);
        double *weight = calloc((size_t)rows->past[s] + rows->n, sizeof *weight);
        ck_assert_ptr_nonnull(weight);
        for (int64_t h = 0; h < heads; h++)
            naive_head(trial, rows, n, h, weight, want + (n * heads + h) * d);
        free(weight);
    }
}

/* ---- one run ---- */

/* The bytes of a cache with the rows appended. */
static unsigned char *appended(const struct trial *t, const struct tfm_rows *rows,
                               const struct tfm_tensor *fresh, const struct tfm_tensor *cache)
{
    const size_t width = (size_t)tfm_tensor_row_elements(fresh);
    const size_t cell_bytes = tfm__drive_bytes(cache, 1) / (size_t)cache->shape[1];
    const size_t bytes = tfm__drive_bytes(cache, cache->shape[0]);
    unsigned char *want = malloc(bytes);
    double *row = malloc(width * sizeof *row);

    ck_assert(want && row);
    memcpy(want, t->data[cache->id], bytes);
    for (uint32_t n = 0; n < rows->n; n++) {
        const uint32_t s = sequence_of(rows, n);
        const int64_t cell = rows->past[s] + (int32_t)n - rows->start[s];
        trial_get(t, fresh, n * width, width, row);
        tfm_dtype_from_f64(cache->dtype, row,
                           want + (size_t)(rows->slot[s] * cache->shape[1] + cell) * cell_bytes, 0,
                           width);
    }
    free(row);
    return want;
}

void attention_attend(struct trial *t, const struct tfm_rows *rows)
{
    const struct tfm_tensor *const fresh[] = {attention.k, attention.v};
    const struct tfm_tensor *const caches[] = {attention.k_cache, attention.v_cache};
    unsigned char *want[2] = {NULL, NULL};

    for (int i = 0; i < 2 && caches[i]; i++)
        want[i] = appended(t, rows, fresh[i], caches[i]);
    trial_check(t, rows, naive);
    for (int i = 0; i < 2 && caches[i]; i++) {
        ck_assert_msg(memcmp(want[i], t->data[caches[i]->id],
                             tfm__drive_bytes(caches[i], caches[i]->shape[0])) == 0,
                      "%s: '%s' is not the old one with %u rows appended", t->what, caches[i]->name,
                      rows->n);
        free(want[i]);
    }
}

void attention_attend_lengths(struct trial *t, uint32_t n, const int32_t *lengths,
                              const int32_t *past)
{
    int32_t slot[8], start[8], total = 0;

    ck_assert_uint_le(n, 8);
    for (uint32_t s = 0; s < n; s++) {
        slot[s] = (int32_t)s;
        start[s] = total;
        total += lengths[s];
    }
    const struct tfm_rows rows = {(uint32_t)total, n, 0, slot, start, past, NULL};
    attention_attend(t, &rows);
}
