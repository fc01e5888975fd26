/* SPDX-License-Identifier: MIT
 * From batches [B, T] with padding or packed segments to the rows of a run and back: a run has no padding
 * rows. */
#ifndef TFM_BATCH_H
#define TFM_BATCH_H

#include <tfm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The rows of a batch. Row i of the run is element source[i] = b T + t of the batch and has position
 * pos[i], counted from the start of its own sequence, whatever padding stands before it.
 *   mask  1 1 1      source 0 1 2  4 5  6  8    4 sequences: a line is one, or one a segment
 *         0 1 1      pos    0 1 2  0 1  0  0
 *         1 0 2      start  0      3    5  6 */
struct tfm_batch {
    struct tfm_rows rows;  /* its arrays are the ones below; out: the last row of each sequence */
    int32_t *source, *pos; /* [rows.n] */
    int32_t *slot, *start, *past; /* [rows.n_seq] slot[s] = s */
    int32_t *out;                 /* [rows.n_out]; a sequence without rows has none */
    int64_t elements;             /* B T */
    void *memory;
};

/* mask [B, T]: 0 = padding (left, right or both), n > 0 = segment n of its line. A line without rows makes
 * one empty sequence. past [n_past]: cells that each sequence has filled already, NULL = none; positions
 * go on from there. Release with tfm_batch_deinit.
 * SHAPE: n_mask is not B T, or n_past not the number of sequences (both named); INVALID_ARGUMENT: B or T
 * not positive, a negative number, a segment that is torn apart, a negative past; NOMEM. */
TFM_API enum tfm_status tfm_nn_rows_from_mask(const int32_t *mask, size_t n_mask, int64_t B,
                                              int64_t T, const int32_t *past, size_t n_past,
                                              struct tfm_batch *batch, struct tfm_error *err);
TFM_API void tfm_batch_deinit(struct tfm_batch *batch); /* a zeroed one is fine */

/* ids [B, T] -> rows [rows.n]: the padding is left out. SHAPE: n_ids is not B T. */
TFM_API enum tfm_status tfm_batch_gather(const struct tfm_batch *batch, const int32_t *ids,
                                         size_t n_ids, int32_t *rows, struct tfm_error *err);
/* rows [rows.n][bytes] -> elements [B, T][bytes]; padding becomes zero bytes. SHAPE: n is not B T. */
TFM_API enum tfm_status tfm_batch_scatter(const struct tfm_batch *batch, const void *rows,
                                          size_t bytes, void *elements, size_t n,
                                          struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
