/* SPDX-License-Identifier: MIT
 * Batches [B, T] with padding or packed segments, as the rows of a run and back. */
#include <string.h>

#include <tfm/batch.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"

struct counts {
    size_t rows, sequences, filled; /* filled: sequences that have rows */
};

static enum tfm_status check(const int32_t *mask, size_t n_mask, int64_t B, int64_t T,
                             struct tfm_error *err)
{
    size_t elements;

    if (B < 1 || T < 1 || tfm__mul_size((size_t)B, (size_t)T, &elements) || elements > INT32_MAX)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "mask: a batch [%lld, %lld]; both are positive, their product at most "
                             "2^31-1",
                             (long long)B, (long long)T);
    if (n_mask != elements)
        return tfm_error_set(err, TFM_STATUS_SHAPE,
                             "mask: %zu values do not fit a batch [%lld, %lld] of %zu", n_mask,
                             (long long)B, (long long)T, elements);
    for (size_t i = 0; i < elements; i++) {
        if (mask[i] < 0)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "mask: line %zu has %d at %zu; it holds 0 for padding, or the "
                                 "number of a segment",
                                 i / (size_t)T, mask[i], i % (size_t)T);
    }
    return TFM_STATUS_OK;
}

/* Length of the segment that begins at t; 0 for padding. */
static int64_t segment_at(const int32_t *line, int64_t T, int64_t t)
{
    int64_t end = t;
    while (line[t] > 0 && end < T && line[end] == line[t])
        end++;
    return end - t;
}

/* A number that comes back after its segment has ended would be two sequences. */
static enum tfm_status check_torn(const int32_t *line, int64_t b, int64_t t, struct tfm_error *err)
{
    for (int64_t i = 0; i + 1 < t; i++) {
        if (line[i] == line[t])
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "mask: line %lld: segment %d is torn apart, at %lld and again at "
                                 "%lld; padding stands at the ends, and each segment has a number "
                                 "of its own",
                                 (long long)b, line[t], (long long)i, (long long)t);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status count(const int32_t *mask, int64_t B, int64_t T, struct counts *counts,
                             struct tfm_error *err)
{
    *counts = (struct counts){0};
    for (int64_t b = 0; b < B; b++) {
        const int32_t *line = mask + b * T;
        size_t segments = 0;
        for (int64_t t = 0, length; t < T; t += length ? length : 1) {
            length = segment_at(line, T, t);
            if (length == 0)
                continue;
            const enum tfm_status status = check_torn(line, b, t, err);
            if (status != TFM_STATUS_OK)
                return status;
            counts->rows += (size_t)length;
            segments++;
        }
        counts->filled += segments;
        counts->sequences += segments ? segments : 1;
    }
    return TFM_STATUS_OK;
}

static enum tfm_status allocate(struct tfm_batch *batch, const struct counts *counts,
                                struct tfm_error *err)
{
    /* at most 6 arrays of 2^31 elements: no overflow in 64 bits */
    const size_t n = 2 * counts->rows + 3 * counts->sequences + counts->filled;
    int32_t *memory = tfm__alloc_array(n ? n : 1, sizeof *memory);

    if (!memory)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "mask: out of memory for %zu rows",
                             counts->rows);
    batch->memory = memory;
    batch->source = memory;
    batch->pos = batch->source + counts->rows;
    batch->slot = batch->pos + counts->rows;
    batch->start = batch->slot + counts->sequences;
    batch->past = batch->start + counts->sequences;
    batch->out = batch->past + counts->sequences;
    return TFM_STATUS_OK;
}

static void add_sequence(struct tfm_batch *batch, int64_t first, int64_t length,
                         const int32_t *past)
{
    const uint32_t s = batch->rows.n_seq++;

    batch->slot[s] = (int32_t)s;
    batch->start[s] = (int32_t)batch->rows.n;
    batch->past[s] = past ? past[s] : 0;
    for (int64_t i = 0; i < length; i++) {
        batch->source[batch->rows.n] = (int32_t)(first + i);
        batch->pos[batch->rows.n++] = batch->past[s] + (int32_t)i;
    }
    if (length)
        batch->out[batch->rows.n_out++] = (int32_t)batch->rows.n - 1;
}

static void fill(struct tfm_batch *batch, const int32_t *mask, int64_t B, int64_t T,
                 const int32_t *past)
{
    for (int64_t b = 0; b < B; b++) {
        const uint32_t before = batch->rows.n_seq;
        for (int64_t t = 0, length; t < T; t += length ? length : 1) {
            length = segment_at(mask + b * T, T, t);
            if (length)
                add_sequence(batch, b * T + t, length, past);
        }
        if (batch->rows.n_seq == before)
            add_sequence(batch, b * T, 0, past);
    }
    batch->rows.slot = batch->slot;
    batch->rows.start = batch->start;
    batch->rows.past = batch->past;
    batch->rows.out = batch->out;
    batch->elements = B * T;
}

static enum tfm_status check_past(const int32_t *past, size_t n_past, const struct counts *counts,
                                  int64_t T, struct tfm_error *err)
{
    if (past && n_past != counts->sequences)
        return tfm_error_set(err, TFM_STATUS_SHAPE,
                             "mask: a past of %zu sequences, but the mask has %zu", n_past,
                             counts->sequences);
    for (size_t s = 0; past && s < n_past; s++) {
        if (past[s] < 0 || past[s] > INT32_MAX - T)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "mask: sequence %zu has a past of %d", s, past[s]);
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm_nn_rows_from_mask(const int32_t *mask, size_t n_mask, int64_t B, int64_t T,
                                      const int32_t *past, size_t n_past, struct tfm_batch *batch,
                                      struct tfm_error *err)
{
    struct tfm_batch made = {0};
    struct counts counts = {0};

    tfm_error_clear(err);
    enum tfm_status status = check(mask, n_mask, B, T, err);
    if (status == TFM_STATUS_OK)
        status = count(mask, B, T, &counts, err);
    if (status == TFM_STATUS_OK)
        status = check_past(past, n_past, &counts, T, err);
    if (status == TFM_STATUS_OK)
        status = allocate(&made, &counts, err);
    if (status != TFM_STATUS_OK)
        return status;
    fill(&made, mask, B, T, past);
    *batch = made;
    return TFM_STATUS_OK;
}

void tfm_batch_deinit(struct tfm_batch *batch)
{
    tfm__free(batch->memory);
    *batch = (struct tfm_batch){0};
}

static enum tfm_status check_elements(const struct tfm_batch *batch, const char *what, size_t n,
                                      struct tfm_error *err)
{
    if (n == (size_t)batch->elements)
        return TFM_STATUS_OK;
    return tfm_error_set(err, TFM_STATUS_SHAPE, "batch: %zu %s, but its mask had %lld", n, what,
                         (long long)batch->elements);
}

enum tfm_status tfm_batch_gather(const struct tfm_batch *batch, const int32_t *ids, size_t n_ids,
                                 int32_t *rows, struct tfm_error *err)
{
    tfm_error_clear(err);
    const enum tfm_status status = check_elements(batch, "ids", n_ids, err);
    for (uint32_t i = 0; status == TFM_STATUS_OK && i < batch->rows.n; i++)
        rows[i] = ids[batch->source[i]];
    return status;
}

enum tfm_status tfm_batch_scatter(const struct tfm_batch *batch, const void *rows, size_t bytes,
                                  void *elements, size_t n, struct tfm_error *err)
{
    const unsigned char *from = rows;
    unsigned char *to = elements;

    tfm_error_clear(err);
    const enum tfm_status status = check_elements(batch, "elements", n, err);
    if (status != TFM_STATUS_OK)
        return status;
    memset(to, 0, n * bytes);
    for (uint32_t i = 0; i < batch->rows.n; i++)
        memcpy(to + (size_t)batch->source[i] * bytes, from + (size_t)i * bytes, bytes);
    return TFM_STATUS_OK;
}
