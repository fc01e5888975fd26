/* SPDX-License-Identifier: MIT
 * The optimizer: a graph that sums the squares of all gradients and one that updates all parameters, as two plans whose
 * execs share the variables of forward and backward. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/optimizer.h>

#include "lib/core/checked.h"

/* A graph of its own; one run of one row. */
struct part {
    struct tfm_graph *graph;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
};

/* Parameters of one rule and precision share an input of settings. */
struct group {
    struct tfm_optimizer_rule rule;
    enum tfm_dtype dtype;           /* of moments and settings */
    double hyper[TFM_ADAMW_HYPERS]; /* room for F64; what is bound */
};

/* One parameter. The tensors are those of the update's graph. */
struct entry {
    const struct tfm_tensor *parameter, *gradient, *master;
    uint32_t group;
    double squares; /* room for F64; an output of the norm is bound to it */
};

struct tfm_optimizer {
    struct tfm_adamw config;
    struct part norm, update;
    struct group *groups; /* [n], of which n_groups are in use */
    struct entry *entries;
    uint32_t n, n_groups;
    uint64_t steps;
    enum tfm_status failure; /* OK = it is not poisoned */
    struct tfm_error why;
};

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "optimizer: out of memory");
}

/* ---- the graphs ---- */

struct building {
    struct tfm_optimizer *o;
    const struct tfm_graph *source;
    tfm_optimizer_rules *rules;
    void *context;
    struct tfm_error *err;
};

static enum tfm_dtype exact_of(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

static int is_factor(double value)
{
    return isfinite(value) && value >= 0;
}

static enum tfm_status check_config(const struct tfm_adamw *c, struct tfm_error *err)
{
    if (!(c->beta1 >= 0 && c->beta1 < 1) || !(c->beta2 >= 0 && c->beta2 < 1))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "optimizer: beta1 is %g and beta2 %g, both must be in [0, 1)",
                             c->beta1, c->beta2);
    if (!is_factor(c->eps) || !is_factor(c->weight_decay) || !is_factor(c->clip))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "optimizer: eps is %g, weight_decay %g and clip %g, none may be "
                             "negative or infinite",
                             c->eps, c->weight_decay, c->clip);
    return TFM_STATUS_OK;
}

/* A tensor "NAME.SUFFIX" of the shape of `like`. */
static struct tfm_tensor *make_state(struct building *b, struct tfm_graph *graph,
                                     const struct tfm_tensor *like, const char *suffix)
{
    const size_t size = strlen(like->name) + strlen(suffix) + 2;
    char *name = malloc(size);

    if (!name) {
        no_memory(b->err);
        return NULL;
    }
    snprintf(name, size, "%s.%s", like->name, suffix);
    struct tfm_tensor *made =
        tfm_graph_state(graph, name, exact_of(like->dtype), like->rank, like->shape);
    free(name);
    return made;
}

static enum tfm_status find_group(struct building *b, const struct tfm_tensor *parameter,
                                  uint32_t *index)
{
    struct tfm_optimizer *o = b->o;
    const struct tfm_optimizer_rule rule = b->rules(b->context, b->source, parameter);
    const enum tfm_dtype dtype = exact_of(parameter->dtype);
    uint32_t i = 0;

    if (!is_factor(rule.rate) || !is_factor(rule.decay))
        return tfm_error_set(b->err, TFM_STATUS_INVALID_ARGUMENT,
                             "optimizer: the rule of \"%s\" has the factors %g and %g, none may be "
                             "negative or infinite",
                             parameter->name, rule.rate, rule.decay);
    while (i < o->n_groups && (o->groups[i].dtype != dtype || o->groups[i].rule.rate != rule.rate ||
                               o->groups[i].rule.decay != rule.decay))
        i++;
    if (i == o->n_groups)
        o->groups[o->n_groups++] = (struct group){.rule = rule, .dtype = dtype};
    *index = i;
    return TFM_STATUS_OK;
}

static struct tfm_tensor *settings_of(struct building *b, uint32_t group)
{
    char name[40];

    snprintf(name, sizeof name, "adamw settings %u", group);
    return tfm_graph_input(b->o->update.graph, name, b->o->groups[group].dtype, 2,
                           (int64_t[]){0, TFM_ADAMW_HYPERS});
}

/* Nodes of one parameter in both graphs. */
static enum tfm_status add_parameter(void *context, const struct tfm_tensor *parameter)
{
    struct building *b = context;
    struct tfm_optimizer *o = b->o;
    struct entry *e = &o->entries[o->n];
    char name[40];

    if (!parameter->is_trainable || !tfm_graph_gradient(b->source, parameter))
        return TFM_STATUS_OK;
    const enum tfm_status status = find_group(b, parameter, &e->group);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_tensor *squares =
        tfm_op_sum_squares(o->norm.graph, make_state(b, o->norm.graph, parameter, "grad"));
    snprintf(name, sizeof name, "squares %u", o->n);
    tfm_graph_output(o->norm.graph, squares, name);

    struct tfm_graph *graph = o->update.graph;
    struct tfm_tensor *w =
        tfm_graph_train(graph, tfm_graph_parameter(graph, parameter->name, parameter->dtype,
                                                   parameter->rank, parameter->shape));
    struct tfm_tensor *g = make_state(b, graph, parameter, "grad");
    struct tfm_tensor *m = make_state(b, graph, parameter, "m");
    struct tfm_tensor *v = make_state(b, graph, parameter, "v");
    struct tfm_tensor *master = exact_of(parameter->dtype) == parameter->dtype
                                    ? NULL
                                    : make_state(b, graph, parameter, "master");
    tfm_op_adamw(graph, w, g, m, v, settings_of(b, e->group), master);
    e->parameter = w;
    e->gradient = g;
    e->master = master;
    o->n++;
    return b->err->status;
}

static enum tfm_status count_parameter(void *context, const struct tfm_tensor *parameter)
{
    size_t *n = context;

    *n += parameter->is_trainable != 0;
    return TFM_STATUS_OK;
}

static enum tfm_status build(struct building *b)
{
    struct tfm_optimizer *o = b->o;
    size_t most = 0, bytes;

    tfm_graph_parameters(b->source, count_parameter, &most);
    if (tfm__mul_size(most + 1, sizeof *o->entries + sizeof *o->groups, &bytes))
        return no_memory(b->err);
    o->entries = calloc(most + 1, sizeof *o->entries);
    o->groups = calloc(most + 1, sizeof *o->groups);
    if (!o->entries || !o->groups)
        return no_memory(b->err);
    enum tfm_status status = tfm_graph_create(&o->norm.graph, b->err);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_create(&o->update.graph, b->err);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_parameters(b->source, add_parameter, b);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_check(o->norm.graph, b->err);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_check(o->update.graph, b->err);
    if (status == TFM_STATUS_OK && o->n == 0)
        status = tfm_error_set(b->err, TFM_STATUS_INVALID_ARGUMENT,
                               "optimizer: no trainable parameter of the graph has a gradient: "
                               "call tfm_graph_train and tfm_graph_backward before compiling");
    return status;
}

/* ---- plans and execs ---- */

static enum tfm_status open_part(struct part *part, struct tfm_exec *exec,
                                 struct tfm_weights *weights, struct tfm_device *const *devices,
                                 size_t n_devices, struct tfm_error *err)
{
    const struct tfm_capacity capacity = {.rows = 1, .sequences = 1};
    enum tfm_status status =
        tfm_plan_compile(part->graph, weights, devices, n_devices, &capacity, &part->plan, err);

    if (status == TFM_STATUS_OK)
        status = tfm_exec_create_sharing(part->plan, exec, &part->exec, err);
    return status;
}

static void close_part(struct part *part)
{
    tfm_exec_destroy(part->exec);
    tfm_plan_destroy(part->plan);
    tfm_graph_destroy(part->graph);
}

static enum tfm_status bind(struct tfm_optimizer *o, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    char name[40];

    for (uint32_t i = 0; i < o->n && status == TFM_STATUS_OK; i++) {
        snprintf(name, sizeof name, "squares %u", i);
        status = tfm_exec_bind(o->norm.exec, name, &o->entries[i].squares,
                               tfm_dtype_info(o->entries[i].gradient->dtype)->bytes, err);
    }
    for (uint32_t i = 0; i < o->n_groups && status == TFM_STATUS_OK; i++) {
        snprintf(name, sizeof name, "adamw settings %u", i);
        status = tfm_exec_bind(o->update.exec, name, o->groups[i].hyper,
                               TFM_ADAMW_HYPERS * tfm_dtype_info(o->groups[i].dtype)->bytes, err);
    }
    return status;
}

/* The graph has checked that they can be counted. */
static size_t bytes_of(const struct tfm_tensor *t)
{
    return (size_t)tfm_tensor_elements(t) * tfm_dtype_info(t->dtype)->bytes;
}

/* Exact values begin as what the narrow parameter holds. */
static enum tfm_status fill_master(struct tfm_optimizer *o, const struct entry *e,
                                   struct tfm_error *err)
{
    const size_t n = (size_t)tfm_tensor_elements(e->parameter);
    void *narrow = malloc(bytes_of(e->parameter));
    float *exact = malloc(bytes_of(e->master));
    enum tfm_status status = narrow && exact ? TFM_STATUS_OK : no_memory(err);

    if (status == TFM_STATUS_OK)
        status = tfm_exec_state_read(o->update.exec, e->parameter->name, narrow,
                                     bytes_of(e->parameter), err);
    if (status == TFM_STATUS_OK) {
        tfm_dtype_to_f32(e->parameter->dtype, narrow, 0, n, exact);
        status =
            tfm_exec_state_write(o->update.exec, e->master->name, exact, bytes_of(e->master), err);
    }
    free(narrow);
    free(exact);
    return status;
}

static enum tfm_status fill_masters(struct tfm_optimizer *o, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t i = 0; i < o->n && status == TFM_STATUS_OK; i++) {
        if (o->entries[i].master)
            status = fill_master(o, &o->entries[i], err);
    }
    return status;
}

enum tfm_status tfm_optimizer_create(struct tfm_plan *plan, struct tfm_exec *exec,
                                     struct tfm_weights *weights, struct tfm_device *const *devices,
                                     size_t n_devices, const struct tfm_adamw *config,
                                     tfm_optimizer_rules *rules, void *context,
                                     struct tfm_optimizer **optimizer, struct tfm_error *err)
{
    struct tfm_error own = {0};

    err = err ? err : &own;
    tfm_error_clear(err);
    enum tfm_status status = check_config(config, err);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return no_memory(err);
    o->config = *config;
    struct building b = {o, tfm_plan_graph(plan), rules ? rules : tfm_optimizer_usual_rules,
                         context, err};
    status = build(&b);
    if (status == TFM_STATUS_OK)
        status = open_part(&o->norm, exec, weights, devices, n_devices, err);
    if (status == TFM_STATUS_OK)
        status = open_part(&o->update, exec, weights, devices, n_devices, err);
    if (status == TFM_STATUS_OK)
        status = bind(o, err);
    if (status == TFM_STATUS_OK)
        status = fill_masters(o, err);
    if (status != TFM_STATUS_OK) {
        tfm_optimizer_destroy(o);
        return status;
    }
    *optimizer = o;
    return TFM_STATUS_OK;
}

void tfm_optimizer_destroy(struct tfm_optimizer *o)
{
    if (!o)
        return;
    close_part(&o->norm);
    close_part(&o->update);
    free(o->entries);
    free(o->groups);
    free(o);
}

/* ---- a step ---- */

static const struct tfm_rows one_row = {.n = 1};

/* The squared norm of all gradients as they are. */
static enum tfm_status measure(struct tfm_optimizer *o, double *squares, struct tfm_error *err)
{
    const enum tfm_status status = tfm_exec_run(o->norm.exec, &one_row, err);
    double sum = 0;

    if (status != TFM_STATUS_OK)
        return status;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct entry *e = &o->entries[i];
        double value;
        tfm_dtype_to_f64(e->gradient->dtype, &e->squares, 0, 1, &value);
        if (!isfinite(value))
            return tfm_error_set(
                err, TFM_STATUS_OUT_OF_RANGE,
                "optimizer: in step %llu the gradient of \"%s\" is not finite (the sum of its "
                "squares is %g); no parameter was changed",
                (unsigned long long)o->steps + 1, e->parameter->name, value);
        sum += value;
    }
    *squares = sum;
    return TFM_STATUS_OK;
}

/* Settings of the step to come, for all groups. */
static void set_hyper(struct tfm_optimizer *o, double rate, double factor)
{
    const double t = (double)o->steps + 1;

    for (uint32_t i = 0; i < o->n_groups; i++) {
        struct group *g = &o->groups[i];
        /* as the device has them: what corrects the moments must match what they were made with */
        const int single = g->dtype == TFM_DTYPE_F32;
        const double beta1 = single ? (double)(float)o->config.beta1 : o->config.beta1;
        const double beta2 = single ? (double)(float)o->config.beta2 : o->config.beta2;
        const double values[TFM_ADAMW_HYPERS] = {
            [TFM_ADAMW_RATE] = rate * g->rule.rate,
            [TFM_ADAMW_BETA1] = beta1,
            [TFM_ADAMW_BETA2] = beta2,
            [TFM_ADAMW_EPS] = o->config.eps,
            [TFM_ADAMW_DECAY] = rate * g->rule.rate * o->config.weight_decay * g->rule.decay,
            [TFM_ADAMW_FACTOR] = factor,
            [TFM_ADAMW_CORRECTION1] = 1 / (1 - pow(beta1, t)),
            [TFM_ADAMW_CORRECTION2] = 1 / (1 - pow(beta2, t)),
        };
        tfm_dtype_from_f64(g->dtype, values, g->hyper, 0, TFM_ADAMW_HYPERS);
    }
}

static enum tfm_status run_update(struct tfm_optimizer *o, struct tfm_error *err)
{
    struct tfm_error why = {0};
    const enum tfm_status status = tfm_exec_run(o->update.exec, &one_row, &why);

    if (status == TFM_STATUS_OK) {
        o->steps++;
        return TFM_STATUS_OK;
    }
    o->failure = status;
    o->why = why;
    return tfm_optimizer_check(o, err);
}

enum tfm_status tfm_optimizer_step(struct tfm_optimizer *o, double rate, double scale,
                                   struct tfm_optimizer_report *report, struct tfm_error *err)
{
    double squares = 0;

    tfm_error_clear(err);
    if (!is_factor(rate) || !is_factor(scale) || scale == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "optimizer: the rate %g must be 0 or more and the scale %g above 0",
                             rate, scale);
    enum tfm_status status = tfm_optimizer_check(o, err);
    if (status == TFM_STATUS_OK)
        status = measure(o, &squares, err);
    if (status != TFM_STATUS_OK)
        return status;
    const double norm = scale * sqrt(squares), clip = o->config.clip;
    const double clipped = clip > 0 && norm > clip ? clip / norm : 1;
    set_hyper(o, rate, scale * clipped);
    status = run_update(o, err);
    if (status == TFM_STATUS_OK && report)
        *report = (struct tfm_optimizer_report){norm, clipped};
    return status;
}

/* ---- around it ---- */

enum tfm_status tfm_optimizer_check(const struct tfm_optimizer *o, struct tfm_error *err)
{
    tfm_error_clear(err);
    if (o->failure == TFM_STATUS_OK)
        return TFM_STATUS_OK;
    return tfm_error_set(err, o->failure,
                         "optimizer: the update of step %llu broke off (%s): the parameters are "
                         "neither those before nor those after it; load a checkpoint",
                         (unsigned long long)o->steps + 1,
                         o->why.text[0] ? o->why.text : tfm_status_text(o->failure));
}

enum tfm_status tfm_optimizer_heal(struct tfm_optimizer *o, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    size_t most = 1;

    tfm_error_clear(err);
    for (uint32_t i = 0; i < o->n; i++)
        most = bytes_of(o->entries[i].gradient) > most ? bytes_of(o->entries[i].gradient) : most;
    void *zeros = calloc(1, most);
    if (!zeros)
        return no_memory(err);
    for (uint32_t i = 0; i < o->n && status == TFM_STATUS_OK; i++)
        status = tfm_exec_state_write(o->update.exec, o->entries[i].gradient->name, zeros,
                                      bytes_of(o->entries[i].gradient), err);
    free(zeros);
    if (status == TFM_STATUS_OK) {
        o->failure = TFM_STATUS_OK;
        tfm_error_clear(&o->why);
    }
    return status;
}

uint64_t tfm_optimizer_steps(const struct tfm_optimizer *o)
{
    return o->steps;
}

void tfm_optimizer_set_steps(struct tfm_optimizer *o, uint64_t steps)
{
    o->steps = steps;
}

struct tfm_exec *tfm_optimizer_exec(struct tfm_optimizer *o)
{
    return o->update.exec;
}

const struct tfm_graph *tfm_optimizer_graph(const struct tfm_optimizer *o)
{
    return o->update.graph;
}

void tfm_optimizer_summarize(const struct tfm_optimizer *o, struct tfm_plan_summary *summary)
{
    struct tfm_plan_summary norm;

    tfm_plan_summarize(o->update.plan, summary);
    tfm_plan_summarize(o->norm.plan, &norm);
    tfm_plan_summary_add(summary, &norm);
}
