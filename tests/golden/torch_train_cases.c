/* SPDX-License-Identifier: MIT
 * Trains each stack of tests/train/stacks.c from the numbers that make_train_golden.py starts with and compares with
 * torch_train/: what our own two backends and the differences of tests/train share would otherwise go unseen. */
#include "tests/golden/torch_train_cases.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tfm/optimizer.h>

#include "tests/golden/npy.h"
#include "tests/nn/net.h"
#include "tests/train/stacks.h"

/* Of a run, as in make_train_golden.py: sequences of 5, 1 and 7 rows. */
enum { ROWS = 13, SEQUENCES = 3, VOCAB = 7, MOST = 256 };

/* A line of index.json, and the numbers that belong to it. */
struct golden {
    json_t *index;
    const json_t *json;
    struct npy numbers; /* [2, n]: gradients, then parameters after all steps */
    const double *gradients, *parameters;
};

struct scene {
    struct golden golden;
    enum tfm_dtype dtype;
    double tolerance; /* of losses, norms, gradients and parameters */
    struct net net;
    struct tfm_optimizer *optimizer;
};

/* ---- the files ---- */

static void path_of(char *path, size_t size, const char *file)
{
    const char *folder = getenv("TFM_TEST_GOLDEN");

    snprintf(path, size, "%s/torch_train/%s", folder ? folder : "tests/golden", file);
}

static void golden_open(struct golden *g, int i)
{
    json_error_t error;
    char path[4096];

    path_of(path, sizeof path, "index.json");
    g->index = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(g->index != NULL, "%s: %s", path, error.text);
    ck_assert_uint_eq(json_array_size(g->index), TRAINING_STACKS);
    g->json = json_array_get(g->index, (size_t)i);
    path_of(path, sizeof path, json_string_value(json_object_get(g->json, "file")));
    const char *why = npy_read(path, &g->numbers);
    ck_assert_msg(why == NULL, "%s: %s", path, why ? why : "");
    ck_assert(strcmp(g->numbers.type, "f8") == 0 && g->numbers.rank == 2 &&
              g->numbers.shape[0] == 2);
    g->gradients = g->numbers.data;
    g->parameters = g->gradients + g->numbers.shape[1];
}

static void golden_close(struct golden *g)
{
    npy_free(&g->numbers);
    json_decref(g->index);
}

static double number(const struct golden *g, const char *key)
{
    const json_t *value = json_object_get(g->json, key);

    ck_assert_msg(json_is_number(value), "the index has no number '%s'", key);
    return json_number_value(value);
}

static double of_list(const struct golden *g, const char *key, size_t i)
{
    const json_t *list = json_object_get(g->json, key);

    ck_assert_msg(i < json_array_size(list), "the index has no '%s' %zu", key, i);
    return json_number_value(json_array_get(list, i));
}

/* Parameter `i` of the golden file in the graph, which must have its shape; NULL behind the last. */
static const struct tfm_tensor *parameter(const struct scene *s, size_t i)
{
    const json_t *line = json_array_get(json_object_get(s->golden.json, "parameters"), i);
    const char *name = json_string_value(json_array_get(line, 0));
    const json_t *shape = json_array_get(line, 1);

    if (!line)
        return NULL;
    const struct tfm_tensor *tensor = tfm_graph_find(s->net.graph, name);
    ck_assert_msg(tensor != NULL, "the stack has no '%s'", name);
    ck_assert_int_eq(tensor->rank, (int)json_array_size(shape));
    for (int r = 0; r < tensor->rank; r++)
        ck_assert_int_eq(tensor->shape[r], json_integer_value(json_array_get(shape, (size_t)r)));
    ck_assert_uint_le(net_elements(tensor), MOST);
    return tensor;
}

/* ---- a stack that is trained ---- */

static enum tfm_status count(void *context, const struct tfm_tensor *tensor)
{
    size_t *n = context;

    (void)tensor;
    ++*n;
    return TFM_STATUS_OK;
}

/* start() of make_train_golden.py. */
static void start(struct scene *s)
{
    size_t n = 0, in_graph = 0;
    double values[MOST];

    for (const struct tfm_tensor *p; (p = parameter(s, n)); n++) {
        const double base = strstr(p->name, "norm.weight") ? 1 : 0;
        for (size_t i = 0; i < net_elements(p); i++)
            values[i] = base + floor(1024 * net_random(n + 1, i)) / 2048;
        net_set(&s->net, p->name, values);
        tfm_graph_train(s->net.graph, (struct tfm_tensor *)p);
    }
    tfm_graph_parameters(s->net.graph, count, &in_graph);
    ck_assert_uint_eq(n, in_graph);
}

static void scene_begin(struct scene *s, int stack, enum tfm_dtype dtype)
{
    struct tfm_nn_decoder config;
    struct tfm_error err = {0};

    memset(s, 0, sizeof *s);
    s->dtype = dtype;
    s->tolerance = dtype == TFM_DTYPE_F64 ? 1e-9 : 1e-4;
    golden_open(&s->golden, stack);
    const char *name = training_stack(stack, dtype, &config);
    ck_assert_str_eq(name, json_string_value(json_object_get(s->golden.json, "name")));
    net_begin(&s->net, ROWS, SEQUENCES);
    struct tfm_graph *graph = s->net.graph;
    struct tfm_tensor *loss = tfm_nn_decoder_loss(graph, &config);
    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s: %s", name, err.text);
    start(s);
    struct tfm_tensor *seed = tfm_graph_input(graph, "seed", dtype, 1, (int64_t[]){0});
    ck_assert_msg(tfm_graph_backward(graph, 1, &loss, &seed, &err) == TFM_STATUS_OK, "%s: %s", name,
                  err.text);
    net_compile(&s->net, 1);
    const struct tfm_adamw adamw = {
        .beta1 = number(&s->golden, "beta1"),
        .beta2 = number(&s->golden, "beta2"),
        .eps = number(&s->golden, "eps"),
        .weight_decay = number(&s->golden, "decay"),
        .clip = number(&s->golden, "clip"),
    };
    ck_assert_msg(tfm_optimizer_create(s->net.plan, s->net.exec, s->net.weights,
                                       s->net.devices.device, s->net.devices.n, &adamw, NULL, NULL,
                                       &s->optimizer, &err) == TFM_STATUS_OK,
                  "%s: %s", name, err.text);
}

static void scene_end(struct scene *s)
{
    tfm_optimizer_destroy(s->optimizer);
    net_end(&s->net);
    golden_close(&s->golden);
}

/* Forward and backward of batch() of make_train_golden.py. Returns the sum of the losses; rows without a target have a
 * seed as well, which nothing may come of. */
static double run(struct scene *s, int32_t step, double *targets_in_all)
{
    static const int32_t slot[] = {0, 1, 2}, begin[] = {0, 5, 6, 13}, past[SEQUENCES] = {0};
    int32_t ids[ROWS], targets[ROWS], pos[ROWS];
    struct tfm_rows rows = net_rows(ROWS, 0);
    double losses[ROWS], ones[ROWS], sum = 0;

    for (int32_t i = 0; i < ROWS; i++) {
        ids[i] = (3 * i * i + 5 * step + i) % VOCAB;
        ones[i] = 1;
    }
    *targets_in_all = 0;
    for (int32_t q = 0; q < SEQUENCES; q++) {
        for (int32_t i = begin[q]; i < begin[q + 1]; i++) {
            pos[i] = i - begin[q];
            targets[i] = i + 1 == begin[q + 1] || i == 8 ? -1 : ids[i + 1];
            *targets_in_all += targets[i] >= 0;
        }
    }
    net_put_i32(&s->net, "ids", 0, ROWS, ids);
    net_put_i32(&s->net, "targets", 0, ROWS, targets);
    if (tfm_graph_find(s->net.graph, "pos"))
        net_put_i32(&s->net, "pos", 0, ROWS, pos);
    net_put(&s->net, "seed", 0, ROWS, ones);
    rows.n_seq = SEQUENCES;
    rows.slot = slot;
    rows.start = begin;
    rows.past = past;
    net_run(&s->net, &rows);
    net_get(&s->net, "loss", 0, ROWS, losses);
    for (int i = 0; i < ROWS; i++)
        sum += losses[i];
    return sum;
}

static void compare_loss(const struct scene *s, double got, size_t step)
{
    const double want = of_list(&s->golden, "losses", step);

    ck_assert_msg(fabs(got - want) <= s->tolerance * want,
                  "the loss before step %zu is %.12g, not %.12g", step, got, want);
}

static void variable(struct scene *s, const struct tfm_tensor *p, const char *suffix,
                     double *values)
{
    double raw[MOST];
    char name[128];
    struct tfm_error err = {0};
    const size_t n = net_elements(p);

    snprintf(name, sizeof name, "%s%s", p->name, suffix);
    ck_assert_msg(tfm_exec_state_read(s->net.exec, name, raw, n * tfm_dtype_info(s->dtype)->bytes,
                                      &err) == TFM_STATUS_OK,
                  "%s", err.text);
    tfm_dtype_to_f64(s->dtype, raw, 0, n, values);
}

static double largest_of(const double *values, size_t n)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(values[i]));
    return largest;
}

/* F64 tensors are the reference's alone. */
static int is_left_out(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 && strcmp(net_backend(), "reference") != 0;
}

/* ---- tests: stacks in F32, then in F64 ---- */

static enum tfm_dtype dtype_of(int i)
{
    return i < TRAINING_STACKS ? TFM_DTYPE_F32 : TFM_DTYPE_F64;
}

/* Catches: a derivative that is right for another function than PyTorch's, a row without a target that counts,
 * a parameter of the stack that is used otherwise. What must be 0 (softmax takes out a bias of k) is measured by
 * the largest gradient of all. */
START_TEST(loss_and_gradients)
{
    struct scene s;
    double got[MOST], targets;

    if (is_left_out(dtype_of(_i)))
        return;
    scene_begin(&s, _i % TRAINING_STACKS, dtype_of(_i));
    const double loss = run(&s, 0, &targets);
    compare_loss(&s, loss / targets, 0);
    const double *want = s.golden.gradients;
    const double scale = largest_of(want, (size_t)s.golden.numbers.shape[1]);
    const struct tfm_tensor *p;
    for (size_t k = 0; (p = parameter(&s, k)); k++) {
        const size_t n = net_elements(p);
        const double largest = largest_of(want, n);
        const double bound = s.tolerance * (largest > 1e-12 ? largest : scale);
        variable(&s, p, ".grad", got);
        for (size_t i = 0; i < n; i++)
            if (!(fabs(got[i] / targets - want[i]) <= bound))
                ck_abort_msg(
                    "%s: element %zu of %s.grad is %.12g, PyTorch has %.12g (largest %.3g)",
                    json_string_value(json_object_get(s.golden.json, "name")), i, p->name,
                    got[i] / targets, want[i], largest);
        want += n;
    }
    scene_end(&s);
}
END_TEST

/* Catches: AdamW that is another than PyTorch's in decay, corrections, eps or clipping; a parameter that decays and must
 * not, or the other way round; gradients of a step that are still there in the next. */
START_TEST(ten_steps)
{
    struct tfm_optimizer_report report;
    struct tfm_error err = {0};
    struct scene s;
    double got[MOST], targets;

    if (is_left_out(dtype_of(_i)))
        return;
    scene_begin(&s, _i % TRAINING_STACKS, dtype_of(_i));
    const size_t steps = json_array_size(json_object_get(s.golden.json, "rates"));
    ck_assert_uint_eq(steps, 10);
    for (size_t step = 0; step < steps; step++) {
        const double loss = run(&s, (int32_t)step, &targets), clip = number(&s.golden, "clip");
        compare_loss(&s, loss / targets, step);
        ck_assert_msg(tfm_optimizer_step(s.optimizer, of_list(&s.golden, "rates", step),
                                         1 / targets, &report, &err) == TFM_STATUS_OK,
                      "%s", err.text);
        const double norm = of_list(&s.golden, "norms", step);
        ck_assert_double_eq_tol(report.norm, norm, s.tolerance * norm);
        ck_assert_int_eq(report.clipped<1, clip> 0 && norm > clip);
    }
    const double loss = run(&s, (int32_t)steps, &targets);
    compare_loss(&s, loss / targets, steps);
    const double *want = s.golden.parameters;
    const struct tfm_tensor *p;
    for (size_t k = 0; (p = parameter(&s, k)); k++) {
        variable(&s, p, "", got);
        net_compare(got, want, net_elements(p), s.tolerance, p->name);
        want += net_elements(p);
    }
    scene_end(&s);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("torch_train");
    TCase *tcase = net_case(suite, "torch_train");

    tcase_add_loop_test(tcase, loss_and_gradients, 0, 2 * TRAINING_STACKS);
    tcase_add_loop_test(tcase, ten_steps, 0, 2 * TRAINING_STACKS);
    return suite;
}

int torch_train_cases_run(const char *backend)
{
    return net_main(backend, make);
}
