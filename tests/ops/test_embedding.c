/* SPDX-License-Identifier: MIT
 * embedding: every table dtype, repeated and border ids, positions, guards, offsets; cases A06, A13. */
#include <string.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *table, *ids;

static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t width = table->shape[1];

    for (int64_t n = 0; n < rows->n * tfm_tensor_row_elements(ids); n++) {
        const int64_t id = (int64_t)trial->values[ids->id][n];
        for (int64_t i = 0; i < width; i++)
            want[n * width + i] = trial->values[table->id][id * width + i];
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t vocab,
                  int64_t width)
{
    trial_begin(t, rows, "embedding %s [%lld, %lld]", tfm_dtype_name(dtype), (long long)vocab,
                (long long)width);
    table = trial_parameter(t, "table", dtype, 2, vocab, width);
    ids = trial_input(t, "ids", TFM_DTYPE_I32, 1, 0, 0);
    trial_output(t, tfm_op_embedding(t->graph, table, ids));
    for (uint32_t n = 0; n < rows; n++) { /* the last id, the first, then some twice */
        const double id = n == 0   ? (double)(vocab - 1)
                          : n == 1 ? 0
                                   : (double)((n / 2 * 7919) % (uint32_t)vocab);
        trial_set(t, ids, n, 1, &id);
    }
}

/* Fault: a table dtype is read wrongly, a row at a wrong stride, or a partial vector is dropped. Values
 * of float tables arrive as they are, those of blocks after two operations. */
START_TEST(dtypes)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 65, 576, 32, 96, 1536};
    const enum tfm_dtype dtype = (enum tfm_dtype)_i;

    if (dtype == TFM_DTYPE_I32)
        return;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        if (widths[w] % tfm_dtype_info(dtype)->block != 0)
            continue;
        build(&t, 65, dtype, 50, widths[w]);
        t.exact = tfm_dtype_info(dtype)->dtype_class == TFM_DTYPE_FLOAT;
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: of several ids a row only the first is looked up, or they are taken row by row. */
START_TEST(more_extents)
{
    for (int rank = 2; rank <= 3; rank++) {
        struct trial t;
        trial_begin(&t, 33, "embedding of ids of rank %d", rank);
        table = trial_parameter(&t, "table", TFM_DTYPE_F16, 2, 50, 7);
        ids = trial_input(&t, "ids", TFM_DTYPE_I32, rank, 3, 2);
        trial_output(&t, tfm_op_embedding(t.graph, table, ids));
        ck_assert_int_eq(t.output->rank, rank + 1);
        ck_assert_int_eq(t.output->shape[rank], 7);
        for (size_t i = 0; i < trial_count(&t, ids); i++) {
            const double id = (double)(i * 17 % 50);
            trial_set(&t, ids, i, 1, &id);
        }
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* token embedding (of zeros) plus a learned position: row p of its table is p. */
static void build_positions(struct trial *t, uint32_t rows)
{
    trial_begin(t, rows, "learned positions");
    struct tfm_tensor *tokens = trial_parameter(t, "tokens", TFM_DTYPE_F32, 2, 5, 3);
    table = trial_parameter(t, "positions", TFM_DTYPE_F32, 2, 8, 3);
    struct tfm_tensor *words = trial_input(t, "words", TFM_DTYPE_I32, 1, 0, 0);
    ids = trial_input(t, "pos", TFM_DTYPE_I32, 1, 0, 0);
    trial_set_all(t, tokens, 0);
    for (size_t i = 0; i < 24; i++) {
        const double p = (double)(i / 3);
        trial_set(t, table, i, 1, &p);
    }
    trial_output(t, tfm_op_add(t->graph, tfm_op_embedding(t->graph, tokens, words),
                               tfm_op_position_embedding(t->graph, table, ids)));
}

static void added_values(struct trial *t, int first, uint32_t n)
{
    const struct tfm_rows rows = trial_rows(n, 0);

    for (uint32_t i = 0; i < n; i++) {
        const double p = first + (double)i;
        trial_set(t, ids, i, 1, &p);
    }
    trial_run(t, &rows, TFM_STATUS_OK);
    for (uint32_t i = 0; i < n * 3; i++) {
        double y;
        trial_get(t, t->output, i, 1, &y);
        ck_assert_double_eq(y, first + (double)(i / 3));
    }
}

/* A13. Fault: a position restarts at 0 for each run, or is skipped when there is one row. 5 at once, then
 * one by one; the ninth is no row of the table and not OUT_OF_RANGE either. The core refuses it before
 * a backend sees it (tests/core/test_values.c), the reference looks again. */
START_TEST(a13_learned_positions)
{
    const struct tfm_rows one = trial_rows(1, 0);
    const double ninth = 8, negative = -1;
    struct trial t;

    build_positions(&t, 5);
    ck_assert(ids->is_position && ids->limit == 8);
    ck_assert(!tfm_graph_find(t.graph, "words")->is_position);
    if (trial_open(&t, 0)) {
        added_values(&t, 0, 5);
        for (int p = 5; p < 8; p++)
            added_values(&t, p, 1);
        added_values(&t, 3, 5);
        if (trial_is_reference()) {
            trial_set(&t, ids, 0, 1, &ninth);
            trial_run(&t, &one, TFM_STATUS_CONTEXT_FULL);
            trial_set(&t, ids, 0, 1, &negative);
            trial_run(&t, &one, TFM_STATUS_OUT_OF_RANGE);
        }
    }
    trial_end(&t);
}
END_TEST

/* Fault: the offset of a row overflows 16 bits, or a panel of a packed table is taken for another. */
START_TEST(large_table)
{
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_Q4_1, TFM_DTYPE_Q8_0};
    struct trial t;

    build(&t, 129, dtypes[_i], 5003, 64);
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* A06. Fault: an id outside the table reads foreign memory. The core refuses it before any backend
 * sees it; the rule must have told the core the limit, and the reference looks again. */
START_TEST(a06_id_out_of_range)
{
    static const double bad[] = {-1, 8, 2147483647};
    const struct tfm_rows rows = trial_rows(3, 0);
    struct trial t;

    build(&t, 3, TFM_DTYPE_F32, 8, 4);
    ck_assert_int_eq(ids->limit, 8);
    if (trial_is_reference()) {
        trial_set(&t, ids, 2, 1, &bad[_i]);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OUT_OF_RANGE);
    }
    trial_end(&t);
}
END_TEST

/* Fault: the smaller of two tables that the same ids index is not the limit. */
START_TEST(smallest_limit_wins)
{
    static const int64_t small[] = {5, 4}, large[] = {9, 4};
    struct trial t;

    build(&t, 1, TFM_DTYPE_F32, 7, 4);
    tfm_op_embedding(t.graph, tfm_graph_parameter(t.graph, "s", TFM_DTYPE_F32, 2, small), ids);
    tfm_op_embedding(t.graph, tfm_graph_parameter(t.graph, "l", TFM_DTYPE_F32, 2, large), ids);
    ck_assert_int_eq(tfm_graph_check(t.graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(ids->limit, 5);
    trial_end(&t);
}
END_TEST

/* Fault: a shape or dtype that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype table, ids;
        int table_rank, ids_rank;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 1, TFM_STATUS_DTYPE, "embedding|'ids' [N] f32|'table'"},
        {TFM_DTYPE_I32, TFM_DTYPE_I32, 2, 1, TFM_STATUS_DTYPE, "'table' [8, 32] i32"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, 1, 1, TFM_STATUS_SHAPE, "'table' [8] f32"},
        {TFM_DTYPE_F32, TFM_DTYPE_I32, 2, 4, TFM_STATUS_SHAPE, "'ids' [N, 2, 2, 2] i32|[8, 32]"},
    };
    struct trial t;

    trial_begin(&t, 4, "embedding refusal %d", _i);
    table = trial_parameter(&t, "table", rows[_i].table, rows[_i].table_rank, 8, 32);
    ids = rows[_i].ids_rank == 4 ? trial_input_4(&t, "ids", rows[_i].ids, 2, 2, 2)
                                 : trial_input(&t, "ids", rows[_i].ids, rows[_i].ids_rank, 2, 0);
    ck_assert_ptr_null(tfm_op_embedding(t.graph, table, ids));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

void tfm__cases_embedding(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "embedding");
    TCase *rule = trial_rule_tcase(suite, "embedding rule");

    tcase_add_loop_test(tcase, dtypes, 0, TFM_DTYPE_COUNT);
    tcase_add_test(tcase, more_extents);
    tcase_add_test(tcase, a13_learned_positions);
    tcase_add_loop_test(tcase, large_table, 0, 3);
    tcase_add_loop_test(tcase, a06_id_out_of_range, 0, 3);
    tcase_add_test(rule, smallest_limit_wins);
    tcase_add_loop_test(rule, refusals, 0, 4);
}
