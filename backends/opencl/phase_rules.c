/* SPDX-License-Identifier: MIT
 * Which nodes become which steps of kernels/persistent.cl. A rule looks at a node and its neighbours; what
 * a projection can do with its output at once is fused into it: the sum with a residual, swiglu, rope, the
 * copy to a cache. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/opencl/phases.h"

/* Projections of one x in one phase. */
enum { TOGETHER = 8 };

/* Most splits of a cache: their cells grow when it is so long that there would be more. */
enum { SPLITS = 32, ROUND = 16 };

/* Multiply-adds of a phase from which on its parts may wait longer for each other. */
enum { PATIENCE = 1 << 23 };

static const struct tfm_node *node_at(const struct tfm__cl_phaser *p, uint32_t i)
{
    const struct tfm_segment *s = p->planner->segment;
    return i < s->n_nodes ? s->nodes[i] : NULL;
}

static int is(const struct tfm_node *node, enum tfm_op op)
{
    return node && node->op == op;
}

static int is_f32(const struct tfm_tensor *tensor)
{
    return !tensor || tensor->dtype == TFM_DTYPE_F32;
}

static int same(const struct tfm__cl_phaser *p, const struct tfm_tensor *a,
                const struct tfm_tensor *b)
{
    return tfm__cl_phase_root(p, a) == tfm__cl_phase_root(p, b);
}

static uint32_t refuse(struct tfm__cl_phaser *p, const struct tfm_node *node, const char *why)
{
    snprintf(p->phases->reason, sizeof p->phases->reason, "%s: %s",
             node->scope && node->scope->name ? node->scope->name : "graph", why);
    return 0;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- ops as they are ---- */

/* Work of the node's own launch number `number`, its operands in their order. */
static uint32_t plain(struct tfm__cl_phaser *p, uint32_t i, uint32_t kind)
{
    const struct tfm_node *node = node_at(p, i);
    const struct tfm__cl_program *program = p->planner->program;
    const struct tfm__cl_launch *launch = &program->launches[program->nodes[i].first];
    struct tfm__cl_launch *made = tfm__cl_phase_step(p, kind, node, 1);

    if (!made)
        return 0;
    made->step = launch->step;
    made->step.phase = kind;
    made->step.barrier = 1;
    made->step.patience = 1;
    made->cost = launch->cost;
    for (uint32_t k = 0; k < launch->n_operands; k++) {
        const struct tfm_tensor *t = k < node->n_inputs ? node->inputs[k] : node->outputs[0];
        tfm__cl_phase_operand(p, made, k, t,
                              launch->operands[k].place == TFM__CL_POOL &&
                                      tfm__cl_op(node->op)->panels >> k & 1
                                  ? TFM__CL_PANELS
                                  : TFM__CL_RAW);
    }
    return 1;
}

/* ---- projections ---- */

/* Linears of one x that share a phase. */
struct group {
    const struct tfm_node *linear[TOGETHER];
    const struct tfm_tensor *y[TOGETHER]; /* what each leaves in memory */
    const struct tfm_node *rope[TOGETHER];
    const struct tfm_tensor *cache[TOGETHER];
    const struct tfm_node *gate, *add; /* swiglu of the two; sum with the one */
    uint32_t n, nodes;                 /* nodes: taken from the segment */
};

static int projects(const struct tfm_node *node)
{
    return is(node, TFM_OP_LINEAR) && tfm__cl_vectors(node->inputs[0]) == 1 &&
           is_f32(node->inputs[0]) && is_f32(node->outputs[0]);
}

static void find_linears(const struct tfm__cl_phaser *p, uint32_t i, struct group *g)
{
    const struct tfm_node *first = node_at(p, i);

    while (g->n < TOGETHER && projects(node_at(p, i)) &&
           same(p, node_at(p, i)->inputs[0], first->inputs[0])) {
        g->linear[g->n] = node_at(p, i++);
        g->y[g->n] = g->linear[g->n]->outputs[0];
        g->n++;
    }
    g->nodes = g->n;
}

/* swiglu(first, second) or first + residual, if nobody else reads the linears' own output. */
static void find_end(const struct tfm__cl_phaser *p, uint32_t i, struct group *g)
{
    const struct tfm_node *next = node_at(p, i + g->n);

    if (g->n == 2 && is(next, TFM_OP_SWIGLU) && same(p, next->inputs[0], g->y[0]) &&
        same(p, next->inputs[1], g->y[1]) && is_f32(next->outputs[0]) &&
        tfm__cl_phase_sole(p, g->y[0]) && tfm__cl_phase_sole(p, g->y[1]) &&
        g->linear[0]->inputs[1]->dtype == g->linear[1]->inputs[1]->dtype)
        g->gate = next;
    if (g->n == 1 && is(next, TFM_OP_ADD) && is_f32(next->outputs[0]) && is_f32(next->inputs[0]) &&
        is_f32(next->inputs[1]) && tfm__cl_phase_sole(p, g->y[0]) &&
        same(p, next->inputs[0], g->y[0]) != same(p, next->inputs[1], g->y[0]))
        g->add = next;
    if (g->gate || g->add) {
        g->y[0] = next->outputs[0];
        g->nodes++;
    }
}

/* Rope of one of the linears, whole heads of it. */
static void find_ropes(const struct tfm__cl_phaser *p, uint32_t i, struct group *g)
{
    for (const struct tfm_node *next; is(next = node_at(p, i + g->nodes), TFM_OP_ROPE);
         g->nodes++) {
        uint32_t k = 0;
        while (k < g->n && (g->rope[k] || !same(p, next->inputs[0], g->y[k])))
            k++;
        if (k == g->n || next->inputs[0]->rank != 3 || next->attrs.rope_layout != TFM_ROPE_ROWS ||
            next->attrs.inverse || next->inputs[0]->shape[2] % TFM_PANEL != 0 ||
            !is_f32(next->outputs[0]) || !tfm__cl_phase_sole(p, g->y[k]))
            return;
        g->rope[k] = next;
        g->y[k] = next->outputs[0];
    }
}

/* The caches that the attention behind them keeps k and v in. */
static void find_caches(struct tfm__cl_phaser *p, uint32_t i, struct group *g)
{
    const struct tfm_node *next = node_at(p, i + g->nodes);

    if (!is(next, TFM_OP_GQA_ATTENTION) || !tfm__cl_input(next, 3))
        return;
    for (uint32_t k = 0; k < g->n; k++) {
        if (g->linear[k]->inputs[1]->shape[0] % TFM_PANEL != 0)
            continue;
        if (same(p, next->inputs[1], g->y[k]))
            p->k_cache = g->cache[k] = next->inputs[3];
        else if (same(p, next->inputs[2], g->y[k]))
            p->v_cache = g->cache[k] = next->inputs[4];
    }
}

/* Rope in as small slices as its pairs allow, so that the parts share the work evenly. */
static void set_rope(struct tfm__cl_phaser *p, struct tfm__cl_launch *made,
                     const struct tfm_node *rope)
{
    struct tfm_step *s = &made->step;
    const uint32_t dim = (uint32_t)rope->inputs[0]->shape[2];
    const uint32_t turns = (uint32_t)rope->inputs[2]->shape[1] * 2;
    const int adjacent = rope->attrs.rope_style == TFM_ROPE_ADJACENT && turns == dim;

    s->project |= TFM_PROJECT_ROPE;
    s->halves = rope->attrs.rope_style == TFM_ROPE_HALVES;
    s->turns = turns;
    s->head_dim = adjacent ? TFM_PANEL : dim;
    s->rotated = adjacent ? TFM_PANEL : turns;
    s->slices = dim / s->head_dim;
    s->panels_a_unit = s->head_dim / TFM_PANEL;
    tfm__cl_phase_operand(p, made, 5, rope->inputs[2], TFM__CL_RAW);
    tfm__cl_phase_operand(p, made, 6, rope->inputs[1], TFM__CL_RAW);
}

static void set_weight(struct tfm__cl_phaser *p, struct tfm__cl_launch *made,
                       const struct tfm_node *linear, uint32_t weight, uint32_t bias)
{
    tfm__cl_phase_operand(p, made, weight, linear->inputs[1], TFM__CL_PANELS);
    tfm__cl_phase_operand(p, made, bias, tfm__cl_input(linear, 2), TFM__CL_RAW);
    p->phases->types |= 1u << linear->inputs[1]->dtype;
}

/* Floats that linears of few rows want of a part beside x: its integers, or its sums over blocks. 0 = neither. */
static size_t floats_of_x(const struct tfm__cl_phaser *p, const struct tfm_node *linear)
{
    const enum tfm_dtype weight = linear->inputs[1]->dtype;
    const size_t in = (size_t)linear->inputs[1]->shape[1];
    const size_t rows = tfm__cl_phase_rows(p, linear->outputs[0]);

    if (tfm__cl_linear_int8_takes(p->planner->device, weight))
        return tfm__cl_linear_int8_few_floats(in, rows);
    return weight == TFM_DTYPE_Q4_0 || weight == TFM_DTYPE_Q4_1 ? rows * (in / TFM_BLOCK) : 0;
}

/* 1 = of the linears of a group the first that wants them. */
static int is_first(const struct tfm__cl_phaser *p, const struct group *g, uint32_t k)
{
    uint32_t first = 0;

    while (first < k && floats_of_x(p, g->linear[first]) == 0)
        first++;
    return first == k;
}

/* One step of a group; own = 1: x is in the part's scratch. */
static int emit(struct tfm__cl_phaser *p, const struct group *g, uint32_t k, int own)
{
    const struct tfm_node *linear = g->linear[k];
    const int last = g->gate || k + 1 == g->n;
    struct tfm__cl_launch *made = tfm__cl_phase_step(p, TFM_PHASE_PROJECT, linear, last);

    if (!made)
        return 0;
    struct tfm_step *s = &made->step;
    s->width = (uint32_t)linear->inputs[1]->shape[1];
    s->out = (uint32_t)linear->inputs[1]->shape[0];
    s->panels_a_unit = 1;
    s->project = (own ? TFM_PROJECT_OWN : 0) | (is_first(p, g, k) ? TFM_PROJECT_SUMS : 0);
    made->cost = (uint64_t)s->width * s->out * (g->gate ? 2 : 1);
    tfm__cl_phase_operand(p, made, 0, linear->inputs[0], TFM__CL_RAW);
    if (own)
        tfm__cl_phase_place(made, 0, TFM__CL_SCRATCH);
    set_weight(p, made, linear, 1, 2);
    tfm__cl_phase_operand(p, made, 3, g->y[k], TFM__CL_RAW);
    tfm__cl_phase_place(made, 4, TFM__CL_SCRATCH);
    if (g->gate) {
        s->project |= TFM_PROJECT_GATE;
        set_weight(p, made, g->linear[1], 5, 6);
    } else if (g->add) {
        s->project |= TFM_PROJECT_ADD;
        tfm__cl_phase_operand(p, made, 5,
                              g->add->inputs[same(p, g->add->inputs[0], linear->outputs[0])],
                              TFM__CL_RAW);
    } else if (g->rope[k]) {
        set_rope(p, made, g->rope[k]);
    }
    if (g->cache[k]) {
        s->project |= TFM_PROJECT_APPEND;
        s->slots = (uint32_t)g->cache[k]->shape[0];
        s->cells = (uint32_t)g->cache[k]->shape[1];
        tfm__cl_phase_operand(p, made, 7, g->cache[k], TFM__CL_RAW);
    }
    const size_t rows = tfm__cl_phase_rows(p, linear->outputs[0]);
    p->x = larger(p->x, own ? rows * s->width : 1);
    p->sums = larger(p->sums, floats_of_x(p, linear));
    p->raw = larger(p->raw, 2 * rows * TFM_PANEL);
    return 1;
}

static uint32_t units_of(const struct tfm_step *s)
{
    const uint32_t panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    return (panels + s->panels_a_unit - 1) / s->panels_a_unit;
}

/* Linears from node i on. */
static uint32_t project(struct tfm__cl_phaser *p, uint32_t i, int own)
{
    struct group g = {.n = 0};
    uint32_t units = 0;
    uint64_t cost = 0;

    if (!projects(node_at(p, i)))
        return refuse(p, node_at(p, i), "a linear of another form than [N, in] in f32");
    find_linears(p, i, &g);
    find_end(p, i, &g);
    if (!g.gate && !g.add) {
        find_ropes(p, i, &g);
        find_caches(p, i, &g);
    }
    const uint32_t first = p->phases->n, steps = g.gate ? 1 : g.n;
    for (uint32_t k = 0; k < steps; k++) {
        if (!emit(p, &g, k, own))
            return 0;
    }
    for (uint32_t k = first; k < first + steps; k++) {
        struct tfm_step *s = &p->phases->steps[k].step;
        s->first_unit = units;
        units += units_of(s);
        cost += p->phases->steps[k].cost;
    }
    for (uint32_t k = first; k < first + steps; k++)
        p->phases->steps[k].step.all_units = units;
    p->phases->steps[p->phases->n - 1].step.patience = 1 + (uint32_t)(cost / PATIENCE);
    return g.nodes;
}

/* ---- norms: of a row again in each part, where only the linears behind read it ---- */

static uint32_t norm(struct tfm__cl_phaser *p, uint32_t i)
{
    const struct tfm_node *node = node_at(p, i);
    const struct tfm_tensor *h = node->outputs[0];
    uint32_t readers = 0;

    while (projects(node_at(p, i + 1 + readers)) &&
           same(p, node_at(p, i + 1 + readers)->inputs[0], h))
        readers++;
    if (readers == 0 || readers > TOGETHER || p->uses[tfm__cl_phase_root(p, h)] != readers ||
        !p->made[tfm__cl_phase_root(p, h)] || !is_f32(h) || tfm__cl_vectors(node->inputs[0]) != 1)
        return plain(p, i, TFM_PHASE_RMS_NORM);
    struct tfm__cl_launch *made = tfm__cl_phase_step(p, TFM_PHASE_NORM, node, 0);
    if (!made)
        return 0;
    made->step.width = (uint32_t)tfm_tensor_row_elements(h);
    made->step.eps = (float)node->attrs.eps;
    tfm__cl_phase_operand(p, made, 0, node->inputs[0], TFM__CL_RAW);
    tfm__cl_phase_operand(p, made, 1, node->inputs[1], TFM__CL_RAW);
    tfm__cl_phase_place(made, 2, TFM__CL_SCRATCH);
    const uint32_t nodes = project(p, i + 1, 1);
    return nodes ? nodes + 1 : 0;
}

/* ---- attention ---- */

static void set_attention(struct tfm__cl_phaser *p, struct tfm_step *s, const struct tfm_node *node)
{
    const struct tfm_tensor *q = node->inputs[0], *cache = node->inputs[3];
    const uint32_t cells = (uint32_t)cache->shape[1];
    const uint32_t most = (cells + SPLITS - 1) / SPLITS, least = p->planner->device->settings.few;

    s->heads = (uint32_t)q->shape[1];
    s->kv_heads = (uint32_t)node->inputs[1]->shape[1];
    s->head_dim = (uint32_t)q->shape[2];
    s->slots = (uint32_t)cache->shape[0];
    s->cells = cells;
    s->scale =
        (float)(node->attrs.scale != 0 ? node->attrs.scale : 1.0 / sqrt((double)q->shape[2]));
    s->cells_a_split = most <= least ? least : (most + ROUND - 1) / ROUND * ROUND;
    s->splits = (cells + s->cells_a_split - 1) / s->cells_a_split;
    s->patience = 1 + cells / 4096;
    p->x = larger(p->x, (size_t)s->cells_a_split * 3);
    p->partial = larger(p->partial, tfm__cl_phase_rows(p, q) * s->heads * s->splits *
                                        (s->head_dim + 16) * sizeof(float));
}

static const char *attention_defect(struct tfm__cl_phaser *p, const struct tfm_node *node,
                                    const struct tfm_node *next)
{
    struct tfm__cl_phases *phases = p->phases;

    if (node->attrs.bidirectional || node->attrs.window || node->attrs.softcap > 0 ||
        tfm__cl_input(node, 5))
        return "attention that is more than causal";
    if (!tfm__cl_input(node, 3))
        return "attention without a cache";
    const uint32_t dim = (uint32_t)node->inputs[0]->shape[2];
    const uint32_t share = (uint32_t)(node->inputs[0]->shape[1] / node->inputs[1]->shape[1]);
    if (dim % 16 != 0 || dim > 1024)
        return "attention heads of a size that is no multiple of 16";
    if (node->inputs[3]->dtype != node->inputs[4]->dtype)
        return "caches of two dtypes";
    if (phases->dim && (phases->dim != dim || phases->share != share ||
                        phases->cache_type != (uint32_t)node->inputs[3]->dtype))
        return "attention of more than one shape";
    if (!projects(next) || !same(p, next->inputs[0], node->outputs[0]) ||
        !tfm__cl_phase_sole(p, node->outputs[0]))
        return "attention whose output goes elsewhere than to one projection";
    phases->dim = dim;
    phases->share = share;
    phases->cache_type = (uint32_t)node->inputs[3]->dtype;
    return NULL;
}

static uint32_t attention(struct tfm__cl_phaser *p, uint32_t i)
{
    const struct tfm_node *node = node_at(p, i);
    const char *defect = attention_defect(p, node, node_at(p, i + 1));
    struct tfm__cl_launch *made;

    if (defect)
        return refuse(p, node, defect);
    if (p->k_cache != node->inputs[3] || p->v_cache != node->inputs[4]) {
        made = tfm__cl_phase_step(p, TFM_PHASE_APPEND, node, 1);
        if (!made)
            return 0;
        set_attention(p, &made->step, node);
        for (uint32_t k = 0; k < 4; k++)
            tfm__cl_phase_operand(p, made, k, node->inputs[k + 1], TFM__CL_RAW);
    }
    made = tfm__cl_phase_step(p, TFM_PHASE_ATTEND, node, 1);
    if (!made)
        return 0;
    set_attention(p, &made->step, node);
    made->cost = 64 * (uint64_t)tfm_tensor_row_elements(node->inputs[0]);
    tfm__cl_phase_operand(p, made, 0, node->inputs[0], TFM__CL_RAW);
    tfm__cl_phase_place(made, 1, TFM__CL_PARTIAL);
    tfm__cl_phase_operand(p, made, 2, node->inputs[3], TFM__CL_RAW);
    tfm__cl_phase_operand(p, made, 3, node->inputs[4], TFM__CL_RAW);
    tfm__cl_phase_place(made, 4, TFM__CL_SCRATCH);
    made = tfm__cl_phase_step(p, TFM_PHASE_MERGE, node, 0);
    if (!made)
        return 0;
    set_attention(p, &made->step, node);
    tfm__cl_phase_place(made, 0, TFM__CL_PARTIAL);
    tfm__cl_phase_place(made, 1, TFM__CL_SCRATCH);
    const uint32_t nodes = project(p, i + 1, 1);
    return nodes ? nodes + 1 : 0;
}

/* ---- the table ---- */

static uint32_t linear(struct tfm__cl_phaser *p, uint32_t i)
{
    return project(p, i, 0);
}

uint32_t tfm__cl_phase_rules(struct tfm__cl_phaser *p, uint32_t i)
{
    static const struct {
        uint32_t (*rule)(struct tfm__cl_phaser *p, uint32_t i);
        uint32_t kind; /* of an op as it is */
    } rules[TFM_OP_LIMIT] = {
        [TFM_OP_EMBEDDING] = {.kind = TFM_PHASE_EMBEDDING},
        [TFM_OP_TAKE_ROWS] = {.kind = TFM_PHASE_TAKE_ROWS},
        [TFM_OP_ROPE] = {.kind = TFM_PHASE_ROPE},
        [TFM_OP_ADD] = {.kind = TFM_PHASE_ADD},
        [TFM_OP_SWIGLU] = {.kind = TFM_PHASE_SWIGLU},
        [TFM_OP_RMS_NORM] = {.rule = norm},
        [TFM_OP_LINEAR] = {.rule = linear},
        [TFM_OP_GQA_ATTENTION] = {.rule = attention},
    };
    const struct tfm_node *node = node_at(p, i);

    if ((unsigned)node->op >= TFM_OP_LIMIT || (!rules[node->op].rule && !rules[node->op].kind) ||
        (node->op == TFM_OP_ROPE && node->attrs.inverse)) {
        snprintf(p->phases->reason, sizeof p->phases->reason, "%s: op %d has no phase",
                 node->scope && node->scope->name ? node->scope->name : "graph", (int)node->op);
        return 0;
    }
    return rules[node->op].rule ? rules[node->op].rule(p, i) : plain(p, i, rules[node->op].kind);
}
