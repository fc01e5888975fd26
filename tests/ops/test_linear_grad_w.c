/* SPDX-License-Identifier: MIT
 * linear_grad_w: what it adds to the states of a weight and a bias. */
#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x, *dy, *dw, *db;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t in = x->shape[x->rank - 1], out = dy->shape[dy->rank - 1];
    const int64_t vectors = rows->n * tfm_tensor_row_elements(x) / in;

    for (int64_t i = 0; dw && i < out * in; i++)
        want[i] = trial->values[dw->id][i];
    for (int64_t n = 0; dw && n < vectors; n++) {
        for (int64_t o = 0; o < out; o++) {
            for (int64_t i = 0; i < in; i++)
                want[o * in + i] +=
                    trial->values[dy->id][n * out + o] * trial->values[x->id][n * in + i];
        }
    }
    want += dw ? out * in : 0;
    for (int64_t o = 0; db && o < out; o++) {
        want[o] = trial->values[db->id][o];
        for (int64_t n = 0; n < vectors; n++)
            want[o] += trial->values[dy->id][n * out + o];
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t in, int64_t out,
                  int with_dw, int with_db)
{
    trial_begin(t, rows, "linear_grad_w %s [%lld, %lld]%s%s", tfm_dtype_name(dtype), (long long)out,
                (long long)in, with_dw ? " dw" : "", with_db ? " db" : "");
    x = trial_input(t, "x", dtype, 2, in, 0);
    dy = trial_input(t, "dy", dtype, 2, out, 0);
    dw = with_dw ? trial_sum(t, "dw", dtype, 2, out, in) : NULL;
    db = with_db ? trial_sum(t, "db", dtype, 1, out, 0) : NULL;
    trial_output(t, tfm_op_linear_grad_w(t->graph, x, dy, dw, db));
}

/* Fault: a tail is dropped or written past its end; the state is overwritten instead of added to. */
START_TEST(ragged)
{
    static const int64_t sizes[] = {1, 3, 7, 31, 33, 65};

    for (size_t o = 0; o < 6; o++) {
        struct trial t;
        build(&t, 65, TFM_DTYPE_F32, sizes[_i], sizes[o], 1, (int)(o & 1));
        trial_check_sums(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: one of the two states is needed for the other. */
START_TEST(one_of_two)
{
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};
    struct trial t;

    for (int which = 1; which <= 3; which++) {
        build(&t, 129, dtypes[_i], 40, 33, which & 1, which >> 1);
        trial_check_sums(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: an index or a tile that is right for small matrices only. */
START_TEST(model_shapes)
{
    struct trial t;

    build(&t, 129, TFM_DTYPE_F32, 576, 196, 1, 1);
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: extents between the rows and the last are left out of the count. */
START_TEST(more_extents)
{
    struct trial t;

    trial_begin(&t, 33, "linear_grad_w rank 4");
    x = trial_input_4(&t, "x", TFM_DTYPE_F32, 2, 3, 33);
    dy = trial_input_4(&t, "dy", TFM_DTYPE_F32, 2, 3, 7);
    dw = trial_sum(&t, "dw", TFM_DTYPE_F32, 2, 7, 33);
    db = trial_sum(&t, "db", TFM_DTYPE_F32, 1, 7, 0);
    trial_output(&t, tfm_op_linear_grad_w(t.graph, x, dy, dw, db));
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: operands that do not fit become a node; a parameter is taken for a state. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "linear_grad_w refusal %d", _i);
    x = trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0);
    dy = trial_input(&t, "dy", _i == 1 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 2, 5, 0);
    dw = _i == 2 ? trial_parameter(&t, "dw", TFM_DTYPE_F32, 2, 5, 3)
                 : trial_sum(&t, "dw", TFM_DTYPE_F32, 2, 5, _i == 0 ? 4 : 3);
    ck_assert_ptr_null(tfm_op_linear_grad_w(t.graph, x, dy, _i == 3 ? NULL : dw, NULL));
    trial_refused(&t,
                  _i == 1   ? TFM_STATUS_DTYPE
                  : _i == 3 ? TFM_STATUS_INVALID_ARGUMENT
                            : TFM_STATUS_SHAPE,
                  "linear_grad_w|x 'x' [N, 3] f32|dy 'dy' [N, 5]");
}
END_TEST

void tfm__cases_linear_grad_w(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "linear_grad_w");

    tcase_add_loop_test(tcase, ragged, 0, 6);
    tcase_add_loop_test(tcase, one_of_two, 0, 2);
    tcase_add_test(tcase, model_shapes);
    tcase_add_test(tcase, more_extents);
    tcase_add_loop_test(trial_rule_tcase(suite, "linear_grad_w rule"), refusals, 0, 4);
}
