/* SPDX-License-Identifier: MIT
 * The check of a run's rows against a plan: what passes here can be trusted by every kernel. */
#include "lib/core/rows.h"

static enum tfm_status check_slot(const struct tfm_rows *rows, uint32_t s, int64_t slots,
                                  struct tfm_error *err)
{
    if (rows->slot[s] < 0 || rows->slot[s] >= slots)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "rows: sequence %u is in slot %d, but the cache has %lld", s,
                             rows->slot[s], (long long)slots);
    for (uint32_t r = 0; r < s; r++) {
        if (rows->slot[r] == rows->slot[s])
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "rows: sequences %u and %u both write slot %d", r, s,
                                 rows->slot[s]);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status check_sequence(const struct tfm_rows *rows, uint32_t s,
                                      const struct tfm__rows_needs *needs, struct tfm_error *err)
{
    const int64_t begin = rows->start[s];
    const int64_t end = s + 1 < rows->n_seq ? rows->start[s + 1] : (int64_t)rows->n;
    enum tfm_status status = TFM_STATUS_OK;

    if (begin < 0 || end < begin || end > rows->n || (s == 0 && begin != 0))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "rows: sequence %u covers rows %lld..%lld of %u; starts ascend from 0",
                             s, (long long)begin, (long long)end, rows->n);
    if (needs->cells)
        status = check_slot(rows, s, needs->slots, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (rows->past[s] < 0)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "rows: sequence %u has a past of %d", s,
                             rows->past[s]);
    if (needs->no_past && rows->past[s] > 0)
        return tfm_error_set(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "rows: sequence %u has a past of %d, but an attention without cache sees "
            "the rows of this run only: give it the whole sequence at once",
            s, rows->past[s]);
    if (needs->cells && rows->past[s] + (end - begin) > needs->cells)
        return tfm_error_set(
            err, TFM_STATUS_CONTEXT_FULL,
            "context full: sequence %u has %d tokens and gets %lld more, the cache "
            "holds %lld",
            s, rows->past[s], (long long)(end - begin), (long long)needs->cells);
    return TFM_STATUS_OK;
}

enum tfm_status tfm__rows_check(const struct tfm_rows *rows, const struct tfm_capacity *capacity,
                                const struct tfm__rows_needs *needs, struct tfm_error *err)
{
    if (rows->n > capacity->rows || rows->n_out > capacity->out_rows ||
        rows->n_seq > capacity->sequences)
        return tfm_error_set(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "rows: %u rows, %u sequences, %u out rows; the plan was compiled for %u, "
            "%u, %u",
            rows->n, rows->n_seq, rows->n_out, capacity->rows, capacity->sequences,
            capacity->out_rows);
    if ((rows->n_seq && (!rows->start || !rows->slot || !rows->past)) ||
        (rows->n_out && !rows->out))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "rows: an array is missing");
    if (needs->sequences && rows->n && !rows->n_seq)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "rows: %u rows belong to no sequence, but the plan has an attention",
                             rows->n);
    for (uint32_t s = 0; needs->sequences && s < rows->n_seq; s++) {
        const enum tfm_status status = check_sequence(rows, s, needs, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    for (uint32_t i = 0; i < rows->n_out; i++) {
        if (rows->out[i] < 0 || (uint32_t)rows->out[i] >= rows->n)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "rows: out row %d is not in [0, %u)",
                                 rows->out[i], rows->n);
    }
    return TFM_STATUS_OK;
}
