/* SPDX-License-Identifier: MIT
 * The ways to run a node whose rows are independent, and the samples of elementwise ops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/op.h"

/* Without holes: an op of ops.def that has no generator does not link. */
static const struct tfm__check_op *const ops[TFM_OP_LIMIT] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    [TFM_OP_##NAME] = &tfm__check_op_##stem,
#include <tfm/ops.def>
#undef TFM_OP
};

const struct tfm__check_op *tfm__check_op(enum tfm_op op)
{
    return (unsigned)op < TFM_OP_LIMIT ? ops[op] : NULL;
}

const enum tfm_dtype tfm__check_floats[TFM__CHECK_FLOATS] = {TFM_DTYPE_F32, TFM_DTYPE_F16,
                                                             TFM_DTYPE_BF16, TFM_DTYPE_F64};
const enum tfm_dtype tfm__check_weights[TFM__CHECK_WEIGHTS] = {
    TFM_DTYPE_F32,  TFM_DTYPE_F16,  TFM_DTYPE_BF16, TFM_DTYPE_F64,
    TFM_DTYPE_Q4_0, TFM_DTYPE_Q4_1, TFM_DTYPE_Q8_0};

/* ---- rows ---- */

void tfm__check_rows_set(struct tfm__check_rows *run, uint32_t n, int32_t past)
{
    memset(run, 0, sizeof *run);
    run->past[0] = past;
    for (int32_t i = 0; i < TFM__CHECK_LARGE_ROWS; i++)
        run->out[i] = i;
    run->rows = (struct tfm_rows){n, n > 0, n, run->slot, run->start, run->past, run->out};
}

static void plain_rows(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    tfm__check_rows_set(run, (uint32_t)n, 0);
    if (sample->special)
        tfm__sample_fill(sample, sample->special, 1, 0, tfm__sample_count(sample, sample->special),
                         1);
}

/* Row 1 holds what is no number, row 3 what is large and small; the others must not notice. */
static void special_rows(struct tfm__sample *sample, struct tfm__check_rows *run, int n)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, -0.0, 60000, -60000, 1e-7, -1e-7};
    const struct tfm_tensor *tensor = sample->special;
    const size_t width = (size_t)tfm_tensor_row_elements(tensor);

    plain_rows(sample, run, n);
    for (size_t i = 0; i < width; i++) {
        const size_t k = i % (sample->only_nan ? 1 : 3);
        if (i % 2 == 0)
            tfm__sample_set(sample, tensor, width + i, 1, &values[k]);
        if (!sample->only_nan)
            tfm__sample_set(sample, tensor, 3 * width + i, 1, &values[3 + i % 5]);
    }
}

static int has_special(const struct tfm__sample *sample)
{
    return sample->special != NULL;
}

static int may_be_in_place(const struct tfm__sample *sample)
{
    const struct tfm_node *node =
        tfm_graph_node(sample->graph, tfm_graph_node_count(sample->graph) - 1);
    const int32_t place = tfm_op_info(node->op)->in_place;

    return place >= 0 && sample->n_outputs &&
           node->inputs[place]->dtype == sample->outputs[0]->dtype;
}

const struct tfm__check_way tfm__check_rowwise[TFM__CHECK_ROWWISE_WAYS] = {
    {"65 rows", plain_rows, 65, 0, 0, NULL},
    {"1 row", plain_rows, 1, 0, 0, NULL},
    {"2 rows", plain_rows, 2, 0, 0, NULL},
    {"7 rows", plain_rows, 7, 0, 0, NULL},
    {"31 rows", plain_rows, 31, 0, 0, NULL},
    {"33 rows", plain_rows, 33, 0, 0, NULL},
    {"no rows", plain_rows, 0, 0, 0, NULL},
    {"NaN and infinities in one row", special_rows, 7, 0, 0, has_special},
    {"33 rows in place", plain_rows, 33, 0, TFM__DRIVE_IN_PLACE, may_be_in_place},
    {"1 row in place", plain_rows, 1, 0, TFM__DRIVE_IN_PLACE, may_be_in_place},
    {"3 rows, memory for 3", plain_rows, 3, 3, 0, NULL},
    {"1 row, memory for 1", plain_rows, 1, 1, 0, NULL},
};

const struct tfm__check_way tfm__check_sums[TFM__CHECK_SUM_WAYS] = {
    {"65 rows", plain_rows, 65, 0, 0, NULL},
    {"65 rows again", plain_rows, 65, 0, 0, NULL},
    {"1 row", plain_rows, 1, 0, 0, NULL},
    {"7 rows", plain_rows, 7, 0, 0, NULL},
    {"33 rows", plain_rows, 33, 0, 0, NULL},
    {"no rows", plain_rows, 0, 0, 0, NULL},
    {"3 rows, memory for 3", plain_rows, 3, 3, 0, NULL},
    {"1 row, memory for 1", plain_rows, 1, 1, 0, NULL},
};

double tfm__check_elements(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    double n = 0;

    for (uint32_t i = 0; i < sample->n_outputs; i++)
        n += (double)(tfm_tensor_rows(sample->outputs[i], rows) *
                      tfm_tensor_row_elements(sample->outputs[i]));
    return n;
}

/* ---- elementwise ops ---- */

enum { SHAPES = TFM__CHECK_ELEMENTWISE / TFM__CHECK_FLOATS };

static const struct {
    int rank;
    int64_t shape[2];
    const char *text;
} shapes[SHAPES] = {
    {1, {0, 0}, "[N]"},         {2, {1, 0}, "[N, 1]"},   {2, {7, 0}, "[N, 7]"},
    {2, {33, 0}, "[N, 33]"},    {2, {65, 0}, "[N, 65]"}, {2, {576, 0}, "[N, 576]"},
    {3, {3, 31}, "[N, 3, 31]"},
};

static void begin(struct tfm__sample *sample, uint32_t i)
{
    tfm__sample_begin(sample, TFM__CHECK_ROWS, "%s %s",
                      tfm_dtype_name(tfm__check_floats[i / SHAPES]), shapes[i % SHAPES].text);
}

static struct tfm_tensor *operand(struct tfm__sample *sample, uint32_t i, const char *name)
{
    return tfm__sample_input(sample, name, tfm__check_floats[i / SHAPES], shapes[i % SHAPES].rank,
                             shapes[i % SHAPES].shape);
}

void tfm__check_build_unary(struct tfm__sample *sample, uint32_t i, tfm__check_unary *op)
{
    begin(sample, i);
    sample->special = operand(sample, i, "x");
    tfm__sample_output(sample, op(sample->graph, sample->special));
}

void tfm__check_build_binary(struct tfm__sample *sample, uint32_t i, tfm__check_binary *op)
{
    begin(sample, i);
    sample->special = operand(sample, i, "a");
    tfm__sample_output(sample, op(sample->graph, sample->special, operand(sample, i, "b")));
}

void tfm__check_build_ternary(struct tfm__sample *sample, uint32_t i, tfm__check_ternary *op)
{
    begin(sample, i);
    sample->special = operand(sample, i, "a");
    struct tfm_tensor *b = operand(sample, i, "b");
    tfm__sample_output(sample, op(sample->graph, sample->special, b, operand(sample, i, "c")));
}

static const int64_t large[] = {4096};

static struct tfm_tensor *large_operand(struct tfm__sample *sample, uint32_t i, const char *name)
{
    return tfm__sample_input(sample, name, tfm__check_floats[i], 2, large);
}

void tfm__check_large_unary(struct tfm__sample *sample, uint32_t i, tfm__check_unary *op)
{
    tfm__sample_begin(sample, TFM__CHECK_LARGE_ROWS, "%s [N, 4096]",
                      tfm_dtype_name(tfm__check_floats[i]));
    tfm__sample_output(sample, op(sample->graph, large_operand(sample, i, "x")));
}

void tfm__check_large_binary(struct tfm__sample *sample, uint32_t i, tfm__check_binary *op)
{
    tfm__sample_begin(sample, TFM__CHECK_LARGE_ROWS, "%s [N, 4096]",
                      tfm_dtype_name(tfm__check_floats[i]));
    struct tfm_tensor *a = large_operand(sample, i, "a");
    tfm__sample_output(sample, op(sample->graph, a, large_operand(sample, i, "b")));
}

void tfm__check_large_ternary(struct tfm__sample *sample, uint32_t i, tfm__check_ternary *op)
{
    tfm__sample_begin(sample, TFM__CHECK_LARGE_ROWS, "%s [N, 4096]",
                      tfm_dtype_name(tfm__check_floats[i]));
    struct tfm_tensor *a = large_operand(sample, i, "a"), *b = large_operand(sample, i, "b");
    tfm__sample_output(sample, op(sample->graph, a, b, large_operand(sample, i, "c")));
}
