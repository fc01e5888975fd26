/* SPDX-License-Identifier: MIT
 * linear: sizes on and off every tile, each weight dtype, bias, guards, offsets; cases A01-A04. */
#include <stdlib.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x, *weight, *bias;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t in = weight->shape[1], out = weight->shape[0];
    const int64_t vectors = rows->n * tfm_tensor_row_elements(x) / in;

    for (int64_t n = 0; n < vectors; n++) {
        for (int64_t o = 0; o < out; o++) {
            double sum = bias ? trial->values[bias->id][o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum += trial->values[x->id][n * in + i] * trial->values[weight->id][o * in + i];
            want[n * out + o] = sum;
        }
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t in, int64_t out,
                  int biased)
{
    const enum tfm_dtype real = dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;

    trial_begin(t, rows, "linear %s [%lld, %lld]%s", tfm_dtype_name(dtype), (long long)out,
                (long long)in, biased ? " with bias" : "");
    x = trial_input(t, "x", real, 2, in, 0);
    weight = trial_parameter(t, "weight", dtype, 2, out, in);
    bias = biased ? trial_parameter(t, "bias", real, 1, out, 0) : NULL;
    trial_output(t, tfm_op_linear(t->graph, x, weight, bias));
}

/* Fault: a tail of `in`, of `out` or of the rows is dropped, read twice or written past its end. */
START_TEST(ragged)
{
    static const int64_t sizes[] = {1, 3, 7, 31, 33, 65};
    const int64_t in = sizes[_i];

    for (size_t o = 0; o < 6; o++) {
        struct trial t;
        build(&t, 65, TFM_DTYPE_F32, in, sizes[o], (int)(o & 1));
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: extents between the rows and the last are left out of the count. */
START_TEST(more_extents)
{
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_Q4_1, TFM_DTYPE_F64};
    const enum tfm_dtype real = dtypes[_i] == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;

    for (int rank = 3; rank <= 4; rank++) {
        struct trial t;
        trial_begin(&t, 33, "linear %s rank %d", tfm_dtype_name(dtypes[_i]), rank);
        x = rank == 3 ? trial_input(&t, "x", real, 3, 5, 32)
                      : trial_input_4(&t, "x", real, 2, 3, 32);
        weight = trial_parameter(&t, "weight", dtypes[_i], 2, 7, 32);
        bias = trial_parameter(&t, "bias", real, 1, 7, 0);
        trial_output(&t, tfm_op_linear(t.graph, x, weight, bias));
        ck_assert_int_eq(t.output->rank, rank);
        ck_assert_int_eq(t.output->shape[rank - 1], 7);
        ck_assert_int_eq(t.output->shape[1], x->shape[1]);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: the weight is taken as [in, out]. W is not square, so such a one does not even fit; and with a
 * square W that is not symmetric the values differ: y = x W^T, not x W. */
START_TEST(not_transposed)
{
    static const double row[] = {1, 10, 100}, w[] = {1, 2, 3, 4, 5, 6}, want[] = {321, 654};
    static const double square[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, want_square[] = {321, 654, 987};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, TFM_DTYPE_F32, 3, _i ? 3 : 2, 0);
    trial_set(&t, x, 0, 3, row);
    trial_set(&t, weight, 0, _i ? 9 : 6, _i ? square : w);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, _i ? want_square : want, _i ? 3 : 2, 1e-4);
    trial_end(&t);
}
END_TEST

/* Fault: a weight dtype is read wrongly, or its rows at a wrong stride. */
START_TEST(dtypes)
{
    static const struct {
        int64_t in, out;
    } sizes[] = {{32, 1}, {64, 7}, {96, 33}, {576, 65}};

    if (_i == TFM_DTYPE_I32)
        return;
    for (size_t s = 0; s < 4; s++) {
        struct trial t;
        build(&t, s < 3 ? 65 : 129, (enum tfm_dtype)_i, sizes[s].in, sizes[s].out, s == 2);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: an index or a tile that is right for small matrices only. The model's own shapes. */
START_TEST(model_shapes)
{
    static const struct {
        int64_t in, out;
        enum tfm_dtype dtype;
    } sizes[] = {
        {576, 1536, TFM_DTYPE_Q4_1}, {1536, 576, TFM_DTYPE_Q8_0}, {1536, 192, TFM_DTYPE_F32}};
    struct trial t;

    build(&t, 65, sizes[_i].dtype, sizes[_i].in, sizes[_i].out, 0);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: a trainable weight, which lies row-major in memory of the exec, is read as a packed one, or a part of a
 * tile is packed wrongly. */
START_TEST(trainable)
{
    static const struct {
        enum tfm_dtype dtype;
        int64_t in, out;
        int biased;
    } sizes[] = {{TFM_DTYPE_F32, 1, 1, 0},     {TFM_DTYPE_F32, 33, 7, 1},
                 {TFM_DTYPE_F32, 65, 33, 0},   {TFM_DTYPE_F16, 31, 65, 1},
                 {TFM_DTYPE_BF16, 577, 40, 0}, {TFM_DTYPE_F32, 2100, 17, 1},
                 {TFM_DTYPE_F64, 7, 3, 1}};
    const enum tfm_dtype dtype = sizes[_i].dtype;
    struct trial t;

    trial_begin(&t, 65, "linear with a trainable %s", tfm_dtype_name(dtype));
    x = trial_input(&t, "x", dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32, 2, sizes[_i].in, 0);
    weight = trial_trainable(&t, "weight", dtype, 2, sizes[_i].out, sizes[_i].in);
    bias = sizes[_i].biased ? trial_trainable(&t, "bias", x->dtype, 1, sizes[_i].out, 0) : NULL;
    trial_output(&t, tfm_op_linear(t.graph, x, weight, bias));
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* A01. Fault: the old output (NaN here) is multiplied by beta = 0 and added. */
START_TEST(a01_output_is_not_read)
{
    static const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const double want[] = {15, 15, 15, 40, 40, 40};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct trial t;

    build(&t, 2, TFM_DTYPE_F32, 5, 3, 0);
    trial_set(&t, x, 0, 10, values);
    trial_set_all(&t, weight, 1);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 6, 0);
    trial_end(&t);
}
END_TEST

/* A03. Fault: loads of the last tile are not clamped, or a row's slice begins at the wrong place. Row i
 * of W is i, so that the output names the row it was made of. */
START_TEST(a03_row_i_is_i)
{
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_Q8_0,
                                            TFM_DTYPE_Q4_1, TFM_DTYPE_Q4_0};
    static const int64_t outs[] = {1, 3, 33, 129, 1088};
    const enum tfm_dtype dtype = dtypes[_i];
    const int plain = tfm_dtype_info(dtype)->block == 1;

    for (size_t o = 0; o < 5; o++) {
        const int64_t in = plain ? outs[4 - o] : (outs[4 - o] + 31) / 32 * 32;
        const struct tfm_rows rows = trial_rows(33, 0);
        double *row = malloc((size_t)in * sizeof *row);
        struct trial t;
        ck_assert_ptr_nonnull(row);
        build(&t, 33, dtype, in, outs[o], 0);
        trial_set_all(&t, x, 1);
        for (int64_t i = 0; i < outs[o]; i++) {
            for (int64_t k = 0; k < in; k++)
                row[k] = (double)i;
            trial_set(&t, weight, (size_t)(i * in), (size_t)in, row);
        }
        ck_assert(trial_open(&t, 0));
        trial_check(&t, &rows, naive);
        for (int64_t i = 0; i < outs[o] && plain; i++) {
            double got;
            trial_get(&t, t.output, (size_t)(32 * outs[o] + i), 1, &got);
            ck_assert_double_eq_tol(got, (double)(i * in), 1e-4 * (double)(i * in) + 1e-9);
        }
        trial_end(&t);
        free(row);
    }
}
END_TEST

/* A04. Fault: an element offset other than 0 is forgotten for one of the three. */
START_TEST(a04_element_offsets)
{
    static const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 1, 1}, want[] = {7, 5, 16, 11};
    const struct tfm_rows rows = trial_rows(2, 0);
    struct trial t;

    build(&t, 2, TFM_DTYPE_F32, 3, 2, 0);
    trial_set(&t, x, 0, 6, a);
    trial_set(&t, weight, 0, 6, b);
    ck_assert(trial_open(&t, TFM__DRIVE_ELEMENT_OFFSETS));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 4, 0);
    trial_end(&t);
}
END_TEST

/* Fault: the extreme quants of a block or a negative scale are taken for something else. */
START_TEST(block_extremes)
{
    /* f16: 0xb800 = -0.5, 0x3c00 = 1, 0x4000 = 2 */
    static const unsigned char q8_0[34] = {0x00, 0xb8, 0x80, 0x7f, 0xff, 0x01};
    static const unsigned char q4_0[18] = {0x00, 0xb8, 0xf0, 0x0f};
    static const unsigned char q4_1[20] = {0x00, 0xb8, 0x00, 0x40, 0xf0, 0x0f};
    static const struct {
        enum tfm_dtype dtype;
        const unsigned char *bytes;
        size_t size;
        double want; /* x = 1, 2, ... 32 */
    } blocks[] = {
        /* -0.5 (-128 + 2 * 127 - 3 + 4) */
        {TFM_DTYPE_Q8_0, q8_0, sizeof q8_0, -63.5},
        /* -0.5 (sum of (nibble - 8) j): 15 at j = 2 and 17, the rest 0 */
        {TFM_DTYPE_Q4_0, q4_0, sizeof q4_0, -0.5 * (15 * 19 - 8 * 528)},
        /* 2 * 528 - 0.5 * 15 * 19 */
        {TFM_DTYPE_Q4_1, q4_1, sizeof q4_1, 2 * 528 - 0.5 * 15 * 19},
    };
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, blocks[_i].dtype, 32, 1, 0);
    for (int j = 0; j < 32; j++)
        ((float *)t.data[x->id])[j] = (float)(j + 1);
    for (size_t j = 0; j < blocks[_i].size; j++)
        ((unsigned char *)t.data[weight->id])[j] = blocks[_i].bytes[j];
    ck_assert(trial_open(&t, 0));
    trial_check(&t, &rows, naive);
    trial_expect(&t, &blocks[_i].want, 1, 1e-3);
    trial_end(&t);
}
END_TEST

/* Fault: a shape or dtype that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype x, weight, bias; /* bias I32 = none */
        int rank;
        int64_t in, w_in, out, bias_out;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 3, 4, 5, 0, TFM_STATUS_SHAPE,
         "linear|'x' [N, 3]|'weight' [5, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_I32, 3, 4, 4, 5, 0, TFM_STATUS_SHAPE,
         "[N, 4, 2]|[5, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_I32, 1, 4, 4, 5, 0, TFM_STATUS_SHAPE,
         "'x' [N] f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 3, 5, 3, 0, TFM_STATUS_SHAPE,
         "'x' [N, 3]|'weight' [3, 5]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 4, 4, 5, 4, TFM_STATUS_SHAPE,
         "'bias' [4]|[5, 4]"},
        {TFM_DTYPE_F16, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 4, 4, 5, 0, TFM_STATUS_DTYPE, "f16"},
        {TFM_DTYPE_F64, TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 4, 4, 5, 0, TFM_STATUS_DTYPE, "f64|f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_F64, TFM_DTYPE_I32, 2, 4, 4, 5, 0, TFM_STATUS_DTYPE, "f64|f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, TFM_DTYPE_I32, 2, 4, 4, 5, 0, TFM_STATUS_DTYPE, "i32"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, TFM_DTYPE_F16, 2, 4, 4, 5, 5, TFM_STATUS_DTYPE, "bias"},
    };
    struct trial t;

    trial_begin(&t, 4, "linear refusal %d", _i);
    x = trial_input(&t, "x", rows[_i].x, rows[_i].rank, rows[_i].in, 2);
    weight = trial_parameter(&t, "weight", rows[_i].weight, 2, rows[_i].out, rows[_i].w_in);
    bias = rows[_i].bias == TFM_DTYPE_I32
               ? NULL
               : trial_parameter(&t, "bias", rows[_i].bias, 1, rows[_i].bias_out, 0);
    ck_assert_ptr_null(tfm_op_linear(t.graph, x, weight, bias));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

void tfm__cases_linear(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "linear");

    tcase_add_loop_test(tcase, ragged, 0, 6);
    tcase_add_loop_test(tcase, more_extents, 0, 3);
    tcase_add_loop_test(tcase, not_transposed, 0, 2);
    tcase_add_loop_test(tcase, dtypes, 0, TFM_DTYPE_COUNT);
    tcase_add_loop_test(tcase, model_shapes, 0, 3);
    tcase_add_loop_test(tcase, trainable, 0, 7);
    tcase_add_test(tcase, a01_output_is_not_read);
    tcase_add_loop_test(tcase, a03_row_i_is_i, 0, 5);
    tcase_add_test(tcase, a04_element_offsets);
    tcase_add_loop_test(tcase, block_extremes, 0, 3);
    tcase_add_loop_test(trial_rule_tcase(suite, "linear rule"), refusals, 0, 10);
}
