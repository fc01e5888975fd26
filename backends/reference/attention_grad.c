/* SPDX-License-Identifier: MIT
 * attention_grad: see lib/ops/attention_grad.c. First each row and head: delta and dq; then each cell and kv head: dk
 * and dv, over the rows in order; then each head: drel_bias. Every sum belongs to one thread. */
#include <math.h>

#include "backends/reference/dot.h"
#include "backends/reference/reference.h"
#include "backends/reference/sequences.h"

enum { HEAD_DIM_MAX = 1024, BUCKETS = 256 };

struct work {
    enum tfm_dtype dtype;
    const void *q, *k, *v, *dy, *lse, *bias, *bucket; /* bias, bucket: NULL without */
    void *dq, *dk, *dv, *delta, *dbias;               /* dbias may be NULL */
    size_t heads, groups, share, d, buckets;
    double scale, softcap;
    int bidirectional;
    size_t window;
    int64_t span;
    const struct tfm_rows *rows;
};

/* A row and one of its heads. */
struct query {
    size_t row, head, first_row; /* of its sequence */
    size_t begin, end;           /* rows that it sees */
    double lse, delta;
    double q[HEAD_DIM_MAX], dy[HEAD_DIM_MAX];
};

static double one(const struct work *w, const void *data, size_t i)
{
    double value;
    tfm_dtype_to_f64(w->dtype, data, i, 1, &value);
    return value;
}

static void look(const struct work *w, struct query *x, size_t row, uint32_t s)
{
    const size_t all = tfm__reference_sequence_end(w->rows, s);

    x->row = row;
    x->first_row = (size_t)w->rows->start[s];
    x->begin = x->first_row;
    x->end = w->bidirectional ? all : row + 1;
    if (w->window) {
        x->begin = row - x->first_row >= w->window ? row - w->window + 1 : x->first_row;
        x->end = x->end < row + w->window ? x->end : row + w->window;
    }
}

/* 0 if the query saw nothing that counts. */
static int take(const struct work *w, struct query *x, size_t head)
{
    const size_t at = x->row * w->heads + head;

    x->head = head;
    x->lse = one(w, w->lse, at);
    tfm_dtype_to_f64(w->dtype, w->q, at * w->d, w->d, x->q);
    tfm_dtype_to_f64(w->dtype, w->dy, at * w->d, w->d, x->dy);
    return x->lse != -INFINITY;
}

static size_t bucket_of(const struct work *w, const struct query *x, size_t cell)
{
    const int64_t far = (int64_t)cell - (int64_t)x->row;
    const int64_t distance = far < -w->span ? -w->span : far > w->span ? w->span : far;
    return (size_t)tfm__reference_i32(w->bucket, (size_t)(distance + w->span));
}

/* P of a cell with key k; slope: what the score's gradient shrinks by in the soft cap. */
static double weight_of(const struct work *w, const struct query *x, size_t cell, const double *k,
                        double *slope)
{
    double score = tfm__reference_dot(x->q, k, w->d) * w->scale;

    *slope = 1;
    if (w->softcap > 0) {
        const double bent = tanh(score / w->softcap);
        score = w->softcap * bent;
        *slope = 1 - bent * bent;
    }
    if (w->bias)
        score += one(w, w->bias, bucket_of(w, x, cell) * w->heads + x->head);
    return score == -INFINITY ? 0 : exp(score - x->lse);
}

static void fetch(const struct work *w, const void *from, size_t cell, size_t group, double *to)
{
    tfm_dtype_to_f64(w->dtype, from, (cell * w->groups + group) * w->d, w->d, to);
}

/* Index = row times H plus head. */
static void run_queries(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    struct query x;
    double k[HEAD_DIM_MAX], v[HEAD_DIM_MAX], sum[HEAD_DIM_MAX], slope;

    for (size_t index = begin; index < end; index++) {
        const size_t row = index / w->heads, group = index % w->heads / w->share;
        look(w, &x, row, tfm__reference_sequence_of(w->rows, row));
        const int there = take(w, &x, index % w->heads);
        x.delta = 0;
        for (size_t i = 0; i < w->d; i++)
            sum[i] = 0;
        for (size_t cell = x.begin; cell < x.end && there; cell++) {
            fetch(w, w->k, cell, group, k);
            fetch(w, w->v, cell, group, v);
            const double p = weight_of(w, &x, cell, k, &slope);
            x.delta += p == 0 ? 0 : p * tfm__reference_dot(x.dy, v, w->d);
        }
        tfm_dtype_from_f64(w->dtype, &x.delta, w->delta, index, 1);
        x.delta = one(w, w->delta, index); /* as dk and drel_bias see it */
        for (size_t cell = x.begin; cell < x.end && there; cell++) {
            fetch(w, w->k, cell, group, k);
            fetch(w, w->v, cell, group, v);
            const double p = weight_of(w, &x, cell, k, &slope);
            const double ds = p * (tfm__reference_dot(x.dy, v, w->d) - x.delta) * slope * w->scale;
            for (size_t i = 0; i < w->d && p != 0; i++)
                sum[i] += ds * k[i];
        }
        tfm_dtype_from_f64(w->dtype, sum, w->dq, index * w->d, w->d);
    }
}

/* Index = row, the cell, times G plus kv head. */
static void run_cells(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    double k[HEAD_DIM_MAX], v[HEAD_DIM_MAX], dk[HEAD_DIM_MAX], dv[HEAD_DIM_MAX], slope;
    struct query x;

    for (size_t index = begin; index < end; index++) {
        const size_t cell = index / w->groups, group = index % w->groups;
        const uint32_t s = tfm__reference_sequence_of(w->rows, cell);
        fetch(w, w->k, cell, group, k);
        fetch(w, w->v, cell, group, v);
        for (size_t i = 0; i < w->d; i++)
            dk[i] = dv[i] = 0;
        for (size_t row = (size_t)w->rows->start[s]; row < tfm__reference_sequence_end(w->rows, s);
             row++) {
            look(w, &x, row, s);
            if (cell < x.begin || cell >= x.end)
                continue;
            for (size_t h = group * w->share; h < (group + 1) * w->share; h++) {
                if (!take(w, &x, h))
                    continue;
                const double p = weight_of(w, &x, cell, k, &slope);
                const double dp = tfm__reference_dot(x.dy, v, w->d);
                const double delta = one(w, w->delta, row * w->heads + h);
                const double ds = p * (dp - delta) * slope * w->scale;
                for (size_t i = 0; i < w->d && p != 0; i++) {
                    dk[i] += ds * x.q[i];
                    dv[i] += p * x.dy[i];
                }
            }
        }
        tfm_dtype_from_f64(w->dtype, dk, w->dk, index * w->d, w->d);
        tfm_dtype_from_f64(w->dtype, dv, w->dv, index * w->d, w->d);
    }
}

/* Buckets [first, first + BUCKETS) of one head. */
static void sum_buckets(const struct work *w, size_t head, size_t first)
{
    const size_t n = w->buckets - first < BUCKETS ? w->buckets - first : BUCKETS;
    double sum[BUCKETS] = {0}, k[HEAD_DIM_MAX], v[HEAD_DIM_MAX], slope;
    struct query x;

    for (size_t row = 0; row < w->rows->n; row++) {
        look(w, &x, row, tfm__reference_sequence_of(w->rows, row));
        if (!take(w, &x, head))
            continue;
        const double delta = one(w, w->delta, row * w->heads + head);
        for (size_t cell = x.begin; cell < x.end; cell++) {
            const size_t bucket = bucket_of(w, &x, cell);
            if (bucket < first || bucket >= first + n)
                continue;
            fetch(w, w->k, cell, head / w->share, k);
            fetch(w, w->v, cell, head / w->share, v);
            const double p = weight_of(w, &x, cell, k, &slope);
            sum[bucket - first] += p == 0 ? 0 : p * (tfm__reference_dot(x.dy, v, w->d) - delta);
        }
    }
    for (size_t b = 0; b < n; b++) {
        const size_t at = (first + b) * w->heads + head;
        sum[b] += one(w, w->dbias, at);
        tfm_dtype_from_f64(w->dtype, &sum[b], w->dbias, at, 1);
    }
}

static void run_heads(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t head = begin; head < end; head++) {
        for (size_t first = 0; first < w->buckets; first += BUCKETS)
            sum_buckets(w, head, first);
    }
}

enum tfm_status tfm__reference_attention_grad(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *q = call->node->inputs[0], *k = call->node->inputs[1];
    const struct tfm_tensor *bias = call->node->n_inputs > 5 ? call->node->inputs[5] : NULL;
    const struct tfm_attrs *attrs = &call->node->attrs;
    struct work w = {
        .dtype = q->dtype,
        .q = tfm__reference_input(call, 0),
        .k = tfm__reference_input(call, 1),
        .v = tfm__reference_input(call, 2),
        .dy = tfm__reference_input(call, 3),
        .lse = tfm__reference_input(call, 4),
        .dq = tfm__reference_output(call, 0),
        .dk = tfm__reference_output(call, 1),
        .dv = tfm__reference_output(call, 2),
        .delta = tfm__reference_output(call, 3),
        .dbias = tfm__reference_state(call, 7),
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
    enum tfm_status status = tfm__reference_check_rows(call, NULL);

    if (bias) {
        const int64_t distances = call->node->inputs[6]->shape[0];
        w.bias = tfm__reference_input(call, 5);
        w.bucket = tfm__reference_input(call, 6);
        w.span = distances / 2;
        w.buckets = (size_t)bias->shape[0];
        if (status == TFM_STATUS_OK && call->rows->n > 0)
            status = tfm__reference_check_ids(call, 6, (size_t)distances, bias->shape[0]);
    }
    if (status != TFM_STATUS_OK || call->rows->n == 0)
        return status;
    call->host->parallel_for(call->rows->n * w.heads, run_queries, &w);
    call->host->parallel_for(call->rows->n * w.groups, run_cells, &w);
    if (w.dbias)
        call->host->parallel_for(w.heads, run_heads, &w);
    return TFM_STATUS_OK;
}
