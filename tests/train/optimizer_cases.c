/* SPDX-License-Identifier: MIT
 * Cases of the optimizer, for every backend. */
#include "tests/train/optimizer_cases.h"

#include <math.h>
#include <stdio.h>

#include "tests/train/optimizer_scene.h"

static int is_reference(void)
{
    return strcmp(net_backend(), "reference") == 0;
}

/* ---- the numbers ---- */

/* What a plain loop in double makes of the parameters from the gradients that the device has. */
struct plain {
    double w[SCENE_PARAMETERS][SCENE_MOST], m[SCENE_PARAMETERS][SCENE_MOST],
        v[SCENE_PARAMETERS][SCENE_MOST];
    int t;
};

static double plain_step(struct plain *p, struct scene *s, const struct tfm_adamw *c, double rate,
                         double scale)
{
    double g[SCENE_PARAMETERS][SCENE_MOST], squares = 0;

    p->t++;
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        scene_read(s, i, ".grad", g[i]);
        for (size_t k = 0; k < scene_sizes[i]; k++)
            squares += scale * g[i][k] * scale * g[i][k];
    }
    const double norm = sqrt(squares), clipped = c->clip && norm > c->clip ? c->clip / norm : 1;
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        const double decay = i == 2 ? c->weight_decay : 0; /* only the weight of the linear */
        for (size_t k = 0; k < scene_sizes[i]; k++) {
            const double d = clipped * scale * g[i][k];
            p->m[i][k] = c->beta1 * p->m[i][k] + (1 - c->beta1) * d;
            p->v[i][k] = c->beta2 * p->v[i][k] + (1 - c->beta2) * d * d;
            p->w[i][k] -= rate * decay * p->w[i][k];
            p->w[i][k] -= rate * (p->m[i][k] / (1 - pow(c->beta1, p->t))) /
                          (sqrt(p->v[i][k] / (1 - pow(c->beta2, p->t))) + c->eps);
        }
    }
    return norm;
}

/* A narrow parameter is what its exact values round to. */
static void check_rounding(struct scene *s, int i)
{
    double exact[SCENE_MOST], got[SCENE_MOST], want[SCENE_MOST];
    unsigned char narrow[2 * SCENE_MOST];

    scene_read(s, i, ".master", exact);
    scene_read(s, i, "", got);
    tfm_dtype_from_f64(s->dtype, exact, narrow, 0, scene_sizes[i]);
    tfm_dtype_to_f64(s->dtype, narrow, 0, scene_sizes[i], want);
    for (size_t k = 0; k < scene_sizes[i]; k++)
        ck_assert_msg(got[k] == want[k], "%s: %zu is %.9g instead of %.9g", scene_names[i], k,
                      got[k], want[k]);
}

/* Fault: a term of the update is wrong, decay reaches what it must not, the corrections count steps wrongly, moments
 * are lost between steps, the norm leaves a parameter out, clipping is done for each parameter, gradients of
 * several runs do not add up or stay after a step; exact values do not begin as the narrow ones, or small steps
 * are lost because the narrow ones are what is updated. */
START_TEST(ten_steps_like_a_plain_loop)
{
    static const struct {
        struct tfm_adamw config;
        double rate, scale;
        int runs; /* that a step adds up */
    } ways[] = {
        {{0.9, 0.95, 1e-8, 0.1, 1}, 0.01, 0.125, 1},
        {{0.9, 0.999, 1e-8, 0, 0}, 0.001, 1, 1},
        {{0.5, 0.75, 0.01, 0.5, 0.25}, 0.1, 0.5, 3},
        {{0, 0, 1e-3, 0.01, 100}, 0.01, 1, 2},
    };
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64, TFM_DTYPE_BF16,
                                            TFM_DTYPE_F16};
    const enum tfm_dtype dtype = dtypes[_i % 4];
    const double tolerance = dtype == TFM_DTYPE_F64 ? 1e-13 : 1e-6;
    const int narrow = _i % 4 > 1;
    const struct tfm_adamw *config = &ways[_i / 4].config;
    struct tfm_optimizer_report report;
    struct plain plain = {.t = 0};
    struct scene s;
    double got[SCENE_MOST];

    if (dtype == TFM_DTYPE_F64 && !is_reference())
        return;
    scene_begin(&s, dtype, config, NULL, NULL);
    for (int i = 0; i < SCENE_PARAMETERS; i++)
        scene_read(&s, i, "", plain.w[i]);
    for (uint64_t t = 0; t < 10; t++) {
        const double rate = ways[_i / 4].rate * (1 + (double)t); /* another in each step */
        for (int r = 0; r < ways[_i / 4].runs; r++)
            scene_run(&s, 10 * t + (uint64_t)r);
        const double norm = plain_step(&plain, &s, config, rate, ways[_i / 4].scale);
        scene_step(&s, rate, ways[_i / 4].scale, &report);
        ck_assert_double_eq_tol(report.norm, norm, tolerance * norm);
        ck_assert_double_eq_tol(
            report.clipped, config->clip && norm > config->clip ? config->clip / norm : 1, 1e-6);
    }
    ck_assert_uint_eq(tfm_optimizer_steps(s.optimizer), 10);
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        const char *exact = narrow && i % 2 == 0 ? ".master" : "";
        scene_read(&s, i, exact, got);
        net_compare(got, plain.w[i], scene_sizes[i], tolerance, scene_names[i]);
        if (exact[0])
            check_rounding(&s, i);
        /* float betas, and what cancels in a mean of gradients of both signs */
        scene_read(&s, i, ".m", got);
        net_compare(got, plain.m[i], scene_sizes[i], 2 * tolerance, scene_names[i]);
        scene_read(&s, i, ".grad", got);
        for (size_t k = 0; k < scene_sizes[i]; k++)
            ck_assert_double_eq(got[k], 0);
    }
    scene_end(&s);
}
END_TEST

/* By hand, all numbers exact: beta1 0.5, beta2 0.75, eps 1, decay 0.5, rate 0.5, scale 0.5.
 *   t = 1: g = 4 0.5 = 2;  m = 1, m' = 2;  v = 1, v' = 4;  w = 8 - 0.25 8 - 0.5 2 / (2 + 1) = 6 - 1/3
 *   t = 2: g = 0;  m = 0.5, m' = 2/3;  v = 0.75, v' = 12/7
 * Fault: the decay comes after the step or is not decoupled from it, eps stands in the root, a correction is left out. */
START_TEST(two_steps_by_hand)
{
    const struct tfm_adamw config = {0.5, 0.75, 1, 0.5, 0};
    double w[SCENE_MOST] = {0}, g[SCENE_MOST] = {0};
    struct tfm_optimizer_report report;
    struct scene s;

    scene_begin(&s, TFM_DTYPE_F32, &config, NULL, NULL);
    w[29] = 8;
    g[29] = 4;
    scene_write(&s, 2, "", w);
    scene_write(&s, 2, ".grad", g);
    scene_step(&s, 0.5, 0.5, &report);
    ck_assert_double_eq(report.norm, 2);
    ck_assert_double_eq(report.clipped, 1);
    scene_read(&s, 2, "", w);
    ck_assert_double_eq_tol(w[29], 6 - 1.0 / 3, 1e-6);
    ck_assert_double_eq(w[0], 0);
    scene_step(&s, 0.5, 0.5, &report);
    ck_assert_double_eq(report.norm, 0);
    scene_read(&s, 2, "", w);
    ck_assert_double_eq_tol(w[29], 0.75 * (6 - 1.0 / 3) - 0.5 * (2.0 / 3) / (sqrt(12.0 / 7) + 1),
                            1e-6);
    scene_end(&s);
}
END_TEST

/* Fault: the limit is compared with the norm of the sums instead of the scaled ones, with that of one parameter, or
 * a gradient that is short enough is made longer. Gradients 3 and 4 in two parameters: norm 5. */
START_TEST(clipping)
{
    static const struct {
        double clip, scale, norm, clipped;
    } ways[] = {{1, 1, 5, 0.2},   {5, 1, 5, 1},          {5.5, 1, 5, 1}, {0, 1, 5, 1},
                {1, 0.1, 0.5, 1}, {0.25, 0.1, 0.5, 0.5}, {2, 2, 10, 0.2}};
    const struct tfm_adamw config = {0, 0, 1, 0, ways[_i].clip};
    struct tfm_optimizer_report report;
    double three[SCENE_MOST] = {3}, four[SCENE_MOST] = {0, 4}, m[SCENE_MOST];
    struct scene s;

    scene_begin(&s, TFM_DTYPE_F32, &config, NULL, NULL);
    scene_write(&s, 1, ".grad", three);
    scene_write(&s, 3, ".grad", four);
    scene_step(&s, 0, ways[_i].scale, &report);
    ck_assert_double_eq_tol(report.norm, ways[_i].norm, 1e-6);
    ck_assert_double_eq_tol(report.clipped, ways[_i].clipped, 1e-7);
    scene_read(&s, 1, ".m", m);
    ck_assert_double_eq_tol(m[0], 3 * ways[_i].scale * ways[_i].clipped, 1e-6);
    scene_read(&s, 3, ".m", m);
    ck_assert_double_eq_tol(m[1], 4 * ways[_i].scale * ways[_i].clipped, 1e-6);
    scene_end(&s);
}
END_TEST

/* Fault: resumed from a checkpoint, the corrections begin anew. From step 1000 on moments that a steady gradient has
 * filled are taken as they are. */
START_TEST(steps_may_be_set)
{
    const struct tfm_adamw config = {0.5, 0.75, 0, 0, 0};
    double ones[SCENE_MOST], w[SCENE_MOST], before[SCENE_MOST];
    struct scene s;

    for (int i = 0; i < SCENE_MOST; i++)
        ones[i] = 1;
    scene_begin(&s, TFM_DTYPE_F32, &config, NULL, NULL);
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        scene_write(&s, i, ".grad", ones);
        scene_write(&s, i, ".m", ones);
        scene_write(&s, i, ".v", ones);
    }
    tfm_optimizer_set_steps(s.optimizer, 1000);
    scene_read(&s, 3, "", before);
    scene_step(&s, 0.125, 1, NULL);
    ck_assert_uint_eq(tfm_optimizer_steps(s.optimizer), 1001);
    scene_read(&s, 3, "", w);
    for (size_t k = 0; k < scene_sizes[3]; k++)
        ck_assert_double_eq_tol(w[k], before[k] - 0.125, 1e-6);
    scene_end(&s);
}
END_TEST

/* ---- rules ---- */

static struct tfm_tensor *parameter(struct net *net, const char *name, int64_t d0, int64_t d1)
{
    return tfm_graph_parameter(net->graph, name, TFM_DTYPE_F32, d1 ? 2 : 1, (int64_t[]){d0, d1});
}

/* Fault: the usual rules decay a norm, a bias, a table, a tied head or positions, or spare a matrix; an embedding has no
 * rate of its own. */
START_TEST(usual_rules)
{
    static const struct {
        const char *name;
        double rate, decay;
    } rules[] = {
        {"table", 0.25, 0}, {"positions", 0.25, 0}, {"gamma", 1, 0},
        {"beta", 1, 0},     {"weight", 1, 1},       {"bias", 1, 0},
        {"rel_bias", 1, 0}, {"head", 1, 1},         {"unused", 1, 0},
    };
    double rate = 0.25;
    struct net net;

    net_begin(&net, 4, 1);
    struct tfm_graph *g = net.graph;
    struct tfm_tensor *ids = net_input(&net, "ids", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *targets = net_input(&net, "targets", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *table = parameter(&net, "table", 9, 8), *lse;
    struct tfm_tensor *x =
        tfm_op_add(g, tfm_op_embedding(g, table, ids),
                   tfm_op_position_embedding(g, parameter(&net, "positions", 16, 8), ids));
    x = tfm_op_layer_norm(g, x, parameter(&net, "gamma", 8, 0), parameter(&net, "beta", 8, 0),
                          1e-5);
    x = tfm_op_linear(g, x, parameter(&net, "weight", 8, 8), parameter(&net, "bias", 8, 0));
    struct tfm_tensor *q = tfm_graph_reshape(g, x, 3, (int64_t[]){0, 2, 4});
    const struct tfm_attention config = {
        .rel_bias = parameter(&net, "rel_bias", 3, 2),
        .rel_bucket = tfm_graph_buffer(g, "bucket", TFM_DTYPE_I32, 1, (int64_t[]){5})};
    q = tfm_op_attention(g, q, q, q, &config);
    x = tfm_graph_reshape(g, q, 2, (int64_t[]){0, 8});
    tfm_op_cross_entropy(g, x, table, targets, 0, &lse); /* tied */
    net_output(&net, tfm_op_cross_entropy(g, x, parameter(&net, "head", 9, 8), targets, 0, &lse));
    parameter(&net, "unused", 3, 3);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct tfm_tensor *p = tfm_graph_find(g, rules[i].name);
        const struct tfm_optimizer_rule own = tfm_optimizer_usual_rules(&rate, g, p);
        const struct tfm_optimizer_rule plain = tfm_optimizer_usual_rules(NULL, g, p);
        ck_assert_msg(own.rate == rules[i].rate && own.decay == rules[i].decay, "%s: %g %g",
                      p->name, own.rate, own.decay);
        ck_assert_msg(plain.rate == 1 && plain.decay == rules[i].decay, "%s: %g %g", p->name,
                      plain.rate, plain.decay);
    }
    net_end(&net);
}
END_TEST

static struct tfm_optimizer_rule own_rules(void *context, const struct tfm_graph *graph,
                                           const struct tfm_tensor *parameter)
{
    int *asked = context;

    ck_assert_ptr_nonnull(tfm_graph_find(graph, parameter->name));
    ++*asked;
    if (strcmp(parameter->name, "table") == 0)
        return (struct tfm_optimizer_rule){0, 1}; /* it stays */
    return (struct tfm_optimizer_rule){strcmp(parameter->name, "gamma") == 0 ? 2 : 1, 0};
}

/* Fault: rules are not asked or not kept: one group's settings serve another parameter. */
START_TEST(parameters_have_rules)
{
    const struct tfm_adamw config = {0, 0, 0, 1, 0};
    static const double rates[SCENE_PARAMETERS] = {0, 2, 1, 1};
    double ones[SCENE_MOST], before[SCENE_PARAMETERS][SCENE_MOST], after[SCENE_MOST];
    struct scene s;
    int asked = 0;

    for (int i = 0; i < SCENE_MOST; i++)
        ones[i] = 1;
    scene_begin(&s, TFM_DTYPE_F32, &config, own_rules, &asked);
    ck_assert_int_eq(asked, SCENE_PARAMETERS);
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        scene_read(&s, i, "", before[i]);
        scene_write(&s, i, ".grad", ones);
    }
    scene_step(&s, 0.25, 1, NULL);
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        scene_read(&s, i, "", after);
        for (size_t k = 0; k < scene_sizes[i]; k++) /* m' / sqrt(v') = 1 */
            ck_assert_double_eq_tol(after[k], before[i][k] - 0.25 * rates[i], 1e-6);
    }
    scene_end(&s);
}
END_TEST

/* ---- what goes wrong ---- */

static void expect_unchanged(struct scene *s, const double *before, size_t n)
{
    double after[SCENE_ALL];

    ck_assert_uint_eq(scene_read_all(s, after), n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&after[i], &before[i], sizeof *after) == 0, "value %zu has changed",
                      i);
}

/* Fault: a NaN in one gradient spreads to all parameters, is not noticed, or the error leaves one to search for it. */
START_TEST(a_gradient_that_is_not_finite)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e30};
    double g[SCENE_MOST], before[SCENE_ALL];
    struct tfm_optimizer_report report = {-1, -1};
    struct tfm_error err = {0};
    struct scene s;

    scene_begin(&s, TFM_DTYPE_F32, &scene_config, NULL, NULL);
    scene_run(&s, 1);
    scene_step(&s, 0.01, 1, NULL);
    scene_run(&s, 2);
    for (int i = 1; i < SCENE_PARAMETERS; i++) { /* the first of several is named */
        scene_read(&s, i, ".grad", g);
        g[scene_sizes[i] - 1] = values[_i];
        scene_write(&s, i, ".grad", g);
    }
    const size_t n = scene_read_all(&s, before);
    ck_assert_int_eq(tfm_optimizer_step(s.optimizer, 0.01, 1, &report, &err),
                     TFM_STATUS_OUT_OF_RANGE);
    ck_assert_msg(strstr(err.text, "step 2") && strstr(err.text, "\"gamma\""), "%s", err.text);
    ck_assert_double_eq(report.norm, -1);
    ck_assert_uint_eq(tfm_optimizer_steps(s.optimizer), 1);
    expect_unchanged(&s, before, n);
    /* the step is dropped, and training goes on */
    ck_assert_int_eq(tfm_optimizer_check(s.optimizer, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_optimizer_heal(s.optimizer, &err) == TFM_STATUS_OK, "%s", err.text);
    scene_run(&s, 3);
    scene_step(&s, 0.01, 1, &report);
    ck_assert(isfinite(report.norm) && report.norm > 0);
    scene_end(&s);
}
END_TEST

/* Fault: nonsense is taken for a setting and shows much later, as NaN. */
START_TEST(settings_are_checked)
{
    static const struct {
        struct tfm_adamw config;
        const char *word;
    } wrong[] = {
        {{1, 0.95, 1e-8, 0, 0}, "beta1 is 1"},       {{0.9, -0.1, 1e-8, 0, 0}, "beta2 -0.1"},
        {{NAN, 0.95, 1e-8, 0, 0}, "beta1 is nan"},   {{0.9, 0.95, -1, 0, 0}, "eps is -1"},
        {{0.9, 0.95, 0, INFINITY, 0}, "weight_dec"}, {{0.9, 0.95, 0, 0, -1}, "clip -1"},
    };
    static const double steps[][2] = {{-1, 1}, {NAN, 1}, {1, 0}, {1, -1}, {1, INFINITY}};
    struct tfm_optimizer *none = NULL;
    double before[SCENE_ALL];
    struct tfm_error err;
    struct scene s;

    scene_begin(&s, TFM_DTYPE_F32, &scene_config, NULL, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(tfm_optimizer_create(s.net.plan, s.net.exec, s.net.weights,
                                              s.net.devices.device, s.net.devices.n,
                                              &wrong[i].config, NULL, NULL, &none, &err),
                         TFM_STATUS_INVALID_ARGUMENT);
        ck_assert_msg(strstr(err.text, wrong[i].word) != NULL, "%s: %s", wrong[i].word, err.text);
        ck_assert_ptr_null(none);
    }
    scene_run(&s, 1);
    const size_t n = scene_read_all(&s, before);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        ck_assert_int_eq(tfm_optimizer_step(s.optimizer, steps[i][0], steps[i][1], NULL, &err),
                         TFM_STATUS_INVALID_ARGUMENT);
    expect_unchanged(&s, before, n);
    scene_end(&s);
}
END_TEST

static struct tfm_optimizer_rule endless(void *context, const struct tfm_graph *graph,
                                         const struct tfm_tensor *parameter)
{
    (void)context;
    (void)graph;
    return (struct tfm_optimizer_rule){strcmp(parameter->name, "weight") ? 1 : INFINITY, 0};
}

/* Fault: a graph without gradients makes an optimizer that does nothing; a rule that is nonsense goes unnoticed; what
 * was made up to there is kept. */
START_TEST(nothing_to_train)
{
    struct tfm_optimizer *none = NULL;
    struct tfm_error err;
    struct scene s;
    struct net net;

    net_begin(&net, 4, 1);
    net_output(&net,
               tfm_op_linear(net.graph, net_input(&net, "x", TFM_DTYPE_F32, 8, 0),
                             tfm_graph_train(net.graph, parameter(&net, "weight", 3, 8)), NULL));
    net_compile(&net, 1);
    ck_assert_int_eq(tfm_optimizer_create(net.plan, net.exec, net.weights, net.devices.device,
                                          net.devices.n, &scene_config, NULL, NULL, &none, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "tfm_graph_backward") != NULL, "%s", err.text);
    net_end(&net);
    scene_net(&s, TFM_DTYPE_F32);
    ck_assert_int_eq(tfm_optimizer_create(s.net.plan, s.net.exec, s.net.weights,
                                          s.net.devices.device, s.net.devices.n, &scene_config,
                                          endless, NULL, &none, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "\"weight\"") && strstr(err.text, "inf"), "%s", err.text);
    ck_assert_ptr_null(none);
    scene_end(&s);
}
END_TEST

/* Fault: the optimizer keeps pointers into what may go before it. */
START_TEST(outlives_what_it_was_made_of)
{
    struct scene s;
    double g[SCENE_MOST] = {1}, w[SCENE_MOST], before[SCENE_MOST];

    scene_begin(&s, TFM_DTYPE_F32, &scene_config, NULL, NULL);
    tfm_exec_destroy(s.net.exec);
    tfm_plan_destroy(s.net.plan);
    s.net.exec = NULL;
    s.net.plan = NULL;
    scene_read(&s, 1, "", before);
    scene_write(&s, 1, ".grad", g);
    scene_step(&s, 0.5, 1, NULL);
    scene_read(&s, 1, "", w);
    ck_assert_double_eq_tol(w[0], before[0] - 0.5, 1e-6);
    scene_end(&s);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("optimizer");
    TCase *tcase = net_case(suite, "numbers");

    tcase_add_loop_test(tcase, ten_steps_like_a_plain_loop, 0, 16);
    tcase_add_test(tcase, two_steps_by_hand);
    tcase_add_loop_test(tcase, clipping, 0, 7);
    tcase_add_test(tcase, steps_may_be_set);
    tcase_add_test(tcase, parameters_have_rules);
    tcase_add_test(tcase, usual_rules);
    tcase = net_case(suite, "what goes wrong");
    tcase_add_loop_test(tcase, a_gradient_that_is_not_finite, 0, 4);
    tcase_add_test(tcase, settings_are_checked);
    tcase_add_test(tcase, nothing_to_train);
    tcase_add_test(tcase, outlives_what_it_was_made_of);
    return suite;
}

int optimizer_cases_run(const char *backend)
{
    return net_main(backend, make_suite);
}
