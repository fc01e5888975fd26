/* SPDX-License-Identifier: MIT
 * embedding_grad: repeated ids, untouched rows, shapes that divide nothing. */
#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *ids, *dy, *dtable;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t width = dtable->shape[1];
    const int64_t n = rows->n * tfm_tensor_row_elements(ids);

    for (int64_t i = 0; i < dtable->shape[0] * width; i++)
        want[i] = trial->values[dtable->id][i];
    for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < width; i++)
            want[(int64_t)trial->values[ids->id][k] * width + i] +=
                trial->values[dy->id][k * width + i];
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t vocab,
                  int64_t width, int rank)
{
    trial_begin(t, rows, "embedding_grad %s [%lld, %lld] ids rank %d", tfm_dtype_name(dtype),
                (long long)vocab, (long long)width, rank);
    ids = trial_input(t, "ids", TFM_DTYPE_I32, rank, 3, 0);
    dy = trial_input(t, "dy", dtype, rank + 1, rank > 1 ? 3 : width, width);
    dtable = trial_sum(t, "dtable", dtype, 2, vocab, width);
    trial_output(t, tfm_op_embedding_grad(t->graph, ids, dy, dtable, 0));
    for (size_t i = 0; i < trial_count(t, ids); i++) {
        const double id = (double)(i % 3 == 2 ? vocab - 1 : (int64_t)(i / 2 * 7) % vocab);
        trial_set(t, ids, i, 1, &id);
    }
}

/* Fault: of a repeated id only the last counts; a row is found at a wrong stride; another row changes. */
START_TEST(repeated_ids_add_up)
{
    static const int64_t sizes[][2] = {{1, 1}, {3, 33}, {33, 65}, {97, 576}, {7, 16}};
    const enum tfm_dtype dtype = _i % 2 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
    struct trial t;

    for (int rank = 1; rank <= 2; rank++) {
        build(&t, 65, dtype, sizes[_i / 2][0], sizes[_i / 2][1], rank);
        trial_check_sums(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: operands that do not fit become a node; ids are not held against the table. */
START_TEST(refusals)
{
    struct trial t;

    build(&t, 4, TFM_DTYPE_F32, 5, 3, 1);
    ck_assert_int_eq(ids->limit, 5);
    ck_assert_ptr_null(
        tfm_op_embedding_grad(t.graph, ids, dy, trial_sum(&t, "other", TFM_DTYPE_F32, 2, 5, 4), 0));
    trial_refused(&t, TFM_STATUS_SHAPE,
                  "embedding_grad|dy 'dy' [N, 3] f32|dtable 'other' [5, 4] f32");
}
END_TEST

void tfm__cases_embedding_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "embedding_grad");

    tcase_add_loop_test(tcase, repeated_ids_add_up, 0, 10);
    tcase_add_test(trial_rule_tcase(suite, "embedding_grad rule"), refusals);
}
