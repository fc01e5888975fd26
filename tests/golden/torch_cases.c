/* SPDX-License-Identifier: MIT
 * Runs each case of torch/index.json through graph, plan and exec. A test is a layer: it counts the cases
 * that differ from PyTorch's float64, and names each. Faults caught: a formula, mask, order, transposition
 * or pairing that our own two backends share; an f16 or bf16 result that was rounded twice, or before gamma. */
#include <check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/plan.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/golden/torch_bounds.h"
#include "tests/golden/torch_case.h"
#include "tests/golden/torch_cases.h"

enum { SEQUENCES = 4, ROWS = 256 };

static struct test_devices devices;
static json_t *golden;

/* What one case needs while it runs. */
struct play {
    const struct torch_case *c;
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    struct tfm_capacity capacity;
    unsigned char *input[TORCH_TENSORS]; /* rows of one run */
    unsigned char *output;
    char output_name[32];
    double *got; /* of all runs */
    size_t n_got;
    struct tfm_error err;
    char why[1000]; /* longer than TORCH_WHY and an error text */
};

static int fails(struct play *p, const char *what)
{
    snprintf(p->why, sizeof p->why, "%s", what);
    return 0;
}

static int passes(struct play *p, enum tfm_status status)
{
    return status == TFM_STATUS_OK ? 1 : fails(p, p->err.text);
}

/* ---- graph and weights ---- */

/* Rows, sequences of the largest run. */
static void measure(struct play *p)
{
    for (size_t r = 0; r < json_array_size(p->c->runs); r++) {
        const json_t *run = json_array_get(p->c->runs, r);
        uint32_t rows = 0;
        const uint32_t sequences = (uint32_t)json_array_size(run);
        for (size_t s = 0; s < json_array_size(run); s++)
            rows += (uint32_t)json_integer_value(json_array_get(json_array_get(run, s), 2));
        p->capacity.rows = rows > p->capacity.rows ? rows : p->capacity.rows;
        p->capacity.sequences =
            sequences > p->capacity.sequences ? sequences : p->capacity.sequences;
    }
    p->capacity.out_rows = p->capacity.rows;
}

static int set_weights(struct play *p)
{
    for (size_t i = 0; i < p->c->n_tensors; i++) {
        const struct torch_tensor *t = &p->c->tensors[i];
        if (!tfm_graph_find(p->graph, t->name))
            return fails(p, t->name);
        if (!t->is_input &&
            !passes(p, tfm_weights_set(p->weights, t->name, t->dtype, t->array.rank, t->array.shape,
                                       t->array.data, t->array.bytes, &p->err)))
            return 0;
    }
    return 1;
}

/* A parameter that the golden file does not know would be filled with anything. */
static enum tfm_status is_golden(void *context, const struct tfm_tensor *tensor)
{
    struct play *p = context;

    return torch_tensor(p->c, tensor->name)
               ? TFM_STATUS_OK
               : tfm_error_set(&p->err, TFM_STATUS_NOT_FOUND,
                               "the layer has a parameter '%s', the golden file has not",
                               tensor->name);
}

static int build(struct play *p)
{
    struct tfm_tensor *y = NULL;

    if (!passes(p, tfm_graph_create(&p->graph, &p->err)) ||
        !passes(p, tfm_weights_create(&p->weights, &p->err)))
        return 0;
    y = torch_layer_build(p->graph, p->c);
    if (!passes(p, tfm_graph_check(p->graph, &p->err)))
        return 0;
    if (!y)
        return fails(p, "there is no such layer");
    if (y->dtype != p->c->dtype)
        return fails(p, "the result has another dtype");
    if (y->kind == TFM_TENSOR_OUTPUT)
        snprintf(p->output_name, sizeof p->output_name, "%s", y->name);
    else
        snprintf(p->output_name, sizeof p->output_name, "y");
    if (y->kind != TFM_TENSOR_OUTPUT)
        tfm_graph_output(p->graph, y, "y");
    return passes(p, tfm_graph_check(p->graph, &p->err)) && set_weights(p) &&
           passes(p, tfm_graph_parameters(p->graph, is_golden, p)) &&
           passes(p, tfm_nn_init_weights(p->graph, 1, p->weights, &p->err));
}

/* ---- runs ---- */

static size_t row_bytes(const struct torch_tensor *t)
{
    return t->array.bytes / (size_t)t->array.shape[0];
}

/* A refusal of f64 is none of a wrong result; of anything else it is. */
static int compile(struct play *p, int *refused)
{
    const enum tfm_status status = tfm_plan_compile(p->graph, p->weights, devices.device, devices.n,
                                                    &p->capacity, &p->plan, &p->err);

    *refused = (status == TFM_STATUS_UNSUPPORTED || status == TFM_STATUS_STRICT) &&
               p->c->dtype == TFM_DTYPE_F64 && strcmp(test_backend, "reference") != 0;
    return *refused || passes(p, status);
}

static int bind(struct play *p)
{
    size_t width = tfm_dtype_info(p->c->dtype)->bytes;

    for (int i = 1; i < p->c->want.rank; i++)
        width *= (size_t)p->c->want.shape[i];
    if (!passes(p, tfm_exec_create(p->plan, &p->exec, &p->err)))
        return 0;
    for (size_t i = 0; i < p->c->n_tensors; i++) {
        const struct torch_tensor *t = &p->c->tensors[i];
        const size_t bytes = row_bytes(t) * p->capacity.rows;
        if (!t->is_input)
            continue;
        p->input[i] = calloc(1, bytes);
        if (!p->input[i] ||
            !passes(p, tfm_exec_bind(p->exec, t->name, p->input[i], bytes, &p->err)))
            return 0;
    }
    p->output = calloc(p->capacity.rows, width);
    p->got = calloc(p->c->want.count, sizeof *p->got);
    return p->output && p->got &&
           passes(p, tfm_exec_bind(p->exec, p->output_name, p->output, width * p->capacity.rows,
                                   &p->err));
}

/* One run: rows `first` and on of the inputs. */
static int run(struct play *p, const json_t *sequences, size_t *first)
{
    int32_t slot[SEQUENCES], start[SEQUENCES], past[SEQUENCES], out[ROWS], at = 0;
    const size_t n = json_array_size(sequences);
    const size_t width = p->c->want.count / (size_t)p->c->want.shape[0];

    if (n > SEQUENCES || p->capacity.rows > ROWS)
        return fails(p, "more sequences or rows than this test has room for");
    for (size_t s = 0; s < n; s++) {
        int length = 0;
        if (json_unpack(json_array_get(sequences, s), "[i, i, i]", &slot[s], &past[s], &length))
            return fails(p, "a run is no list of [slot, past, rows]");
        start[s] = at;
        at += length;
    }
    for (int32_t i = 0; i < at; i++)
        out[i] = i;
    if (*first + (size_t)at > (size_t)p->c->want.shape[0])
        return fails(p, "the runs have more rows than the result");
    for (size_t i = 0; i < p->c->n_tensors; i++) {
        const struct torch_tensor *t = &p->c->tensors[i];
        if (p->input[i])
            memcpy(p->input[i], (const char *)t->array.data + *first * row_bytes(t),
                   (size_t)at * row_bytes(t));
    }
    const struct tfm_rows rows = {(uint32_t)at, (uint32_t)n, (uint32_t)at, slot, start, past, out};
    if (!passes(p, tfm_exec_run(p->exec, &rows, &p->err)))
        return 0;
    tfm_dtype_to_f64(p->c->dtype, p->output, 0, (size_t)at * width, p->got + *first * width);
    *first += (size_t)at;
    return 1;
}

static int run_all(struct play *p)
{
    size_t rows = 0;

    for (size_t r = 0; r < json_array_size(p->c->runs); r++)
        if (!run(p, json_array_get(p->c->runs, r), &rows))
            return 0;
    if (rows != (size_t)p->c->want.shape[0])
        return fails(p, "the runs have fewer rows than the result");
    return torch_compare(p->c->bound, p->c->dtype, p->got, p->c->want.data, p->c->want.count,
                         (size_t)p->c->want.shape[p->c->want.rank - 1], p->why);
}

static void clear(struct play *p)
{
    tfm_exec_destroy(p->exec);
    tfm_plan_destroy(p->plan);
    tfm_weights_release(p->weights);
    tfm_graph_destroy(p->graph);
    for (size_t i = 0; i < TORCH_TENSORS; i++)
        free(p->input[i]);
    free(p->output);
    free(p->got);
}

/* 1 = near enough, 0 = not, after it has said why. */
static int play(const struct torch_case *c, unsigned *refusals)
{
    struct play p = {.c = c};
    int refused = 0;

    measure(&p);
    int good = build(&p) && compile(&p, &refused) && (refused || (bind(&p) && run_all(&p)));
    *refusals += refused != 0;
    if (!good)
        fprintf(stderr, "# %s: %s\n", c->label, p.why);
    clear(&p);
    return good;
}

START_TEST(layer_is_torch)
{
    const char *layer = torch_layer_name((size_t)_i);
    unsigned n = 0, wrong = 0, refused = 0;

    for (size_t i = 0; i < json_array_size(golden); i++) {
        const json_t *json = json_array_get(golden, i);
        struct torch_case c;
        const char *name = json_string_value(json_object_get(json, "layer"));
        if (!name || strcmp(name, layer) != 0)
            continue;
        ck_assert(torch_case_read(json, &c));
        wrong += !play(&c, &refused);
        n++;
        torch_case_free(&c);
    }
    ck_assert_msg(n > 0, "%s: no case", layer);
    ck_assert_msg(wrong == 0, "%s: %u of %u cases differ", layer, wrong, n);
    ck_assert_msg(refused < n, "%s: all %u cases were refused", layer, n);
}
END_TEST

/* A layer that no test asks for would never be compared. */
START_TEST(every_case_has_a_layer)
{
    for (size_t i = 0; i < json_array_size(golden); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(golden, i), "layer"));
        size_t k = 0;
        while (torch_layer_name(k) && name && strcmp(torch_layer_name(k), name) != 0)
            k++;
        ck_assert_msg(torch_layer_name(k) != NULL, "case %zu: layer '%s'", i, name ? name : "");
    }
    ck_assert_uint_gt(json_array_size(golden), 400);
}
END_TEST

static void setup(void)
{
    test_devices_open(&devices);
    golden = torch_index_read();
    ck_assert_ptr_nonnull(golden);
}

static void teardown(void)
{
    json_decref(golden);
    test_devices_close(&devices);
}

int torch_cases_run(const char *backend)
{
    int layers = 0;

    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend under test is not here");
    while (torch_layer_name((size_t)layers))
        layers++;
    Suite *suite = suite_create("torch");
    TCase *tcase = tests_case(suite, backend);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_case_has_a_layer);
    tcase_add_loop_test(tcase, layer_is_torch, 0, layers);
    return tests_run(suite);
}
