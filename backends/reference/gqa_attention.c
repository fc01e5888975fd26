/* SPDX-License-Identifier: MIT
 * gqa_attention: appends k and v to the caches, then attends; see lib/ops/gqa_attention.c. Two
 * passes over the cells a query sees: the largest score, then the sum of exp and the weighted sum
 * of V. Queries that read the same kv head share the conversion of its K and V. The sums of a query
 * run over its cells in order, so that chunks of a prompt cannot change it. */
#include <math.h>

#include "backends/reference/dot.h"
#include "backends/reference/reference.h"

enum {
    HEAD_DIM_MAX = 1024,
    QUERIES = 16,  /* at most, that share a conversion */
    VALUES = 4096, /* of their q, and of their sums, on the stack; >= HEAD_DIM_MAX */
};

struct work {
    enum tfm_dtype dtype, cache_dtype;
    const void *q, *k, *v;
    void *k_cache, *v_cache, *y;
    size_t heads, groups, share, d, cells; /* H, G, H/G, d, cells of a slot */
    size_t tile;                           /* rows that are attended together */
    double scale;
    const struct tfm_rows *rows;
};

/* The query vectors of one batch: heads of one group, rows of one sequence. */
struct batch {
    size_t n, group, slot;
    size_t place[QUERIES]; /* element of q and y where the vector begins */
    size_t seen[QUERIES];  /* cells 0..seen-1 are visible */
    double q[VALUES], sum[VALUES], max[QUERIES], total[QUERIES];
};

static size_t sequence_end(const struct tfm_rows *rows, uint32_t s)
{
    return s + 1 < rows->n_seq ? (size_t)rows->start[s + 1] : rows->n;
}

/* Sequence of a row; sequences without rows own none. */
static uint32_t sequence_of(const struct tfm_rows *rows, size_t row)
{
    uint32_t low = 0, high = rows->n_seq - 1;

    while (low < high) { /* the last one that starts at or before the row */
        const uint32_t middle = low + (high - low + 1) / 2;
        if ((size_t)rows->start[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static size_t position_of(const struct tfm_rows *rows, uint32_t s, size_t row)
{
    return (size_t)rows->past[s] + (row - (size_t)rows->start[s]);
}

static size_t cache_place(const struct work *w, size_t slot, size_t cell, size_t group)
{
    return ((slot * w->cells + cell) * w->groups + group) * w->d;
}

static void convert(enum tfm_dtype from, const void *src, size_t src_first, enum tfm_dtype to,
                    void *dst, size_t dst_first, size_t n)
{
    double values[TFM__REFERENCE_CHUNK];

    for (size_t first = 0; first < n; first += TFM__REFERENCE_CHUNK) {
        const size_t length = tfm__reference_length(n, first);
        tfm_dtype_to_f64(from, src, src_first + first, length, values);
        tfm_dtype_from_f64(to, values, dst, dst_first + first, length);
    }
}

static void append_rows(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    const size_t width = w->groups * w->d;

    for (size_t row = begin; row < end; row++) {
        const uint32_t s = sequence_of(w->rows, row);
        const size_t cell = position_of(w->rows, s, row);
        const size_t place = cache_place(w, (size_t)w->rows->slot[s], cell, 0);
        convert(w->dtype, w->k, row * width, w->cache_dtype, w->k_cache, place, width);
        convert(w->dtype, w->v, row * width, w->cache_dtype, w->v_cache, place, width);
    }
}

static void attend_batch(const struct work *w, struct batch *b)
{
    double k[HEAD_DIM_MAX], v[HEAD_DIM_MAX];
    size_t cells = 0;

    for (size_t i = 0; i < b->n; i++) {
        tfm_dtype_to_f64(w->dtype, w->q, b->place[i], w->d, b->q + i * w->d);
        b->max[i] = -INFINITY;
        b->total[i] = 0;
        cells = b->seen[i] > cells ? b->seen[i] : cells;
    }
    for (size_t i = 0; i < b->n * w->d; i++)
        b->sum[i] = 0;
    for (size_t cell = 0; cell < cells; cell++) {
        tfm_dtype_to_f64(w->cache_dtype, w->k_cache, cache_place(w, b->slot, cell, b->group), w->d,
                         k);
        for (size_t i = 0; i < b->n; i++) {
            if (cell < b->seen[i])
                b->max[i] =
                    fmax(b->max[i], tfm__reference_dot(b->q + i * w->d, k, w->d) * w->scale);
        }
    }
    for (size_t cell = 0; cell < cells; cell++) {
        const size_t place = cache_place(w, b->slot, cell, b->group);
        tfm_dtype_to_f64(w->cache_dtype, w->k_cache, place, w->d, k);
        tfm_dtype_to_f64(w->cache_dtype, w->v_cache, place, w->d, v);
        for (size_t i = 0; i < b->n; i++) {
            double *sum = b->sum + i * w->d;
            if (cell >= b->seen[i])
                continue;
            const double score = tfm__reference_dot(b->q + i * w->d, k, w->d) * w->scale;
            const double weight = exp(score - b->max[i]);
            b->total[i] += weight;
            for (size_t e = 0; e < w->d; e++)
                sum[e] += weight * v[e];
        }
    }
    for (size_t i = 0; i < b->n; i++) {
        double *sum = b->sum + i * w->d;
        for (size_t e = 0; e < w->d; e++)
            sum[e] /= b->total[i];
        tfm_dtype_from_f64(w->dtype, sum, w->y, b->place[i], w->d);
    }
}

/* Rows row..end of sequence s, heads of one group. */
static void attend_rows(const struct work *w, uint32_t s, size_t row, size_t end, size_t group)
{
    const size_t fit = VALUES / w->d, most = fit < QUERIES ? fit : QUERIES;
    struct batch b; /* large: only what is set is read */

    b.n = 0;
    b.group = group;
    b.slot = (size_t)w->rows->slot[s];

    for (; row < end; row++) {
        for (size_t h = group * w->share; h < (group + 1) * w->share; h++) {
            b.place[b.n] = (row * w->heads + h) * w->d;
            b.seen[b.n] = position_of(w->rows, s, row) + 1;
            if (++b.n == most) {
                attend_batch(w, &b);
                b.n = 0;
            }
        }
    }
    if (b.n > 0)
        attend_batch(w, &b);
}

/* Index = tile of rows, then group. A tile may hold rows of several sequences. */
static void attend_tiles(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t index = begin; index < end; index++) {
        size_t row = index / w->groups * w->tile;
        const size_t last = w->rows->n - row < w->tile ? w->rows->n : row + w->tile;
        while (row < last) {
            const uint32_t s = sequence_of(w->rows, row);
            const size_t stop = sequence_end(w->rows, s);
            const size_t part = stop < last ? stop : last;
            attend_rows(w, s, row, part, index % w->groups);
            row = part;
        }
    }
}

/* The core has checked the same; this keeps a wrong caller from writing outside the caches. */
static enum tfm_status check_rows(const struct tfm__reference_call *call, int64_t slots,
                                  int64_t cells)
{
    const struct tfm_rows *rows = call->rows;

    if (rows->n > 0 && (rows->n_seq == 0 || rows->start[0] != 0))
        return call->host->error(call->err, TFM_STATUS_INVALID_ARGUMENT,
                                 "gqa_attention: %u rows, but no sequence starts at row 0",
                                 rows->n);
    for (uint32_t s = 0; s < rows->n_seq; s++) {
        const int64_t start = rows->start[s];
        const int64_t end = s + 1 < rows->n_seq ? rows->start[s + 1] : (int64_t)rows->n;
        if (start < 0 || end < start || end > (int64_t)rows->n)
            return call->host->error(call->err, TFM_STATUS_INVALID_ARGUMENT,
                                     "gqa_attention: sequence %u has rows %lld..%lld of %u", s,
                                     (long long)start, (long long)end, rows->n);
        if (rows->slot[s] < 0 || rows->slot[s] >= slots)
            return call->host->error(
                call->err, TFM_STATUS_OUT_OF_RANGE,
                "gqa_attention: slot %d of sequence %u does not lie in 0..%lld", rows->slot[s], s,
                (long long)slots - 1);
        if (rows->past[s] < 0)
            return call->host->error(call->err, TFM_STATUS_OUT_OF_RANGE,
                                     "gqa_attention: past %d of sequence %u is negative",
                                     rows->past[s], s);
        if (rows->past[s] + (end - start) > cells)
            return call->host->error(
                call->err, TFM_STATUS_CONTEXT_FULL,
                "gqa_attention: sequence %u has %d cells and %lld new rows, but a slot holds %lld",
                s, rows->past[s], (long long)(end - start), (long long)cells);
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__reference_gqa_attention(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *q = call->node->inputs[0], *k = call->node->inputs[1];
    const struct tfm_tensor *cache = call->node->inputs[3];
    const double scale = call->node->attrs.scale;
    struct work w = {
        .dtype = q->dtype,
        .cache_dtype = cache->dtype,
        .q = tfm__reference_input(call, 0),
        .k = tfm__reference_input(call, 1),
        .v = tfm__reference_input(call, 2),
        .k_cache = (void *)tfm__reference_input(call, 3),
        .v_cache = (void *)tfm__reference_input(call, 4),
        .y = tfm__reference_output(call, 0),
        .heads = (size_t)q->shape[1],
        .groups = (size_t)k->shape[1],
        .share = (size_t)(q->shape[1] / k->shape[1]),
        .d = (size_t)q->shape[2],
        .cells = (size_t)cache->shape[1],
        .scale = scale != 0 ? scale : 1.0 / sqrt((double)q->shape[2]),
        .rows = call->rows,
    };
    const enum tfm_status status = check_rows(call, cache->shape[0], cache->shape[1]);

    if (status != TFM_STATUS_OK || call->rows->n == 0)
        return status;
    w.tile = w.share < QUERIES ? QUERIES / w.share : 1;
    call->host->parallel_for(call->rows->n, append_rows, &w);
    call->host->parallel_for((call->rows->n + w.tile - 1) / w.tile * w.groups, attend_tiles, &w);
    return TFM_STATUS_OK;
}
