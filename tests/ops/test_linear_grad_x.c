/* SPDX-License-Identifier: MIT
 * linear_grad_x: sizes on and off every tile, trainable and frozen weights. */
#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *weight, *dy;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t in = weight->shape[1], out = weight->shape[0];
    const int64_t vectors = rows->n * tfm_tensor_row_elements(dy) / out;

    for (int64_t i = 0; i < vectors * in; i++)
        want[i] = 0;
    for (int64_t n = 0; n < vectors; n++) {
        for (int64_t o = 0; o < out; o++) {
            for (int64_t i = 0; i < in; i++)
                want[n * in + i] +=
                    trial->values[dy->id][n * out + o] * trial->values[weight->id][o * in + i];
        }
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int trainable, int64_t in,
                  int64_t out)
{
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;

    trial_begin(t, rows, "linear_grad_x %s%s [%lld, %lld]", trainable ? "trainable " : "",
                tfm_dtype_name(dtype), (long long)out, (long long)in);
    weight = trainable ? trial_trainable(t, "weight", dtype, 2, out, in)
                       : trial_parameter(t, "weight", dtype, 2, out, in);
    dy = trial_input(t, "dy", real, 2, out, 0);
    t->may_refuse |= !trainable && dtype != TFM_DTYPE_F32;
    trial_output(t, tfm_op_linear_grad_x(t->graph, weight, dy));
}

/* Fault: a tail of `in`, of `out` or of the rows is dropped, read twice or written past its end; the weight is
 * taken as transposed. */
START_TEST(ragged)
{
    static const int64_t sizes[] = {1, 3, 7, 31, 33, 65};

    for (size_t o = 0; o < 6; o++) {
        struct trial t;
        build(&t, 65, TFM_DTYPE_F32, _i % 2, sizes[_i / 2], sizes[o]);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: a dtype of the weight is read wrongly. */
START_TEST(dtypes)
{
    struct trial t;

    if (_i == TFM_DTYPE_I32)
        return;
    build(&t, 33, (enum tfm_dtype)_i, 0, 96, 33);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a sum over more than one piece of k is begun anew. */
START_TEST(model_shapes)
{
    static const int64_t sizes[][2] = {{576, 1536}, {192, 4099}};
    struct trial t;

    build(&t, 65, TFM_DTYPE_F32, 1, sizes[_i][0], sizes[_i][1]);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: extents between the rows and the last are left out of the count. */
START_TEST(more_extents)
{
    struct trial t;

    trial_begin(&t, 9, "linear_grad_x rank 4");
    weight = trial_trainable(&t, "weight", TFM_DTYPE_F32, 2, 5, 33);
    dy = trial_input_4(&t, "dy", TFM_DTYPE_F32, 2, 3, 5);
    trial_output(&t, tfm_op_linear_grad_x(t.graph, weight, dy));
    ck_assert_int_eq(t.output->rank, 4);
    ck_assert_int_eq(t.output->shape[3], 33);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: operands that do not fit become a node. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "linear_grad_x of other widths");
    weight = trial_parameter(&t, "weight", TFM_DTYPE_F32, 2, 5, 4);
    dy = trial_input(&t, "dy", TFM_DTYPE_F32, 2, 4, 0);
    ck_assert_ptr_null(tfm_op_linear_grad_x(t.graph, weight, dy));
    trial_refused(&t, TFM_STATUS_SHAPE,
                  "linear_grad_x|weight 'weight' [5, 4] f32|dy 'dy' [N, 4] f32");
    trial_begin(&t, 4, "linear_grad_x of f16");
    weight = trial_parameter(&t, "weight", TFM_DTYPE_F32, 2, 5, 4);
    dy = trial_input(&t, "dy", TFM_DTYPE_F16, 2, 5, 0);
    ck_assert_ptr_null(tfm_op_linear_grad_x(t.graph, weight, dy));
    trial_refused(&t, TFM_STATUS_DTYPE, "linear_grad_x|dy 'dy' [N, 5] f16");
}
END_TEST

void tfm__cases_linear_grad_x(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "linear_grad_x");

    tcase_add_loop_test(tcase, ragged, 0, 12);
    tcase_add_loop_test(tcase, dtypes, 0, TFM_DTYPE_COUNT);
    tcase_add_loop_test(tcase, model_shapes, 0, 2);
    tcase_add_test(tcase, more_extents);
    tcase_add_test(trial_rule_tcase(suite, "linear_grad_x rule"), refusals);
}
