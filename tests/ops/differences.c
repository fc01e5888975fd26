/* SPDX-License-Identifier: MIT
 * Gradients beside central differences. */
#include "tests/ops/differences.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tfm/plan.h>

#include "lib/check/sample.h"

enum { TENSORS = 12, SEQUENCES = 4 };

/* An input or parameter with its values and its gradient; an input that is no float has no gradient. */
struct variable {
    const struct tfm_tensor *tensor;
    char name[64], gradient_name[80];
    size_t n;
    double *values, *gradient;
    int32_t *indices;
};

struct trial_of {
    const struct differences *d;
    struct tfm_registry *registry;
    struct tfm_device *device;
    struct tfm_weights *weights;
    struct tfm_graph *graph;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    struct variable variables[TENSORS];
    size_t n_variables, n_y;
    double *y, *seed;
};

static void ok(const struct differences *d, enum tfm_status status, const struct tfm_error *err)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s: %s", d->what, err->text);
}

static void *array(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static size_t count(const struct differences *d, const struct tfm_tensor *t)
{
    return (size_t)((t->extent == TFM_EXTENT_FIXED ? t->shape[0] : d->rows) *
                    tfm_tensor_row_elements(t));
}

static int is_input(const struct variable *v)
{
    return v->tensor->kind == TFM_TENSOR_INPUT;
}

/* Everything that the builder made: inputs are watched. */
static void gather(struct trial_of *t)
{
    const double size = t->d->size > 0 ? t->d->size : 1;

    for (uint32_t i = 0; i < tfm_graph_tensor_count(t->graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(t->graph, i);
        struct variable *v = &t->variables[t->n_variables];
        if (tensor->view_of ||
            (tensor->kind != TFM_TENSOR_INPUT && tensor->kind != TFM_TENSOR_PARAMETER &&
             tensor->kind != TFM_TENSOR_BUFFER))
            continue;
        ck_assert_uint_lt(t->n_variables++, TENSORS);
        v->tensor = tensor;
        v->n = count(t->d, tensor);
        snprintf(v->name, sizeof v->name, "%s", tensor->name);
        snprintf(v->gradient_name, sizeof v->gradient_name, "d.%s", tensor->name);
        if (tensor->dtype == TFM_DTYPE_I32) {
            v->indices = array(v->n, sizeof *v->indices);
            for (size_t k = 0; k < v->n; k++)
                v->indices[k] = t->d->index(v->name, k, t->d->context);
            continue;
        }
        ck_assert_int_eq(tensor->dtype, TFM_DTYPE_F64);
        v->values = array(v->n, sizeof *v->values);
        v->gradient = array(v->n, sizeof *v->gradient);
        for (size_t k = 0; k < v->n; k++)
            v->values[k] = size * (2 * tfm__sample_random((uint64_t)i * 1000003 + k) - 1);
        if (is_input(v))
            tfm_graph_watch(t->graph, (struct tfm_tensor *)tensor);
    }
}

static void build(struct trial_of *t)
{
    const struct differences *d = t->d;
    struct tfm_error err = {0};

    ok(d, tfm_graph_create(&t->graph, &err), &err);
    struct tfm_tensor *y = d->build(t->graph, d->context);
    ok(d, tfm_graph_check(t->graph, &err), &err);
    gather(t);
    struct tfm_tensor *seed = tfm_graph_input(t->graph, "seed", TFM_DTYPE_F64, y->rank, y->shape);
    tfm_graph_output(t->graph, y, "y");
    ok(d, tfm_graph_backward(t->graph, 1, &y, &seed, &err), &err);
    for (size_t i = 0; i < t->n_variables; i++) {
        const struct variable *v = &t->variables[i];
        struct tfm_tensor *gradient = tfm_graph_gradient(t->graph, v->tensor);
        if (!v->values || (!is_input(v) && !v->tensor->is_trainable))
            continue;
        ck_assert_msg(gradient != NULL, "%s: %s has no gradient", d->what, v->name);
        if (is_input(v))
            tfm_graph_output(t->graph, gradient, v->gradient_name);
    }
    ok(d, tfm_graph_check(t->graph, &err), &err);
    t->n_y = count(d, y);
    t->y = array(t->n_y, sizeof *t->y);
    t->seed = array(t->n_y, sizeof *t->seed);
    for (size_t i = 0; i < t->n_y; i++)
        t->seed[i] = 2 * tfm__sample_random(77 + i) - 1;
}

static void bind(struct trial_of *t, const char *name, void *memory, size_t bytes)
{
    struct tfm_error err = {0};
    ok(t->d, tfm_exec_bind(t->exec, name, memory, bytes, &err), &err);
}

static void open_all(struct trial_of *t)
{
    const struct tfm_capacity capacity = {t->d->rows, t->d->sequences, t->d->rows};
    struct tfm_error err = {0};
    size_t n = 0;

    ok(t->d, tfm_registry_create(NULL, 0, &t->registry, &err), &err);
    ok(t->d, tfm_devices_open(t->registry, "reference", 0, &t->device, 1, &n, &err), &err);
    ok(t->d, tfm_weights_create(&t->weights, &err), &err);
    for (size_t i = 0; i < t->n_variables; i++) {
        const struct variable *v = &t->variables[i];
        const void *data = v->values ? (const void *)v->values : (const void *)v->indices;
        if (!is_input(v))
            ok(t->d,
               tfm_weights_set(t->weights, v->name, v->tensor->dtype, v->tensor->rank,
                               v->tensor->shape, data, v->n * (v->values ? 8 : 4), &err),
               &err);
    }
    ok(t->d, tfm_plan_compile(t->graph, t->weights, &t->device, 1, &capacity, &t->plan, &err),
       &err);
    ok(t->d, tfm_exec_create(t->plan, &t->exec, &err), &err);
    bind(t, "y", t->y, t->n_y * sizeof *t->y);
    bind(t, "seed", t->seed, t->n_y * sizeof *t->seed);
    for (size_t i = 0; i < t->n_variables; i++) {
        struct variable *v = &t->variables[i];
        if (!is_input(v))
            continue;
        bind(t, v->name, v->values ? (void *)v->values : (void *)v->indices,
             v->n * (v->values ? 8 : 4));
        if (v->values)
            bind(t, v->gradient_name, v->gradient, v->n * sizeof *v->gradient);
    }
}

/* The sum over y times its seed. */
static double run(struct trial_of *t)
{
    static const int32_t zero[SEQUENCES];
    const struct tfm_rows rows = {
        t->d->rows, t->d->sequences, 0, zero, t->d->start ? t->d->start : zero, zero, NULL};
    struct tfm_error err = {0};
    double sum = 0;

    ck_assert_uint_le(t->d->sequences, SEQUENCES);
    ok(t->d, tfm_exec_run(t->exec, &rows, &err), &err);
    for (size_t i = 0; i < t->n_y; i++)
        sum += t->y[i] * t->seed[i];
    return sum;
}

static void set(struct trial_of *t, const struct variable *v)
{
    struct tfm_error err = {0};

    if (!is_input(v))
        ok(t->d, tfm_exec_state_write(t->exec, v->name, v->values, v->n * sizeof *v->values, &err),
           &err);
}

static void compare(struct trial_of *t, struct variable *v, const double *gradient)
{
    const double eps = 1e-6;

    for (size_t i = 0; i < v->n; i++) {
        const double value = v->values[i];
        v->values[i] = value + eps;
        set(t, v);
        const double above = run(t);
        v->values[i] = value - eps;
        set(t, v);
        const double want = (above - run(t)) / (2 * eps);
        v->values[i] = value;
        set(t, v);
        if (!(fabs(gradient[i] - want) <= 1e-5 + 1e-3 * fabs(want)))
            ck_abort_msg("%s: gradient %zu of %s is %.9g, the difference says %.9g", t->d->what, i,
                         v->name, gradient[i], want);
    }
}

static void close_all(struct trial_of *t)
{
    for (size_t i = 0; i < t->n_variables; i++) {
        free(t->variables[i].values);
        free(t->variables[i].gradient);
        free(t->variables[i].indices);
    }
    free(t->y);
    free(t->seed);
    tfm_exec_destroy(t->exec);
    tfm_plan_destroy(t->plan);
    tfm_graph_destroy(t->graph);
    tfm_weights_release(t->weights);
    tfm_device_release(t->device);
    tfm_registry_destroy(t->registry);
}

void differences_check(const struct differences *d)
{
    struct trial_of t = {.d = d};
    double *first[TENSORS] = {NULL};
    struct tfm_error err = {0};

    build(&t);
    open_all(&t);
    run(&t);
    for (size_t i = 0; i < t.n_variables; i++) {
        struct variable *v = &t.variables[i];
        char name[80];
        if (!v->values || (!is_input(v) && !v->tensor->is_trainable))
            continue;
        snprintf(name, sizeof name, "%s.grad", v->name);
        if (!is_input(v))
            ok(d, tfm_exec_state_read(t.exec, name, v->gradient, v->n * 8, &err), &err);
        first[i] = array(v->n, sizeof *first[i]); /* later runs write others */
        for (size_t k = 0; k < v->n; k++)
            first[i][k] = v->gradient[k];
    }
    for (size_t i = 0; i < t.n_variables; i++) {
        if (first[i])
            compare(&t, &t.variables[i], first[i]);
        free(first[i]);
    }
    close_all(&t);
}
