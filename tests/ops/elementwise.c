/* SPDX-License-Identifier: MIT
 * The sweep that every op goes through which computes element by element. */
#include <string.h>

#include "tests/ops/elementwise.h"

static const struct elementwise *tested;
static struct tfm_tensor *a, *b;

enum tfm_dtype elementwise_dtype(int i)
{
    static const enum tfm_dtype dtypes[ELEMENTWISE_DTYPES] = {TFM_DTYPE_F32, TFM_DTYPE_F16,
                                                              TFM_DTYPE_BF16, TFM_DTYPE_F64};
    return dtypes[i];
}

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const size_t n = (size_t)(tfm_tensor_row_elements(a) * rows->n);

    for (size_t i = 0; i < n; i++)
        want[i] = tested->want(trial->values[a->id][i], b ? trial->values[b->id][i] : 0);
}

static struct tfm_tensor *operand(struct trial *t, const char *name, enum tfm_dtype dtype, int rank,
                                  int64_t d1, int64_t d2, int64_t d3)
{
    return rank == 4 ? trial_input_4(t, name, dtype, d1, d2, d3)
                     : trial_input(t, name, dtype, rank, d1, d2);
}

static void build(struct trial *t, const struct elementwise *op, uint32_t rows,
                  enum tfm_dtype dtype, int rank, int64_t d1, int64_t d2, int64_t d3)
{
    trial_begin(t, rows, "%s %s rank %d [N, %lld, %lld, %lld]", op->name, tfm_dtype_name(dtype),
                rank, (long long)d1, (long long)d2, (long long)d3);
    tested = op;
    a = operand(t, "a", dtype, rank, d1, d2, d3);
    b = op->inputs == 2 ? operand(t, "b", dtype, rank, d1, d2, d3) : NULL;
    trial_output(t, op->build(t->graph, a, b));
    for (size_t i = 0; i < trial_count(t, a); i++) {
        double value;
        trial_get(t, a, i, 1, &value);
        value *= op->size;
        trial_set(t, a, i, 1, &value);
    }
}

void elementwise_sweep(const struct elementwise *op, enum tfm_dtype dtype)
{
    static const struct {
        uint32_t rows;
        int rank;
        int64_t d1, d2, d3;
    } sizes[] = {
        {129, 2, 1, 0, 0},  {129, 2, 3, 0, 0},  {129, 2, 7, 0, 0},  {129, 2, 31, 0, 0},
        {129, 2, 33, 0, 0}, {129, 2, 65, 0, 0}, {33, 2, 576, 0, 0}, {33, 2, 1536, 0, 0},
        {33, 1, 0, 0, 0},   {33, 3, 3, 7, 0},   {33, 4, 2, 3, 5},
    };

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct trial t;
        build(&t, op, sizes[s].rows, dtype, sizes[s].rank, sizes[s].d1, sizes[s].d2, sizes[s].d3);
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}

int elementwise_run(const struct elementwise *op, enum tfm_dtype dtype, size_t n,
                    const double *left, const double *right, struct trial *trial, double *y)
{
    const struct tfm_rows rows = trial_rows(1, 0);

    build(trial, op, 1, dtype, 2, (int64_t)n, 0, 0);
    trial_set(trial, a, 0, n, left);
    if (b)
        trial_set(trial, b, 0, n, right);
    if (!trial_open(trial, 0))
        return 0;
    trial_run(trial, &rows, TFM_STATUS_OK);
    trial_get(trial, trial->output, 0, n, y);
    return 1;
}

void elementwise_refusal(const struct elementwise *op, int i)
{
    static const struct {
        int inputs; /* that the op must have; 0 = any */
        enum tfm_dtype a, b;
        int rank_a, rank_b;
        int64_t width_a, width_b;
        int constant;
        enum tfm_status status;
        const char *words;
    } lines[ELEMENTWISE_REFUSALS] = {
        {0, TFM_DTYPE_I32, TFM_DTYPE_I32, 2, 2, 3, 3, 0, TFM_STATUS_DTYPE, "'a' [N, 3] i32"},
        {0, TFM_DTYPE_Q8_0, TFM_DTYPE_Q8_0, 2, 2, 32, 32, 0, TFM_STATUS_DTYPE, "'a' [N, 32] q8_0"},
        {0, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 2, 4, 4, 1, TFM_STATUS_SHAPE, "'a' [4, 4] f32"},
        {2, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 2, 3, 4, 0, TFM_STATUS_SHAPE,
         "'a' [N, 3] f32|'b' [N, 4] f32"},
        {2, TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 3, 3, 3, 0, TFM_STATUS_SHAPE,
         "'a' [N, 3] f32|'b' [N, 3, 2] f32"},
        {2, TFM_DTYPE_F32, TFM_DTYPE_BF16, 2, 2, 3, 3, 0, TFM_STATUS_DTYPE,
         "'a' [N, 3] f32|'b' [N, 3] bf16"},
    };
    struct trial t;

    if (lines[i].inputs > op->inputs)
        return;
    trial_begin(&t, 4, "%s refusal %d", op->name, i);
    if (lines[i].constant) {
        a = b = trial_parameter(&t, "a", lines[i].a, 2, 4, 4);
    } else {
        a = trial_input(&t, "a", lines[i].a, lines[i].rank_a, lines[i].width_a, 2);
        b = trial_input(&t, "b", lines[i].b, lines[i].rank_b, lines[i].width_b, 2);
    }
    ck_assert_ptr_null(op->build(t.graph, a, b));
    /* the text begins with the name of the op */
    struct tfm_error err = {0};
    (void)tfm_graph_check(t.graph, &err);
    ck_assert_msg(strncmp(err.text, op->name, strlen(op->name)) == 0, "%s", err.text);
    trial_refused(&t, lines[i].status, lines[i].words);
}
