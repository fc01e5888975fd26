/* SPDX-License-Identifier: MIT
 * The units and shapes of `tfm bench-ops`. A unit is made of what its op needs and returns a tensor like x, the
 * next unit's x, so that each node waits for the one before it; embedding, take_rows, linear_grad_w, cross_entropy, sum_squares
 * and adamw, which cannot be chained, stand beside each other. Weights and caches are each unit's own: one that fits a cache of the
 * processor would be read from there by every unit but the first. */
#include "lib/tools/bench_cases.h"

#include <tfm/grad.h>

#include <stdio.h>
#include <string.h>

enum { TABLE = 4, VOCAB = 32768, POSITIONS = 4096 };

struct scene {
    const struct tfm__bench_case *c;
    struct tfm_graph *graph;
    struct tfm_tensor *ids;    /* [N] */
    struct tfm_tensor *gather; /* [N], of embedding */
    struct tfm_tensor *side;   /* like x, for ops with two inputs; k and v of attention */
    struct tfm_tensor *lse;    /* [N, d1], of attention_grad */
    unsigned unit;
};

static enum tfm_dtype beside(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

static struct tfm_tensor *weight(struct scene *s, const char *name, enum tfm_dtype dtype,
                                 int64_t d0, int64_t d1)
{
    char full[64];

    snprintf(full, sizeof full, "%s.%u", name, s->unit);
    return tfm_graph_parameter(s->graph, full, dtype, d1 ? 2 : 1, (int64_t[]){d0, d1});
}

/* A state of this unit that is added to. */
static struct tfm_tensor *sum(struct scene *s, const char *name, int64_t d0, int64_t d1)
{
    char full[64];

    snprintf(full, sizeof full, "%s.%u", name, s->unit);
    return tfm_graph_state(s->graph, full, beside(s->c->dtype), d1 ? 2 : 1, (int64_t[]){d0, d1});
}

/* ---- unit_<stem>: nodes of one unit; x [N, d1] unless said otherwise ---- */

/* table [VOCAB, d1] */
static struct tfm_tensor *unit_embedding(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *table =
        tfm_graph_parameter(s->graph, "table", s->c->weight, 2, (int64_t[]){VOCAB, s->c->d1});
    (void)x;
    if (!s->gather)
        s->gather = tfm_graph_input(s->graph, "gather", TFM_DTYPE_I32, 1, (int64_t[]){0});
    return tfm_op_embedding(s->graph, table, s->gather);
}

/* d1 to d2 and back */
static struct tfm_tensor *unit_linear(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *up = weight(s, "up", s->c->weight, s->c->d2, s->c->d1);
    struct tfm_tensor *down = weight(s, "down", s->c->weight, s->c->d1, s->c->d2);

    return tfm_op_linear(s->graph, tfm_op_linear(s->graph, x, up, NULL), down, NULL);
}

/* the same with trainable weights; d1 to d2 and back */
static struct tfm_tensor *unit_linear_grad_x(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *down = weight(s, "down", s->c->weight, s->c->d1, s->c->d2);
    struct tfm_tensor *up = weight(s, "up", s->c->weight, s->c->d2, s->c->d1);
    struct tfm_tensor *y = tfm_op_linear_grad_x(s->graph, tfm_graph_train(s->graph, down), x);

    return tfm_op_linear_grad_x(s->graph, tfm_graph_train(s->graph, up), y);
}

static struct tfm_tensor *unit_linear_grad_w(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *up = sum(s, "up", s->c->d2, s->c->d1);
    struct tfm_tensor *down = sum(s, "down", s->c->d1, s->c->d2);

    return tfm_op_linear_grad_w(s->graph, x, s->side, up, NULL) &&
                   tfm_op_linear_grad_w(s->graph, s->side, x, down, NULL)
               ? x
               : NULL;
}

/* dtable [VOCAB, d1] */
static struct tfm_tensor *unit_embedding_grad(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *dtable =
        tfm_graph_state(s->graph, "dtable", TFM_DTYPE_F32, 2, (int64_t[]){VOCAB, s->c->d1});

    if (!s->gather)
        s->gather = tfm_graph_input(s->graph, "gather", TFM_DTYPE_I32, 1, (int64_t[]){0});
    return tfm_op_embedding_grad(s->graph, s->gather, x, dtable, 0) ? x : NULL;
}

/* all rows, there and back */
static struct tfm_tensor *unit_take_rows_grad(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_take_rows_grad(s->graph, tfm_op_take_rows(s->graph, x));
}

/* weight [d2, d1], trainable; the targets are the ids */
static struct tfm_tensor *unit_cross_entropy(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *classes = weight(s, "classes", s->c->weight, s->c->d2, s->c->d1);

    return tfm_op_cross_entropy(s->graph, x, tfm_graph_train(s->graph, classes), s->ids, 0, NULL)
               ? x
               : NULL;
}

static struct tfm_tensor *unit_cross_entropy_grad(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *classes = weight(s, "classes", s->c->weight, s->c->d2, s->c->d1);
    return tfm_op_cross_entropy_grad(s->graph, x, tfm_graph_train(s->graph, classes), s->ids,
                                     s->side, s->side, 0, sum(s, "grad", s->c->d2, s->c->d1));
}

/* the state g [d2, d1] */
static struct tfm_tensor *unit_sum_squares(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_sum_squares(s->graph, sum(s, "g", s->c->d2, s->c->d1)) ? x : NULL;
}

/* a parameter [d2, d1] with all that belongs to it */
static struct tfm_tensor *unit_adamw(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *w = weight(s, "w", s->c->weight, s->c->d2, s->c->d1);
    struct tfm_tensor *hyper = tfm_graph_input(s->graph, "hyper", beside(s->c->dtype), 2,
                                               (int64_t[]){0, TFM_ADAMW_HYPERS});
    const int exact = s->c->weight == beside(s->c->dtype);

    return tfm_op_adamw(s->graph, tfm_graph_train(s->graph, w), sum(s, "g", s->c->d2, s->c->d1),
                        sum(s, "m", s->c->d2, s->c->d1), sum(s, "v", s->c->d2, s->c->d1), hyper,
                        exact ? NULL : sum(s, "master", s->c->d2, s->c->d1))
               ? x
               : NULL;
}

static struct tfm_tensor *unit_add(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_add(s->graph, x, s->side);
}

static struct tfm_tensor *unit_cast(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_cast(s->graph, tfm_op_cast(s->graph, x, s->c->dtype), TFM_DTYPE_F32);
}

/* all rows */
static struct tfm_tensor *unit_take_rows(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *y = tfm_op_take_rows(s->graph, x);

    return y ? x : NULL;
}

static struct tfm_tensor *unit_rms_norm(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_rms_norm(s->graph, x, weight(s, "gamma", beside(s->c->dtype), s->c->d1, 0), 1e-5);
}

static struct tfm_tensor *unit_layer_norm(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *gamma = weight(s, "gamma", beside(s->c->dtype), s->c->d1, 0);

    return tfm_op_layer_norm(s->graph, x, gamma,
                             weight(s, "beta", beside(s->c->dtype), s->c->d1, 0), 1e-5);
}

/* x [N, d1, d2], halves; positions are the ids */
static struct tfm_tensor *unit_rope(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *table = tfm_graph_buffer(s->graph, "rope", beside(s->c->dtype), 3,
                                                (int64_t[]){POSITIONS, s->c->d2 / 2, 2});

    return tfm_op_rope(s->graph, x, s->ids, table, TFM_ROPE_HALVES);
}

/* q = x [N, d1, d3], k and v = side [N, d2, d3], a slot of past + N cells */
static struct tfm_tensor *unit_gqa_attention(struct scene *s, struct tfm_tensor *x)
{
    const int64_t shape[] = {1, s->c->past + (int64_t)s->c->rows, s->c->d2, s->c->d3};
    char name[2][32];

    snprintf(name[0], sizeof name[0], "k_cache.%u", s->unit);
    snprintf(name[1], sizeof name[1], "v_cache.%u", s->unit);
    return tfm_op_gqa_attention(s->graph, x, s->side, s->side,
                                tfm_graph_state(s->graph, name[0], s->c->weight, 4, shape),
                                tfm_graph_state(s->graph, name[1], s->c->weight, 4, shape), 0);
}

/* q = dy = x [N, d1, d3], k and v = side [N, d2, d3], and lse [N, d1] */
static struct tfm_tensor *unit_attention_grad(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *dk, *dv;

    return tfm_op_attention_grad(s->graph, x, s->side, s->side, x, s->lse,
                                 &(struct tfm_attention){0}, NULL, &dk, &dv);
}

static struct tfm_tensor *unit_swiglu(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_swiglu(s->graph, x, s->side);
}

static struct tfm_tensor *unit_swiglu_grad(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *dup;

    return tfm_op_swiglu_grad(s->graph, x, s->side, s->side, &dup);
}

static struct tfm_tensor *unit_glu(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_glu(s->graph, x, s->side);
}

static struct tfm_tensor *unit_mul(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_mul(s->graph, x, s->side);
}

static struct tfm_tensor *unit_rms_norm_grad(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *gamma = weight(s, "gamma", s->c->dtype, s->c->d1, 0);
    return tfm_op_rms_norm_grad(s->graph, x, gamma, s->side, sum(s, "dgamma", s->c->d1, 0), 1e-5);
}

static struct tfm_tensor *unit_layer_norm_grad(struct scene *s, struct tfm_tensor *x)
{
    struct tfm_tensor *gamma = weight(s, "gamma", s->c->dtype, s->c->d1, 0);
    return tfm_op_layer_norm_grad(s->graph, x, gamma, s->side, sum(s, "dgamma", s->c->d1, 0),
                                  sum(s, "dbeta", s->c->d1, 0), 1e-5);
}

static struct tfm_tensor *unit_relu_grad(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_relu_grad(s->graph, x, s->side);
}

static struct tfm_tensor *unit_silu_grad(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_silu_grad(s->graph, x, s->side);
}

static struct tfm_tensor *unit_gelu_grad(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_gelu_grad(s->graph, x, s->side, 0);
}

static struct tfm_tensor *unit_sigmoid_grad(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_sigmoid_grad(s->graph, x, s->side);
}

static struct tfm_tensor *unit_scale_grad(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_scale_grad(s->graph, x, s->side, 1, 30);
}

static struct tfm_tensor *unit_relu(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_relu(s->graph, x);
}

static struct tfm_tensor *unit_silu(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_silu(s->graph, x);
}

static struct tfm_tensor *unit_gelu(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_gelu(s->graph, x, strcmp(s->c->note, "tanh") == 0);
}

static struct tfm_tensor *unit_scale(struct scene *s, struct tfm_tensor *x)
{
    return tfm_op_scale(s->graph, x, 0.75);
}

/* An op without a unit does not compile. */
static struct tfm_tensor *(*const units_of[TFM_OP_LIMIT])(struct scene *s, struct tfm_tensor *x) = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    [id] = unit_##stem,
#include <tfm/ops.def>
#undef TFM_OP
};

struct traits {
    enum tfm_op op;
    unsigned nodes;    /* of a unit */
    int two;           /* takes a second input like x */
    double operations; /* for each element of x */
};

/* Linear and attention count by another rule; an op that is not here has one node and no arithmetic. */
static struct traits traits_of(enum tfm_op op)
{
    static const struct traits list[] = {
        {TFM_OP_LINEAR, 2, 0, 0},
        {TFM_OP_ADD, 1, 1, 1},
        {TFM_OP_CAST, 2, 0, 2},
        {TFM_OP_LINEAR_GRAD_X, 2, 0, 0},
        {TFM_OP_LINEAR_GRAD_W, 2, 0, 0},
        {TFM_OP_EMBEDDING_GRAD, 1, 0, 1},
        {TFM_OP_TAKE_ROWS_GRAD, 2, 0, 1},
        {TFM_OP_RMS_NORM, 1, 0, 4},
        {TFM_OP_ROPE, 1, 0, 3},
        {TFM_OP_SWIGLU, 1, 1, 5},
        {TFM_OP_LAYER_NORM, 1, 0, 7},
        {TFM_OP_RELU, 1, 0, 1},
        {TFM_OP_SILU, 1, 0, 4},
        {TFM_OP_GELU, 1, 0, 4},
        {TFM_OP_GLU, 1, 1, 4},
        {TFM_OP_MUL, 1, 1, 1},
        {TFM_OP_SCALE, 1, 0, 1},
        {TFM_OP_RMS_NORM_GRAD, 1, 1, 12},
        {TFM_OP_LAYER_NORM_GRAD, 1, 1, 14},
        {TFM_OP_RELU_GRAD, 1, 1, 1},
        {TFM_OP_SILU_GRAD, 1, 1, 8},
        {TFM_OP_SWIGLU_GRAD, 1, 1, 12},
        {TFM_OP_GELU_GRAD, 1, 1, 24},
        {TFM_OP_SIGMOID_GRAD, 1, 1, 8},
        {TFM_OP_SCALE_GRAD, 1, 1, 12},
    };

    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].op == op)
            return list[i];
    return (struct traits){op, 1, 0, 0};
}

static int is_update(enum tfm_op op)
{
    return op == TFM_OP_SUM_SQUARES || op == TFM_OP_ADAMW;
}

static int is_attention(enum tfm_op op)
{
    return op == TFM_OP_GQA_ATTENTION || op == TFM_OP_ATTENTION_GRAD;
}

static int is_classifier(enum tfm_op op)
{
    return op == TFM_OP_CROSS_ENTROPY || op == TFM_OP_CROSS_ENTROPY_GRAD;
}

static int is_linear(enum tfm_op op)
{
    return op == TFM_OP_LINEAR || op == TFM_OP_LINEAR_GRAD_X || op == TFM_OP_LINEAR_GRAD_W;
}

/* ---- shapes ---- */

static const struct tfm__bench_case cases[] = {
#define TFM_BENCH(OP, dtype, weight, rows, d1, d2, d3, past, note) \
    {TFM_OP_##OP, TFM_DTYPE_##dtype, TFM_DTYPE_##weight, rows, d1, d2, d3, past, note},
#include "lib/tools/bench_cases.def"
#undef TFM_BENCH
};

const struct tfm__bench_case *tfm__bench_case(size_t i)
{
    return i < sizeof cases / sizeof *cases ? &cases[i] : NULL;
}

/* Extents of x after N, and their product. */
static int extents(const struct tfm__bench_case *c, int64_t shape[3])
{
    shape[0] = 0;
    shape[1] = c->d1;
    shape[2] = c->op == TFM_OP_ROPE ? c->d2 : c->d3;
    return shape[2] ? 3 : 2;
}

static int64_t width_of(const struct tfm__bench_case *c)
{
    int64_t shape[3];

    return extents(c, shape) == 3 ? shape[1] * shape[2] : shape[1];
}

void tfm__bench_describe(const struct tfm__bench_case *c, struct tfm__bench_text *text)
{
    snprintf(text->op, sizeof text->op, "%s%s%s", tfm_op_name(c->op),
             strcmp(c->note, "tanh") == 0 ? ", " : "", strcmp(c->note, "tanh") == 0 ? c->note : "");
    if (is_linear(c->op))
        snprintf(text->shape, sizeof text->shape, "[%u, %lld] to %lld and back", c->rows,
                 (long long)c->d1, (long long)c->d2);
    else if (is_classifier(c->op))
        snprintf(text->shape, sizeof text->shape, "[%u, %lld], %lld classes", c->rows,
                 (long long)c->d1, (long long)c->d2);
    else if (is_update(c->op))
        snprintf(text->shape, sizeof text->shape, "[%lld, %lld]", (long long)c->d2,
                 (long long)c->d1);
    else if (is_attention(c->op))
        snprintf(text->shape, sizeof text->shape,
                 "[%u, %lld, %lld], %lld kv heads, %d cells before", c->rows, (long long)c->d1,
                 (long long)c->d3, (long long)c->d2, c->past);
    else if (c->d2)
        snprintf(text->shape, sizeof text->shape, "[%u, %lld, %lld]", c->rows, (long long)c->d1,
                 (long long)c->d2);
    else
        snprintf(text->shape, sizeof text->shape, "[%u, %lld]", c->rows, (long long)c->d1);
}

/* ---- graphs ---- */

/* [N, width] of the rows of a table, then of the dtype of the case. */
static struct tfm_tensor *head(struct scene *s, const char *name, int64_t width)
{
    const enum tfm_dtype dtype = s->c->op == TFM_OP_CAST ? TFM_DTYPE_F32 : s->c->dtype;
    struct tfm_tensor *table =
        tfm_graph_parameter(s->graph, name, beside(dtype), 2, (int64_t[]){TABLE, width});
    struct tfm_tensor *x = tfm_op_embedding(s->graph, table, s->ids);

    return dtype == beside(dtype) ? x : tfm_op_cast(s->graph, x, dtype);
}

static void fill_graph(struct scene *s, unsigned units)
{
    const struct tfm__bench_case *c = s->c;
    int64_t shape[3];
    const int rank = extents(c, shape);

    s->ids = tfm_graph_input(s->graph, "ids", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *x = head(s, "head", width_of(c));
    if (rank == 3)
        x = tfm_graph_reshape(s->graph, x, 3, shape);
    if (traits_of(c->op).two)
        s->side = head(s, "side", width_of(c));
    if (is_attention(c->op))
        s->side = tfm_graph_reshape(s->graph, head(s, "side", c->d2 * c->d3), 3,
                                    (int64_t[]){0, c->d2, c->d3});
    if (c->op == TFM_OP_LINEAR_GRAD_W)
        s->side = head(s, "side", c->d2);
    if (c->op == TFM_OP_ATTENTION_GRAD)
        s->lse = head(s, "lse", c->d1);
    if (c->op == TFM_OP_CROSS_ENTROPY_GRAD) /* lse and dloss */
        s->side = tfm_graph_reshape(s->graph, head(s, "side", 1), 1, (int64_t[]){0});
    for (s->unit = 0; x && s->unit < units; s->unit++)
        x = units_of[c->op](s, x);
    tfm_graph_output(s->graph, x ? tfm_op_take_rows(s->graph, x) : NULL, "y");
}

struct tfm_graph *tfm__bench_graph(const struct tfm__bench_case *c, unsigned units,
                                   struct tfm_error *err)
{
    struct scene s = {.c = c};

    if (tfm_graph_create(&s.graph, err) != TFM_STATUS_OK)
        return NULL;
    fill_graph(&s, units);
    if (tfm_graph_check(s.graph, err) == TFM_STATUS_OK)
        return s.graph;
    tfm_graph_destroy(s.graph);
    return NULL;
}

/* ---- work ---- */

static double bytes_of(enum tfm_dtype dtype, double n)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);

    return n / info->block * info->bytes;
}

void tfm__bench_measure_of(const struct tfm__bench_case *c, struct tfm__bench_work *work)
{
    const struct traits t = traits_of(c->op);
    const double n = c->rows, width = (double)width_of(c), elements = n * width;

    work->nodes = t.nodes;
    work->operations = t.operations * elements;
    work->bytes = bytes_of(c->dtype, elements) * (t.two ? 3 : 2);
    if (is_linear(c->op)) {
        const double weights = 2 * (double)c->d1 * (double)c->d2;
        work->operations = 2 * n * weights;
        work->bytes =
            bytes_of(c->weight, weights) + 2 * bytes_of(c->dtype, n * (double)(c->d1 + c->d2));
    } else if (is_classifier(c->op)) { /* the gradient: logits again, and two products */
        const double weights = (double)c->d1 * (double)c->d2;
        const int grad = c->op == TFM_OP_CROSS_ENTROPY_GRAD;
        work->operations = (grad ? 6 : 2) * n * weights;
        work->bytes = bytes_of(c->weight, weights) + bytes_of(c->dtype, elements) +
                      (grad ? 2 * bytes_of(TFM_DTYPE_F32, weights) : 0);
    } else if (
        is_update(
            c->op)) { /* w, g, m and v, or of a narrow w all four and w, are read and written */
        const double values = (double)c->d1 * (double)c->d2;
        const int exact = c->weight == beside(c->dtype), one = c->op == TFM_OP_SUM_SQUARES;
        work->operations = (one ? 2 : 16) * values;
        work->bytes = (one ? 1 : 8) * bytes_of(beside(c->dtype), values) +
                      (exact ? 0 : bytes_of(c->weight, values));
    } else if (c->op == TFM_OP_EMBEDDING) {
        work->bytes = bytes_of(c->weight, elements) + bytes_of(c->dtype, elements);
    } else if (c->op == TFM_OP_CAST) {
        work->bytes = 2 * (bytes_of(c->dtype, elements) + bytes_of(TFM_DTYPE_F32, elements));
    } else if (c->op == TFM_OP_ROPE) {
        work->bytes += bytes_of(beside(c->dtype), n * (double)c->d2);
    } else if (c->op == TFM_OP_ATTENTION_GRAD) { /* five products instead of two */
        work->operations = 10 * elements * (n + 1) / 2;
        work->bytes +=
            bytes_of(c->dtype, elements) + 4 * bytes_of(c->dtype, n * (double)(c->d2 * c->d3));
    } else if (c->op == TFM_OP_GQA_ATTENTION) {
        const double cell = (double)(c->d2 * c->d3);
        work->operations = 4 * elements * (c->past + (n + 1) / 2); /* cells that a row sees */
        work->bytes +=
            2 * bytes_of(c->dtype, n * cell) + 2 * bytes_of(c->weight, (c->past + n) * cell);
    }
}
