/* SPDX-License-Identifier: MIT
 * Writes token files: ids as they come, the head at the end, when their number is known. */
#include <stdlib.h>

#include <tfm/dataset.h>

#include "lib/core/little_endian.h"
#include "lib/core/save.h"
#include "lib/train/dataset_file.h"

enum { BUFFER_BYTES = 1 << 16 };

struct tfm_dataset_writer {
    struct tfm__save save;
    uint64_t vocab, tokenizer, count, checksum;
    size_t width, n; /* bytes of an id; bytes in the buffer */
    unsigned char buffer[BUFFER_BYTES];
};

enum tfm_status tfm_dataset_writer_create(const char *path, uint64_t vocab, uint64_t tokenizer,
                                          struct tfm_dataset_writer **writer, struct tfm_error *err)
{
    static const unsigned char empty[TFM__DATASET_HEAD];
    enum tfm_status status;

    tfm_error_clear(err);
    if (vocab == 0 || vocab > UINT64_C(1) << 31)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: a vocabulary of %llu tokens, must be 1 to 2147483648", path,
                             (unsigned long long)vocab);
    struct tfm_dataset_writer *w = calloc(1, sizeof *w);
    if (!w)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    w->vocab = vocab;
    w->tokenizer = tokenizer;
    w->checksum = TFM__FNV_BEGIN;
    w->width = vocab <= 65536 ? 2 : 4;
    status = tfm__save_begin(&w->save, path, err);
    if (status == TFM_STATUS_OK && w->save.direct)
        status = tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                               "%s: not a regular file: its head cannot be written last", path);
    if (status == TFM_STATUS_OK)
        status = tfm__save_put(&w->save, empty, sizeof empty, err);
    if (status != TFM_STATUS_OK)
        tfm_dataset_writer_destroy(w);
    else
        *writer = w;
    return status;
}

static enum tfm_status flush(struct tfm_dataset_writer *w, struct tfm_error *err)
{
    const size_t n = w->n;

    w->checksum = tfm__fnv(w->checksum, w->buffer, n);
    w->n = 0;
    return tfm__save_put(&w->save, w->buffer, n, err);
}

/* A write failed: the temporary file is gone. */
static enum tfm_status gone(const struct tfm_dataset_writer *w, struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_IO, "%s: an earlier write failed", w->save.target);
}

enum tfm_status tfm_dataset_writer_add(struct tfm_dataset_writer *writer, const int32_t *ids,
                                       size_t n, struct tfm_error *err)
{
    struct tfm_dataset_writer *w = writer;
    enum tfm_status status = TFM_STATUS_OK;

    tfm_error_clear(err);
    if (w->save.fd < 0)
        return gone(w, err);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint64_t)ids[i] >= w->vocab)
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                                 "%s: id %d is not in the vocabulary of %llu tokens",
                                 w->save.target, ids[i], (unsigned long long)w->vocab);
    for (size_t i = 0; i < n && status == TFM_STATUS_OK; i++) {
        tfm__le_store(w->buffer + w->n, (uint64_t)ids[i], w->width);
        w->n += w->width;
        if (w->n == sizeof w->buffer)
            status = flush(w, err);
    }
    w->count += n;
    return status;
}

int tfm_dataset_writer_same(const struct tfm_dataset_writer *writer,
                            const struct tfm_dataset *dataset)
{
    const struct tfm_dataset_writer *w = writer;

    return w->vocab == tfm_dataset_vocab(dataset) &&
           w->tokenizer == tfm_dataset_tokenizer(dataset) &&
           w->count == tfm_dataset_count(dataset) &&
           tfm__fnv(w->checksum, w->buffer, w->n) == tfm_dataset_checksum(dataset);
}

enum tfm_status tfm_dataset_writer_finish(struct tfm_dataset_writer *writer, struct tfm_error *err)
{
    struct tfm_dataset_writer *w = writer;
    unsigned char head[TFM__DATASET_HEAD] = TFM__DATASET_MAGIC;
    enum tfm_status status;

    tfm_error_clear(err);
    if (w->save.fd < 0)
        return gone(w, err);
    status = flush(w, err);
    if (status != TFM_STATUS_OK)
        return status;
    tfm__le_store(head + TFM__DATASET_AT_VERSION, TFM__DATASET_VERSION, 4);
    tfm__le_store(head + TFM__DATASET_AT_WIDTH, w->width, 4);
    tfm__le_store(head + TFM__DATASET_AT_VOCAB, w->vocab, 8);
    tfm__le_store(head + TFM__DATASET_AT_TOKENIZER, w->tokenizer, 8);
    tfm__le_store(head + TFM__DATASET_AT_COUNT, w->count, 8);
    tfm__le_store(head + TFM__DATASET_AT_CHECKSUM, w->checksum, 8);
    if (lseek(w->save.fd, 0, SEEK_SET) != 0) {
        const int error = errno;
        tfm__save_abandon(&w->save);
        return tfm__save_fail(&w->save, error, err);
    }
    status = tfm__save_put(&w->save, head, sizeof head, err);
    return status == TFM_STATUS_OK ? tfm__save_finish(&w->save, err) : status;
}

void tfm_dataset_writer_destroy(struct tfm_dataset_writer *writer)
{
    if (!writer)
        return;
    tfm__save_abandon(&writer->save);
    free(writer);
}
