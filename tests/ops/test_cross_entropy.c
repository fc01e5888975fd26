/* SPDX-License-Identifier: MIT
 * cross_entropy: loss and lse of rows with and without a target. */
#include <math.h>
#include <string.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x, *weight, *targets;
static double softcap;

static double naive_logit(const struct trial *trial, int64_t n, int64_t class)
{
    const int64_t width = weight->shape[1];
    double logit = 0;

    for (int64_t i = 0; i < width; i++)
        logit += trial->values[x->id][n * width + i] * trial->values[weight->id][class * width + i];
    return softcap > 0 ? softcap * tanh(logit / softcap) : logit;
}

/* A second form of the formula: all logits, in two passes. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t classes = weight->shape[0];

    for (int64_t n = 0; n < rows->n; n++) {
        double most = naive_logit(trial, n, 0), target;
        for (int64_t v = 1; v < classes; v++)
            most = fmax(most, naive_logit(trial, n, v));
        double sum = exp(naive_logit(trial, n, 0) - most);
        for (int64_t v = 1; v < classes; v++)
            sum += exp(naive_logit(trial, n, v) - most);
        trial_get(trial, targets, (size_t)n, 1, &target);
        want[rows->n + n] = most + log(sum);
        want[n] = target < 0 ? 0 : want[rows->n + n] - naive_logit(trial, n, (int64_t)target);
    }
}

static void build_capped(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int trained,
                         int64_t classes, int64_t width, double cap)
{
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;

    softcap = cap;
    trial_begin(t, rows, "cross_entropy %s [%lld, %lld] softcap %g", tfm_dtype_name(dtype),
                (long long)classes, (long long)width, cap);
    t->may_refuse = tfm_dtype_info(dtype)->block > 1;
    x = trial_input(t, "x", real, 2, width, 0);
    weight = trained ? trial_trainable(t, "weight", dtype, 2, classes, width)
                     : trial_parameter(t, "weight", dtype, 2, classes, width);
    targets = trial_input(t, "targets", TFM_DTYPE_I32, 1, 0, 0);
    for (size_t n = 0; n < rows; n++) {
        const double target = n % 4 == 1 ? -1 : (double)((int64_t)n * 29 % classes);
        trial_set(t, targets, n, 1, &target);
    }
    trial_output(t, tfm_op_cross_entropy(t->graph, x, weight, targets, cap, NULL));
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int trained,
                  int64_t classes, int64_t width)
{
    build_capped(t, rows, dtype, trained, classes, width, 0);
}

/* Fault: a class is dropped at a tail or a boundary between chunks, or counted twice. */
START_TEST(ragged)
{
    static const struct {
        int64_t classes, width;
    } shapes[] = {{1, 1}, {3, 33}, {31, 7}, {33, 65}, {511, 3}, {513, 31}, {1030, 16}};
    struct trial t;

    build(&t, 129, TFM_DTYPE_F32, 1, shapes[_i].classes, shapes[_i].width);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a logit of one of the two vectors, of the tail, or of the target that is not capped. */
START_TEST(capped)
{
    static const struct {
        enum tfm_dtype dtype;
        int64_t classes, width;
        double cap;
    } shapes[] = {{TFM_DTYPE_F32, 3, 33, 0.5},
                  {TFM_DTYPE_F32, 31, 7, 2},
                  {TFM_DTYPE_F32, 513, 31, 30},
                  {TFM_DTYPE_F64, 33, 65, 0.1}};
    struct trial t;

    build_capped(&t, 33, shapes[_i].dtype, 1, shapes[_i].classes, shapes[_i].width, shapes[_i].cap);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a dtype of the weight that is read as another, or only as a trainable one. */
START_TEST(dtypes)
{
    static const enum tfm_dtype list[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                          TFM_DTYPE_F64, TFM_DTYPE_Q8_0};
    struct trial t;

    build(&t, 33, list[_i], 0, 70, 32);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Probabilities 1/8, 2/8, 5/8, with a soft cap of 2 in the second round: 2 tanh(atanh(ln 5 / 2)) = ln 5. Fault: the
 * formula; a row without a target that has a loss. */
START_TEST(worked_numbers)
{
    const double capped[] = {0, 2 * atanh(log(2) / 2), 2 * atanh(log(5) / 2)};
    const double logits[] = {0, log(2), log(5)}, ones[] = {1, 1, 1}, which[] = {1, -1, 2};
    const struct tfm_rows rows = trial_rows(3, 0);
    const double want[] = {log(4), 0, log(1.6)};
    struct trial t;

    build_capped(&t, 3, TFM_DTYPE_F32, 1, 3, 1, _i ? 2 : 0);
    trial_set(&t, weight, 0, 3, _i ? capped : logits);
    trial_set(&t, x, 0, 3, ones);
    trial_set(&t, targets, 0, 3, which);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 3, 1e-6);
        for (size_t n = 0; n < 3; n++) {
            double lse;
            trial_get(&t, t.outputs[1], n, 1, &lse);
            ck_assert_double_eq_tol(lse, log(8), 1e-6);
        }
    }
    trial_end(&t);
}
END_TEST

/* Fault: exp of a logit that is large, or a loss that drowns in it: ln(1 + 1/e) beside 10,000. */
START_TEST(large_logits)
{
    const double logits[] = {10000, 9999, -10000}, ones[] = {1, 1}, which[] = {0, 2};
    const struct tfm_rows rows = trial_rows(2, 0);
    const double want[] = {log1p(exp(-1)), 20000 + log1p(exp(-1))};
    struct trial t;

    build(&t, 2, TFM_DTYPE_F32, 1, 3, 1);
    trial_set(&t, weight, 0, 3, logits);
    trial_set(&t, x, 0, 2, ones);
    trial_set(&t, targets, 0, 2, which);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 1, 1e-6);
        trial_expect(&t, want, 2, 2e-3);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a cap that overflows far out instead of ending at +-30. */
START_TEST(large_capped_logits)
{
    const double logits[] = {1e30, 1e4, -1e30}, ones[] = {1, 1}, which[] = {0, 2};
    const struct tfm_rows rows = trial_rows(2, 0);
    const double want[] = {log(2), 60 + log(2)};
    struct trial t;

    build_capped(&t, 2, TFM_DTYPE_F32, 1, 3, 1, 30);
    trial_set(&t, weight, 0, 3, logits);
    trial_set(&t, x, 0, 2, ones);
    trial_set(&t, targets, 0, 2, which);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 2, 1e-5);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a loss over no targets that is no 0 but 0/0. */
START_TEST(no_targets)
{
    const double none[] = {-1, -1, -1, -1, -1}, zeros[5] = {0};
    const struct tfm_rows rows = trial_rows(5, 0);
    struct trial t;

    build(&t, 5, TFM_DTYPE_F32, 1, 40, 9);
    trial_set(&t, targets, 0, 5, none);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, zeros, 5, 0);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a target that is no class reaches a kernel. The core looks first, by the limit that the rule must have
 * set (tests/core/test_values.c); the reference looks again. */
START_TEST(limits)
{
    static const double bad[] = {7, -2, 2147483647};
    const struct tfm_rows rows = trial_rows(3, 0);
    struct trial t;

    build(&t, 3, TFM_DTYPE_F32, 0, 7, 4);
    ck_assert(targets->limit == 7 && targets->may_be_none);
    if (trial_is_reference()) {
        trial_set(&t, targets, 2, 1, &bad[_i]);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OUT_OF_RANGE);
        trial_shut(&t);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a target that is none is accepted where the same tensor also indexes a table. */
START_TEST(limits_of_two_readers)
{
    static const int64_t n[] = {0}, x_shape[] = {0, 4}, shape[] = {9, 4};
    struct tfm_graph *graph;

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, n);
    struct tfm_tensor *table = tfm_graph_parameter(graph, "table", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *input = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, x_shape);
    if (_i == 0)
        tfm_op_embedding(graph, table, ids);
    ck_assert_ptr_nonnull(tfm_op_cross_entropy(graph, input, table, ids, 0, NULL));
    ck_assert_int_eq(ids->may_be_none, _i);
    tfm_op_embedding(graph, table, ids);
    ck_assert(ids->limit == 9 && !ids->may_be_none);
    tfm_graph_destroy(graph);
}
END_TEST

/* Fault: operands that do not fit become a node. */
START_TEST(refusals)
{
    static const enum tfm_status status[] = {TFM_STATUS_SHAPE,
                                             TFM_STATUS_DTYPE,
                                             TFM_STATUS_DTYPE,
                                             TFM_STATUS_SHAPE,
                                             TFM_STATUS_INVALID_ARGUMENT,
                                             TFM_STATUS_INVALID_ARGUMENT};
    const double caps[] = {0, 0, 0, 0, -1, INFINITY};
    struct trial t;

    trial_begin(&t, 4, "cross_entropy refusal %d", _i);
    x = trial_input(&t, "x", TFM_DTYPE_F32, 2, _i == 0 ? 5 : 4, 0);
    weight = trial_parameter(&t, "weight", _i == 1 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 2, 7, 4);
    targets =
        trial_input(&t, "targets", _i == 2 ? TFM_DTYPE_F32 : TFM_DTYPE_I32, _i == 3 ? 2 : 1, 3, 0);
    ck_assert_ptr_null(tfm_op_cross_entropy(t.graph, x, weight, targets, caps[_i], NULL));
    trial_refused(&t, status[_i],
                  _i < 4 ? "cross_entropy|x 'x' [N, |weight 'weight' [7, 4]|targets"
                         : "cross_entropy|softcap");
}
END_TEST

/* ---- gradient ---- */

/* Fault: a gradient of lse that is left out without a word. */
START_TEST(lse_has_no_gradient)
{
    static const int64_t shape[] = {0, 4, 7, 4};
    struct tfm_tensor *loss, *lse, *seed;
    struct tfm_error err = {0};
    struct tfm_graph *graph;

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    struct tfm_tensor *input = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *which = tfm_graph_input(graph, "targets", TFM_DTYPE_I32, 1, shape);
    struct tfm_tensor *classes = tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 2, shape + 2);
    loss = tfm_op_cross_entropy(graph, input, tfm_graph_train(graph, classes), which, 0, &lse);
    ck_assert(loss && lse && loss != lse);
    seed = tfm_graph_input(graph, "dlse", TFM_DTYPE_F32, 1, shape);
    ck_assert_int_eq(tfm_graph_backward(graph, 1, &lse, &seed, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "lse") != NULL, "%s", err.text);
    tfm_graph_destroy(graph);
}
END_TEST

void tfm__cases_cross_entropy(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "cross_entropy");
    TCase *rule = trial_rule_tcase(suite, "cross_entropy rule");

    tcase_add_loop_test(tcase, ragged, 0, 7);
    tcase_add_loop_test(tcase, dtypes, 0, 5);
    tcase_add_loop_test(tcase, capped, 0, 4);
    tcase_add_loop_test(tcase, worked_numbers, 0, 2);
    tcase_add_test(tcase, large_logits);
    tcase_add_test(tcase, large_capped_logits);
    tcase_add_test(tcase, no_targets);
    tcase_add_loop_test(tcase, limits, 0, 3);
    tcase_add_loop_test(rule, limits_of_two_readers, 0, 2);
    tcase_add_loop_test(rule, refusals, 0, 6);
    tcase_add_test(rule, lse_has_no_gradient);
}
