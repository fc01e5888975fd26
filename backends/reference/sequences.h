/* SPDX-License-Identifier: MIT
 * Which sequence a row belongs to, for ops that mix the rows of one. */
#ifndef TFM__REFERENCE_SEQUENCES_H
#define TFM__REFERENCE_SEQUENCES_H

#include "backends/reference/reference.h"

/* One past the last row of sequence s. */
static inline size_t tfm__reference_sequence_end(const struct tfm_rows *rows, uint32_t s)
{
    return s + 1 < rows->n_seq ? (size_t)rows->start[s + 1] : rows->n;
}

static inline size_t tfm__reference_position(const struct tfm_rows *rows, uint32_t s, size_t row)
{
    return (size_t)rows->past[s] + (row - (size_t)rows->start[s]);
}

/* Sequence of a row; sequences without rows own none. */
uint32_t tfm__reference_sequence_of(const struct tfm_rows *rows, size_t row);

/* The core has checked the same; this keeps a wrong caller from writing outside the cache [slots, cells,
 * ...]. cache NULL: nothing is kept, so past must be 0. */
enum tfm_status tfm__reference_check_rows(const struct tfm__reference_call *call,
                                          const struct tfm_tensor *cache);

#endif
