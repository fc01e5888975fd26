/* SPDX-License-Identifier: MIT
 * Which sequence a row belongs to. */
#include "backends/reference/sequences.h"

uint32_t tfm__reference_sequence_of(const struct tfm_rows *rows, size_t row)
{
    uint32_t low = 0, high = rows->n_seq - 1;

    while (low < high) { /* the last one that starts at or before the row */
        const uint32_t middle = low + (high - low + 1) / 2;
        if ((size_t)rows->start[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static enum tfm_status check_cells(const struct tfm__reference_call *call, uint32_t s,
                                   int64_t added, const struct tfm_tensor *cache)
{
    const struct tfm_rows *rows = call->rows;
    const char *op = tfm_op_name(call->node->op);

    if (rows->slot[s] < 0 || rows->slot[s] >= cache->shape[0])
        return call->host->error(call->err, TFM_STATUS_OUT_OF_RANGE,
                                 "%s: slot %d of sequence %u does not lie in 0..%lld", op,
                                 rows->slot[s], s, (long long)cache->shape[0] - 1);
    if (rows->past[s] + added > cache->shape[1])
        return call->host->error(
            call->err, TFM_STATUS_CONTEXT_FULL,
            "%s: context full: sequence %u has %d cells and %lld new rows, but a slot holds %lld",
            op, s, rows->past[s], (long long)added, (long long)cache->shape[1]);
    return TFM_STATUS_OK;
}

enum tfm_status tfm__reference_check_rows(const struct tfm__reference_call *call,
                                          const struct tfm_tensor *cache)
{
    const struct tfm_rows *rows = call->rows;
    const char *op = tfm_op_name(call->node->op);
    enum tfm_status status = TFM_STATUS_OK;

    if (rows->n > 0 && (rows->n_seq == 0 || rows->start[0] != 0))
        return call->host->error(call->err, TFM_STATUS_INVALID_ARGUMENT,
                                 "%s: %u rows, but no sequence starts at row 0", op, rows->n);
    for (uint32_t s = 0; s < rows->n_seq && status == TFM_STATUS_OK; s++) {
        const int64_t start = rows->start[s];
        const int64_t end = s + 1 < rows->n_seq ? rows->start[s + 1] : (int64_t)rows->n;
        if (start < 0 || end < start || end > (int64_t)rows->n)
            return call->host->error(call->err, TFM_STATUS_INVALID_ARGUMENT,
                                     "%s: sequence %u has rows %lld..%lld of %u", op, s,
                                     (long long)start, (long long)end, rows->n);
        if (rows->past[s] < 0)
            return call->host->error(call->err, TFM_STATUS_OUT_OF_RANGE,
                                     "%s: past %d of sequence %u is negative", op, rows->past[s],
                                     s);
        if (cache)
            status = check_cells(call, s, end - start, cache);
        else if (rows->past[s] > 0)
            status = call->host->error(call->err, TFM_STATUS_INVALID_ARGUMENT,
                                       "%s: sequence %u has a past of %d, but there is no cache",
                                       op, s, rows->past[s]);
    }
    return status;
}
