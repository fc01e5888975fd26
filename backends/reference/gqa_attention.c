/* SPDX-License-Identifier: MIT
 * gqa_attention: appends k and v to the caches, if there are any, then attends; see
 * lib/ops/gqa_attention.c. Two passes over the cells a query sees: the largest score, then the sum of
 * exp and the weighted sum of V. Queries that read the same kv head share the conversion of its K and
 * V. The sums of a query run over its cells in order, so that chunks of a prompt cannot change it. */
#include <math.h>

#include "backends/reference/dot.h"
#include "backends/reference/reference.h"
#include "backends/reference/sequences.h"

enum {
    HEAD_DIM_MAX = 1024,
    QUERIES = 16,  /* at most, that share a conversion */
    VALUES = 4096, /* of their q, and of their sums, on the stack; >= HEAD_DIM_MAX */
};

/* Keys and values lie in cells: of a cache, or, without one, the rows of this run themselves. */
struct work {
    enum tfm_dtype dtype, kv_dtype;
    const void *q, *k, *v; /* inputs */
    const void *keys, *values;
    void *k_cache, *v_cache;        /* NULL without caches */
    const void *bias, *bucket;      /* NULL without relative bias */
    void *y, *lse;                  /* lse NULL = not asked for */
    size_t heads, groups, share, d; /* H, G, H/G, d */
    size_t cells;                   /* of a slot */
    size_t tile;                    /* rows that are attended together */
    double scale, softcap;
    int bidirectional;
    size_t window; /* 0 = all */
    int64_t span;  /* M of rel_bucket [2 M + 1] */
    const struct tfm_rows *rows;
};

/* The query vectors of one batch: heads of one group, rows of one sequence. */
struct batch {
    size_t n, group;
    size_t origin;                       /* element where cell 0 of the sequence begins */
    size_t place[QUERIES];               /* element of q and y where the vector begins */
    size_t head[QUERIES], own[QUERIES];  /* own: the cell of its position */
    size_t first[QUERIES], end[QUERIES]; /* cells first..end-1 are visible */
    double q[VALUES], sum[VALUES], max[QUERIES], total[QUERIES];
};

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
        const uint32_t s = tfm__reference_sequence_of(w->rows, row);
        const size_t cell = tfm__reference_position(w->rows, s, row);
        const size_t place = ((size_t)w->rows->slot[s] * w->cells + cell) * width;
        convert(w->dtype, w->k, row * width, w->kv_dtype, w->k_cache, place, width);
        convert(w->dtype, w->v, row * width, w->kv_dtype, w->v_cache, place, width);
    }
}

static double score_of(const struct work *w, const struct batch *b, size_t i, size_t cell,
                       const double *k)
{
    double score = tfm__reference_dot(b->q + i * w->d, k, w->d) * w->scale;

    if (w->softcap > 0)
        score = w->softcap * tanh(score / w->softcap);
    if (w->bias) {
        const int64_t far = (int64_t)cell - (int64_t)b->own[i];
        const int64_t distance = far < -w->span ? -w->span : far > w->span ? w->span : far;
        const int32_t bucket = tfm__reference_i32(w->bucket, (size_t)(distance + w->span));
        double bias;
        tfm_dtype_to_f64(w->dtype, w->bias, (size_t)bucket * w->heads + b->head[i], 1, &bias);
        score += bias;
    }
    return score;
}

static int sees(const struct batch *b, size_t i, size_t cell)
{
    return cell >= b->first[i] && cell < b->end[i];
}

static void attend_batch(const struct work *w, struct batch *b)
{
    double k[HEAD_DIM_MAX], v[HEAD_DIM_MAX];
    size_t first = b->first[0], end = 0;

    for (size_t i = 0; i < b->n; i++) {
        tfm_dtype_to_f64(w->dtype, w->q, b->place[i], w->d, b->q + i * w->d);
        b->max[i] = -INFINITY;
        b->total[i] = 0;
        first = b->first[i] < first ? b->first[i] : first;
        end = b->end[i] > end ? b->end[i] : end;
    }
    for (size_t i = 0; i < b->n * w->d; i++)
        b->sum[i] = 0;
    for (size_t cell = first; cell < end; cell++) {
        const size_t place = b->origin + (cell * w->groups + b->group) * w->d;
        tfm_dtype_to_f64(w->kv_dtype, w->keys, place, w->d, k);
        for (size_t i = 0; i < b->n; i++) {
            if (sees(b, i, cell))
                b->max[i] = fmax(b->max[i], score_of(w, b, i, cell, k));
        }
    }
    for (size_t cell = first; cell < end; cell++) {
        const size_t place = b->origin + (cell * w->groups + b->group) * w->d;
        tfm_dtype_to_f64(w->kv_dtype, w->keys, place, w->d, k);
        tfm_dtype_to_f64(w->kv_dtype, w->values, place, w->d, v);
        for (size_t i = 0; i < b->n; i++) {
            double *sum = b->sum + i * w->d;
            if (!sees(b, i, cell))
                continue;
            const double score = score_of(w, b, i, cell, k);
            if (score == -INFINITY) /* masked, also when all are: -inf minus -inf is NaN */
                continue;
            const double weight = exp(score - b->max[i]);
            b->total[i] += weight;
            for (size_t e = 0; e < w->d; e++)
                sum[e] += weight * v[e];
        }
    }
    for (size_t i = 0; i < b->n; i++) {
        double *sum = b->sum + i * w->d;
        for (size_t e = 0; e < w->d; e++)
            sum[e] = b->total[i] == 0 ? 0 : sum[e] / b->total[i];
        tfm_dtype_from_f64(w->dtype, sum, w->y, b->place[i], w->d);
        if (w->lse) {
            const double lse = b->max[i] + log(b->total[i]); /* nothing: -inf + log 0 */
            tfm_dtype_from_f64(w->dtype, &lse, w->lse, b->place[i] / w->d, 1);
        }
    }
}

/* Cells that row `row` of sequence s sees, into query i. */
static void look(const struct work *w, struct batch *b, size_t i, uint32_t s, size_t row)
{
    const size_t own = tfm__reference_position(w->rows, s, row);
    const size_t all = tfm__reference_position(w->rows, s, tfm__reference_sequence_end(w->rows, s));

    b->own[i] = own;
    b->first[i] = 0;
    b->end[i] = w->bidirectional ? all : own + 1;
    if (w->window) {
        b->first[i] = own >= w->window ? own - w->window + 1 : 0;
        b->end[i] = b->end[i] < own + w->window ? b->end[i] : own + w->window;
    }
}

/* Rows row..end of sequence s, heads of one group. */
static void attend_rows(const struct work *w, uint32_t s, size_t row, size_t end, size_t group)
{
    const size_t fit = VALUES / w->d, most = fit < QUERIES ? fit : QUERIES;
    const size_t cell =
        w->k_cache ? (size_t)w->rows->slot[s] * w->cells : (size_t)w->rows->start[s];
    struct batch b; /* large: only what is set is read */

    b.n = 0;
    b.group = group;
    b.origin = cell * w->groups * w->d;

    for (; row < end; row++) {
        for (size_t h = group * w->share; h < (group + 1) * w->share; h++) {
            b.place[b.n] = (row * w->heads + h) * w->d;
            b.head[b.n] = h;
            look(w, &b, b.n, s, row);
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
            const uint32_t s = tfm__reference_sequence_of(w->rows, row);
            const size_t stop = tfm__reference_sequence_end(w->rows, s);
            const size_t part = stop < last ? stop : last;
            attend_rows(w, s, row, part, index % w->groups);
            row = part;
        }
    }
}

static const struct tfm_tensor *optional(const struct tfm__reference_call *call, uint32_t input)
{
    return input < call->node->n_inputs ? call->node->inputs[input] : NULL;
}

enum tfm_status tfm__reference_gqa_attention(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *q = call->node->inputs[0], *k = call->node->inputs[1];
    const struct tfm_tensor *cache = optional(call, 3), *bias = optional(call, 5);
    const struct tfm_attrs *attrs = &call->node->attrs;
    struct work w = {
        .dtype = q->dtype,
        .kv_dtype = cache ? cache->dtype : k->dtype,
        .q = tfm__reference_input(call, 0),
        .k = tfm__reference_input(call, 1),
        .v = tfm__reference_input(call, 2),
        .y = tfm__reference_output(call, 0),
        .lse = call->node->n_outputs > 1 ? tfm__reference_output(call, 1) : NULL,
        .heads = (size_t)q->shape[1],
        .groups = (size_t)k->shape[1],
        .share = (size_t)(q->shape[1] / k->shape[1]),
        .d = (size_t)q->shape[2],
        .scale = attrs->scale != 0 ? attrs->scale : 1.0 / sqrt((double)q->shape[2]),
        .softcap = attrs->softcap,
        .bidirectional = attrs->bidirectional,
        .window = (size_t)attrs->window,
        .rows = call->rows,
    };
    enum tfm_status status = tfm__reference_check_rows(call, cache);

    w.keys = w.k;
    w.values = w.v;
    if (cache) {
        w.keys = w.k_cache = (void *)tfm__reference_input(call, 3);
        w.values = w.v_cache = (void *)tfm__reference_input(call, 4);
        w.cells = (size_t)cache->shape[1];
    }
    if (bias) {
        const int64_t distances = call->node->inputs[6]->shape[0];
        w.bias = tfm__reference_input(call, 5);
        w.bucket = tfm__reference_input(call, 6);
        w.span = distances / 2;
        if (status == TFM_STATUS_OK && call->rows->n > 0)
            status = tfm__reference_check_ids(call, 6, (size_t)distances, bias->shape[0]);
    }
    if (status != TFM_STATUS_OK || call->rows->n == 0)
        return status;
    w.tile = w.share < QUERIES ? QUERIES / w.share : 1;
    if (cache)
        call->host->parallel_for(call->rows->n, append_rows, &w);
    call->host->parallel_for((call->rows->n + w.tile - 1) / w.tile * w.groups, attend_tiles, &w);
    return TFM_STATUS_OK;
}
