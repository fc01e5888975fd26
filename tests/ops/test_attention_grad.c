/* SPDX-License-Identifier: MIT
 * attention_grad: dq, dk, dv, delta, and what it adds to the state of a relative bias. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *q, *k, *v, *dy, *lse, *bias, *bucket, *dbias;

static double at(const struct trial *t, const struct tfm_tensor *tensor, int64_t i)
{
    return t->values[tensor->id][i];
}

static double dot(const struct trial *t, const struct tfm_tensor *a, int64_t i,
                  const struct tfm_tensor *b, int64_t j, int64_t d)
{
    double sum = 0;
    for (int64_t e = 0; e < d; e++)
        sum += at(t, a, i * d + e) * at(t, b, j * d + e);
    return sum;
}

static int64_t bucket_of(const struct trial *t, int64_t distance)
{
    const int64_t span = bucket->shape[0] / 2;
    double value;

    distance = distance < -span ? -span : distance > span ? span : distance;
    trial_get(t, bucket, (size_t)(distance + span), 1, &value);
    return (int64_t)value;
}

/* 0 = not seen; rows of one sequence. */
static int sees(const struct tfm_attrs *a, int64_t i, int64_t c)
{
    return (a->bidirectional || c <= i) && (!a->window || llabs(c - i) < a->window);
}

/* All of P and dS of one head at a time, as matrices: the other way than the code's. */
static void naive(const struct trial *t, const struct tfm_rows *rows, double *want)
{
    const struct tfm_attrs *a = &tfm_graph_node(t->graph, 0)->attrs;
    const int64_t n = rows->n, heads = q->shape[1], groups = k->shape[1], d = q->shape[2];
    const int64_t share = heads / groups;
    const double scale = a->scale != 0 ? a->scale : 1 / sqrt((double)d);
    double *dq = want, *dk = dq + n * heads * d, *dv = dk + n * groups * d;
    double *delta = dv + n * groups * d, *db = delta + n * heads;
    double *p = calloc((size_t)(n * n + 1), sizeof *p),
           *ds = calloc((size_t)(n * n + 1), sizeof *ds);

    ck_assert(p && ds);
    memset(want, 0, (size_t)(n * (heads * (d + 1) + 2 * groups * d)) * sizeof *want);
    for (int64_t i = 0; dbias && i < dbias->shape[0] * heads; i++)
        db[i] = at(t, dbias, i);
    for (int64_t h = 0; h < heads; h++) {
        const int64_t g = h / share;
        for (int64_t i = 0; i < n; i++) {
            const double base = at(t, lse, i * heads + h);
            double *sum = &delta[i * heads + h];
            for (int64_t c = 0; c < n; c++) {
                double score = dot(t, q, i * heads + h, k, c * groups + g, d) * scale, slope = 1;
                if (a->softcap > 0) {
                    slope = 1 - pow(tanh(score / a->softcap), 2);
                    score = a->softcap * tanh(score / a->softcap);
                }
                if (bias)
                    score += at(t, bias, bucket_of(t, c - i) * heads + h);
                p[i * n + c] = sees(a, i, c) && base > -INFINITY ? exp(score - base) : 0;
                ds[i * n + c] = slope;
                *sum += p[i * n + c] * dot(t, dy, i * heads + h, v, c * groups + g, d);
            }
            if (q->dtype == TFM_DTYPE_F32) /* an output, rounded before it is used */
                *sum = (float)*sum;
            for (int64_t c = 0; c < n; c++) {
                const double raw =
                    p[i * n + c] * (dot(t, dy, i * heads + h, v, c * groups + g, d) - *sum);
                if (dbias)
                    db[bucket_of(t, c - i) * heads + h] += raw;
                ds[i * n + c] *= raw * scale;
                for (int64_t e = 0; e < d; e++) {
                    dq[(i * heads + h) * d + e] +=
                        ds[i * n + c] * at(t, k, (c * groups + g) * d + e);
                    dk[(c * groups + g) * d + e] +=
                        ds[i * n + c] * at(t, q, (i * heads + h) * d + e);
                    dv[(c * groups + g) * d + e] +=
                        p[i * n + c] * at(t, dy, (i * heads + h) * d + e);
                }
            }
        }
    }
    free(p);
    free(ds);
}

struct shape {
    int64_t heads, groups, d;
    struct tfm_attention config;
    int buckets, span, trained;
};

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, const struct shape *s)
{
    struct tfm_attention config = s->config;
    struct tfm_tensor *dk, *dv;

    trial_begin(t, rows, "attention_grad %s %lld/%lld heads of %lld", tfm_dtype_name(dtype),
                (long long)s->heads, (long long)s->groups, (long long)s->d);
    bias = bucket = dbias = NULL;
    q = trial_input(t, "q", dtype, 3, s->heads, s->d);
    k = trial_input(t, "k", dtype, 3, s->groups, s->d);
    v = trial_input(t, "v", dtype, 3, s->groups, s->d);
    dy = trial_input(t, "dy", dtype, 3, s->heads, s->d);
    lse = trial_input(t, "lse", dtype, 2, s->heads, 0);
    if (s->buckets) {
        bias = s->trained ? trial_trainable(t, "rel_bias", dtype, 2, s->buckets, s->heads)
                          : trial_parameter(t, "rel_bias", dtype, 2, s->buckets, s->heads);
        bucket = trial_buffer(t, "rel_bucket", TFM_DTYPE_I32, 1, 2 * s->span + 1, 0, 0);
        for (size_t i = 0; i < trial_count(t, bucket); i++) {
            const double value = (double)(i * 7 % (size_t)s->buckets);
            trial_set(t, bucket, i, 1, &value);
        }
    }
    if (s->trained)
        dbias = trial_sum(t, "drel_bias", dtype, 2, s->buckets, s->heads);
    for (size_t i = 0; i < trial_count(t, lse); i++) {
        const double about = i % 7 == 5 ? -INFINITY : 3 + trial_random(i);
        trial_set(t, lse, i, 1, &about);
    }
    config.rel_bias = bias;
    config.rel_bucket = bucket;
    trial_output(t, tfm_op_attention_grad(t->graph, q, k, v, dy, lse, &config, dbias, &dk, &dv));
}

/* Faults: a mask that is another than that of the forward pass, a head that writes to another's group, a tile that is
 * dropped, a row that saw nothing and has a gradient. */
START_TEST(kinds)
{
    static const struct shape shapes[] = {
        {1, 1, 1, {.scale = 0}, 0, 0, 0},
        {6, 2, 16, {.scale = 0}, 0, 0, 0},
        {4, 1, 33, {.scale = 0}, 0, 0, 0},
        {3, 3, 7, {.scale = 0.5}, 0, 0, 0},
        {2, 1, 8, {.bidirectional = 1}, 0, 0, 0},
        {2, 2, 8, {.window = 9}, 0, 0, 0},
        {2, 2, 8, {.bidirectional = 1, .window = 70}, 0, 0, 0},
        {2, 1, 8, {.softcap = 1.5}, 0, 0, 0},
        {4, 2, 8, {.softcap = 2, .window = 40}, 8, 5, 1},
        {2, 1, 8, {.bidirectional = 1}, 4, 70, 1},
        {2, 1, 8, {.scale = 0}, 4, 3, 0},
    };
    struct trial t;

    build(&t, 129, TFM_DTYPE_F32, &shapes[_i]);
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: F64 that is computed in less. */
START_TEST(doubles)
{
    static const struct shape shape = {4, 2, 8, {.softcap = 2}, 8, 5, 1};
    struct trial t;

    build(&t, 33, TFM_DTYPE_F64, &shape);
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Where all scores are 0, lse is the logarithm of how many cells a row sees. Fault: an lse of one split of a long context, of
 * other cells than those that are seen, or that is missing where few rows run. */
START_TEST(lse_counts_cells)
{
    static const uint32_t counts[] = {300, 8, 1};
    struct tfm_attention config = {.window = _i ? 270 : 0};
    struct tfm_tensor *second;
    struct trial t;

    trial_begin(&t, 300, "attention lse, window %d", config.window);
    config.lse = &second;
    q = trial_input(&t, "q", TFM_DTYPE_F32, 3, 4, 8);
    k = trial_input(&t, "k", TFM_DTYPE_F32, 3, 2, 8);
    v = trial_input(&t, "v", TFM_DTYPE_F32, 3, 2, 8);
    trial_output(&t, tfm_op_attention(t.graph, q, k, v, &config));
    ck_assert_ptr_eq(second, t.outputs[1]);
    trial_set_all(&t, q, 0);
    ck_assert(trial_open(&t, 0));
    for (size_t c = 0; c < 3; c++) {
        const struct tfm_rows rows = trial_rows(counts[c], 0);
        trial_run(&t, &rows, TFM_STATUS_OK);
        for (size_t i = 0; i < (size_t)counts[c] * 4; i++) {
            const size_t cells = i / 4 + 1;
            double got;
            trial_get(&t, t.outputs[1], i, 1, &got);
            ck_assert_double_eq_tol(got, log((double)(_i && cells > 270 ? 270 : cells)), 1e-5);
        }
    }
    trial_end(&t);
}
END_TEST

/* Fault: operands that do not fit become a node. */
START_TEST(refusals)
{
    struct tfm_attention config = {0};
    struct tfm_tensor *dk, *dv;
    struct trial t;

    trial_begin(&t, 4, "attention_grad refusal %d", _i);
    q = trial_input(&t, "q", TFM_DTYPE_F32, 3, 4, 8);
    k = trial_input(&t, "k", TFM_DTYPE_F32, 3, 2, 8);
    v = trial_input(&t, "v", TFM_DTYPE_F32, 3, _i == 0 ? 1 : 2, 8);
    dy = trial_input(&t, "dy", TFM_DTYPE_F32, 3, _i == 1 ? 2 : 4, 8);
    lse = trial_input(&t, "lse", TFM_DTYPE_F32, 2, _i == 2 ? 2 : 4, 0);
    dbias = _i == 3 ? trial_sum(&t, "drel_bias", TFM_DTYPE_F32, 2, 8, 4) : NULL;
    ck_assert_ptr_null(tfm_op_attention_grad(t.graph, q, k, v, dy, lse, &config, dbias, &dk, &dv));
    ck_assert(!dk && !dv);
    trial_refused(&t, TFM_STATUS_SHAPE, "attention_grad|q 'q' [N, 4, 8]|lse 'lse'");
}
END_TEST

/* Fault: a gradient of attention with caches that leaves out what was run before; lse with caches. */
START_TEST(caches_have_none)
{
    static const int64_t shape[] = {0, 2, 4}, cells[] = {1, 9, 2, 4};
    struct tfm_error err = {0};
    struct tfm_attention config = {0};
    struct tfm_tensor *second = NULL;
    struct tfm_graph *graph;

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    q = tfm_graph_watch(graph, tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, shape));
    config.k_cache = tfm_graph_state(graph, "k_cache", TFM_DTYPE_F32, 4, cells);
    config.v_cache = tfm_graph_state(graph, "v_cache", TFM_DTYPE_F32, 4, cells);
    config.lse = _i ? &second : NULL;
    struct tfm_tensor *y = tfm_op_attention(graph, q, q, q, &config);
    dy = tfm_graph_input(graph, "dy", TFM_DTYPE_F32, 3, shape);
    if (_i == 0)
        ck_assert_int_eq(tfm_graph_backward(graph, 1, &y, &dy, &err), TFM_STATUS_UNSUPPORTED);
    else
        ck_assert_int_eq(tfm_graph_check(graph, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "caches") != NULL, "%s", err.text);
    tfm_graph_destroy(graph);
}
END_TEST

/* Fault: a rewind that leaves a node with an output that is gone. */
START_TEST(rewind_takes_lse_back)
{
    static const int64_t shape[] = {0, 2, 4};
    const struct tfm_attention config = {0};
    struct tfm_graph_mark mark;
    struct tfm_error err = {0};
    struct tfm_graph *graph;

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    q = tfm_graph_watch(graph, tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, shape));
    struct tfm_tensor *y = tfm_op_attention(graph, q, q, q, &config);
    dy = tfm_graph_input(graph, "dy", TFM_DTYPE_F32, 3, shape);
    const struct tfm_node *node = tfm_graph_node(graph, 0);
    tfm_graph_mark(graph, &mark);
    for (int times = 0; times < 2; times++) {
        ck_assert_uint_eq(node->n_outputs, 1);
        ck_assert_int_eq(tfm_graph_backward(graph, 1, &y, &dy, &err), TFM_STATUS_OK);
        ck_assert(node->n_outputs == 2 && node->attrs.extra_outputs == 1);
        ck_assert_int_eq(tfm_graph_rewind(graph, &mark, &err), TFM_STATUS_OK);
        ck_assert_int_eq(node->attrs.extra_outputs, 0);
    }
    tfm_graph_destroy(graph);
}
END_TEST

void tfm__cases_attention_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "attention_grad");
    TCase *rule = trial_rule_tcase(suite, "attention_grad rule");

    tcase_add_loop_test(tcase, kinds, 0, 11);
    tcase_add_test(tcase, doubles);
    tcase_add_loop_test(tcase, lse_counts_cells, 0, 2);
    tcase_add_loop_test(rule, refusals, 0, 4);
    tcase_add_loop_test(rule, caches_have_none, 0, 2);
    tcase_add_test(rule, rewind_takes_lse_back);
}
