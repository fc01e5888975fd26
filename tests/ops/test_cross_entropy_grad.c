/* SPDX-License-Identifier: MIT
 * cross_entropy_grad: dx, and what it adds to the state of the weight. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x, *weight, *targets, *lse, *dloss, *dweight;
static double softcap;

static double value(const struct trial *t, const struct tfm_tensor *tensor, int64_t i)
{
    return t->values[tensor->id][i];
}

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t classes = weight->shape[0], width = weight->shape[1];
    double *dw = want + rows->n * width;

    for (int64_t i = 0; i < rows->n * width; i++)
        want[i] = 0;
    for (int64_t i = 0; dweight && i < classes * width; i++)
        dw[i] = value(trial, dweight, i);
    for (int64_t v = 0; v < classes; v++) {
        for (int64_t n = 0; n < rows->n; n++) {
            double logit = 0, target;
            for (int64_t i = 0; i < width; i++)
                logit += value(trial, x, n * width + i) * value(trial, weight, v * width + i);
            trial_get(trial, targets, (size_t)n, 1, &target);
            if (target < 0)
                continue;
            const double bent = softcap > 0 ? tanh(logit / softcap) : 0;
            logit = softcap > 0 ? softcap * bent : logit;
            const double p = exp(logit - value(trial, lse, n)) - (target == (double)v);
            const double g = value(trial, dloss, n) * p * (1 - bent * bent);
            for (int64_t i = 0; i < width; i++) {
                want[n * width + i] += g * value(trial, weight, v * width + i);
                if (dweight)
                    dw[v * width + i] += g * value(trial, x, n * width + i);
            }
        }
    }
}

static void build_capped(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t classes,
                         int64_t width, int with_dweight, double cap)
{
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;

    softcap = cap;
    trial_begin(t, rows, "cross_entropy_grad %s [%lld, %lld]%s softcap %g", tfm_dtype_name(dtype),
                (long long)classes, (long long)width, with_dweight ? " dweight" : "", cap);
    t->may_refuse = tfm_dtype_info(dtype)->block > 1;
    x = trial_input(t, "x", real, 2, width, 0);
    weight = with_dweight ? trial_trainable(t, "weight", dtype, 2, classes, width)
                          : trial_parameter(t, "weight", dtype, 2, classes, width);
    targets = trial_input(t, "targets", TFM_DTYPE_I32, 1, 0, 0);
    lse = trial_input(t, "lse", real, 1, 0, 0);
    dloss = trial_input(t, "dloss", real, 1, 0, 0);
    dweight = with_dweight ? trial_sum(t, "dweight", real, 2, classes, width) : NULL;
    for (size_t n = 0; n < rows; n++) {
        const double target = n % 4 == 1 ? -1 : (double)((int64_t)n * 29 % classes);
        const double about = log((double)classes) + (double)width / 18;
        trial_set(t, targets, n, 1, &target);
        trial_set(t, lse, n, 1, &about);
    }
    trial_output(t,
                 tfm_op_cross_entropy_grad(t->graph, x, weight, targets, lse, dloss, cap, dweight));
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t classes,
                  int64_t width, int with_dweight)
{
    build_capped(t, rows, dtype, classes, width, with_dweight, 0);
}

/* Fault: a class is dropped at a tail or a boundary between chunks; the state is overwritten. */
START_TEST(ragged)
{
    static const struct {
        int64_t classes, width;
    } shapes[] = {{1, 1}, {3, 33}, {31, 7}, {33, 65}, {130, 31}};
    struct trial t;

    build(&t, 129, TFM_DTYPE_F32, shapes[_i].classes, shapes[_i].width, 1);
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: more than one chunk of classes: dx begins anew with each, or a chunk reads another's rows. Capacity
 * for many rows makes the chunks small. */
START_TEST(chunks)
{
    const struct tfm_rows rows = trial_rows(33, 0);
    struct trial t;

    build(&t, 2000, TFM_DTYPE_F32, 1100, 24, 1);
    if (trial_open(&t, 0))
        trial_check(&t, &rows, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a slope of one of the two vectors, or of the tail, that the cap does not shrink. */
START_TEST(capped)
{
    static const struct {
        enum tfm_dtype dtype;
        int64_t classes, width;
        double cap;
    } shapes[] = {{TFM_DTYPE_F32, 3, 33, 0.5},
                  {TFM_DTYPE_F32, 31, 7, 2},
                  {TFM_DTYPE_F32, 130, 31, 30},
                  {TFM_DTYPE_F64, 33, 65, 1}};
    struct trial t;

    build_capped(&t, 33, shapes[_i].dtype, shapes[_i].classes, shapes[_i].width, 1, shapes[_i].cap);
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: the gradient of a frozen weight is needed for dx; a dtype that is read as another. */
START_TEST(frozen)
{
    static const enum tfm_dtype list[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                          TFM_DTYPE_F64, TFM_DTYPE_Q8_0};
    struct trial t;

    build(&t, 33, list[_i], 600, 32, 0);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Probabilities 1/8, 2/8, 5/8 and slope 2, then a row without a target; in the second round with a soft cap of 2,
 * which leaves 1 - (logit / 2)^2 of each slope. Fault: the formula; a row without a target that has a gradient. */
START_TEST(worked_numbers)
{
    const double two = log(2) / 2, five = log(5) / 2, xs[] = {1, 3}, which[] = {1, -1};
    const double logits[][3] = {{0, log(2), log(5)}, {0, 2 * atanh(two), 2 * atanh(five)}};
    const double lses[] = {log(8), log(8)}, slopes[] = {2, 2}, zeros[3] = {0};
    const double dws[][3] = {{0.25, -1.5, 1.25},
                             {0.25, -1.5 * (1 - two * two), 1.25 * (1 - five * five)}};
    const double *dw = dws[_i];
    const double want[] = {dw[1] * logits[_i][1] + dw[2] * logits[_i][2], 0};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct trial t;

    build_capped(&t, 2, TFM_DTYPE_F32, 3, 1, 1, _i ? 2 : 0);
    trial_set(&t, weight, 0, 3, logits[_i]);
    trial_set(&t, x, 0, 2, xs);
    trial_set(&t, targets, 0, 2, which);
    trial_set(&t, lse, 0, 2, lses);
    trial_set(&t, dloss, 0, 2, slopes);
    trial_set(&t, dweight, 0, 3, zeros);
    if (trial_open(&t, 0)) {
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_expect(&t, want, 2, 1e-6);
        for (size_t v = 0; v < 3; v++) {
            double got;
            trial_get(&t, dweight, v, 1, &got);
            ck_assert_double_eq_tol(got, dw[v], 1e-6);
        }
    }
    trial_end(&t);
}
END_TEST

/* Fault: operands that do not fit become a node; a parameter is taken for a state. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "cross_entropy_grad refusal %d", _i);
    x = trial_input(&t, "x", TFM_DTYPE_F32, 2, 4, 0);
    weight = trial_parameter(&t, "weight", TFM_DTYPE_F32, 2, 7, 4);
    targets = trial_input(&t, "targets", TFM_DTYPE_I32, 1, 0, 0);
    lse = trial_input(&t, "lse", _i == 0 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 1, 0, 0);
    dloss = trial_input(&t, "dloss", TFM_DTYPE_F32, _i == 1 ? 2 : 1, 1, 0);
    dweight = _i == 2 ? trial_parameter(&t, "dweight", TFM_DTYPE_F32, 2, 7, 4)
                      : trial_sum(&t, "dweight", TFM_DTYPE_F32, 2, _i == 3 ? 4 : 7, 4);
    ck_assert_ptr_null(
        tfm_op_cross_entropy_grad(t.graph, x, weight, targets, lse, dloss, 0, dweight));
    trial_refused(&t, _i == 0 ? TFM_STATUS_DTYPE : TFM_STATUS_SHAPE,
                  "cross_entropy_grad|lse 'lse'|dloss 'dloss'|dweight 'dweight'");
}
END_TEST

void tfm__cases_cross_entropy_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "cross_entropy_grad");

    tcase_add_loop_test(tcase, ragged, 0, 5);
    tcase_add_test(tcase, chunks);
    tcase_add_loop_test(tcase, frozen, 0, 5);
    tcase_add_loop_test(tcase, capped, 0, 4);
    tcase_add_loop_test(tcase, worked_numbers, 0, 2);
    tcase_add_loop_test(trial_rule_tcase(suite, "cross_entropy_grad rule"), refusals, 0, 4);
}
