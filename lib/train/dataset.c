/* SPDX-License-Identifier: MIT
 * Reads token files. Everything is checked once, when the file is opened: whoever reads ids later gets none that a table
 * does not have. */
#include <stdlib.h>
#include <string.h>

#include <tfm/dataset.h>

#include "lib/core/checked.h"
#include "lib/core/little_endian.h"
#include "lib/core/map.h"
#include "lib/train/dataset_file.h"

struct tfm_dataset {
    char *name;
    struct tfm__map map;
    const unsigned char *ids;
    size_t count, width;
    uint64_t vocab, tokenizer;
};

static enum tfm_status check_ids(const struct tfm_dataset *d, struct tfm_error *err)
{
    const uint64_t want = tfm__le_load(d->map.base + TFM__DATASET_AT_CHECKSUM, 8);
    const uint64_t sum = tfm__fnv(TFM__FNV_BEGIN, d->ids, d->count * d->width);

    if (sum != want)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: its ids have the checksum %016llx, its head says %016llx: it is "
                             "damaged, make it again",
                             d->name, (unsigned long long)sum, (unsigned long long)want);
    for (size_t i = 0; i < d->count; i++) {
        const uint64_t id = tfm__le_load(d->ids + i * d->width, d->width);
        if (id >= d->vocab)
            return tfm_error_set(err, TFM_STATUS_FORMAT,
                                 "%s: id %zu is %llu, the vocabulary has %llu tokens", d->name, i,
                                 (unsigned long long)id, (unsigned long long)d->vocab);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status parse(struct tfm_dataset *d, struct tfm_error *err)
{
    const unsigned char *head = d->map.base;
    const size_t size = d->map.size;
    size_t bytes;

    if (size < TFM__DATASET_HEAD || memcmp(head, TFM__DATASET_MAGIC, 8) != 0)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: not a token file", d->name);
    const uint64_t version = tfm__le_load(head + TFM__DATASET_AT_VERSION, 4);
    if (version != TFM__DATASET_VERSION)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: token file of version %llu, TFM reads %d: make it again", d->name,
                             (unsigned long long)version, TFM__DATASET_VERSION);
    const uint64_t width = tfm__le_load(head + TFM__DATASET_AT_WIDTH, 4),
                   count = tfm__le_load(head + TFM__DATASET_AT_COUNT, 8);
    d->vocab = tfm__le_load(head + TFM__DATASET_AT_VOCAB, 8);
    d->tokenizer = tfm__le_load(head + TFM__DATASET_AT_TOKENIZER, 8);
    if (d->vocab == 0 || d->vocab > UINT64_C(1) << 31 || width != (d->vocab <= 65536 ? 2 : 4))
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: ids of %llu bytes for a vocabulary of %llu tokens: malformed",
                             d->name, (unsigned long long)width, (unsigned long long)d->vocab);
    if (count > SIZE_MAX || tfm__mul_size((size_t)count, (size_t)width, &bytes) ||
        bytes != size - TFM__DATASET_HEAD)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: %llu ids of %llu bytes, but %zu bytes of them: truncated or "
                             "malformed, make it again",
                             d->name, (unsigned long long)count, (unsigned long long)width,
                             size - TFM__DATASET_HEAD);
    d->ids = head + TFM__DATASET_HEAD;
    d->count = (size_t)count;
    d->width = (size_t)width;
    return check_ids(d, err);
}

enum tfm_status tfm_dataset_open(const char *path, struct tfm_dataset **dataset,
                                 struct tfm_error *err)
{
    struct tfm_dataset *d;
    enum tfm_status status;

    tfm_error_clear(err);
    d = calloc(1, sizeof *d);
    if (d)
        d->name = strdup(path);
    if (!d || !d->name) {
        free(d);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    }
    status = tfm__map_open(&d->map, path, "a token file", err);
    if (status == TFM_STATUS_OK)
        status = parse(d, err);
    if (status != TFM_STATUS_OK)
        tfm_dataset_close(d);
    else
        *dataset = d;
    return status;
}

void tfm_dataset_close(struct tfm_dataset *dataset)
{
    if (!dataset)
        return;
    tfm__map_close(&dataset->map);
    free(dataset->name);
    free(dataset);
}

size_t tfm_dataset_count(const struct tfm_dataset *dataset)
{
    return dataset->count;
}

uint64_t tfm_dataset_checksum(const struct tfm_dataset *dataset)
{
    return tfm__le_load(dataset->map.base + TFM__DATASET_AT_CHECKSUM, 8);
}

uint64_t tfm_dataset_vocab(const struct tfm_dataset *dataset)
{
    return dataset->vocab;
}

uint64_t tfm_dataset_tokenizer(const struct tfm_dataset *dataset)
{
    return dataset->tokenizer;
}

enum tfm_status tfm_dataset_expect(const struct tfm_dataset *dataset, uint64_t vocab,
                                   uint64_t tokenizer, struct tfm_error *err)
{
    tfm_error_clear(err);
    if (dataset->vocab == vocab && dataset->tokenizer == tokenizer)
        return TFM_STATUS_OK;
    return tfm_error_set(
        err, TFM_STATUS_INVALID_ARGUMENT,
        "%s: its ids are of a tokenizer of %llu tokens (checksum %016llx), wanted is "
        "one of %llu (%016llx): make it again with this tokenizer",
        dataset->name, (unsigned long long)dataset->vocab, (unsigned long long)dataset->tokenizer,
        (unsigned long long)vocab, (unsigned long long)tokenizer);
}

enum tfm_status tfm_dataset_read(const struct tfm_dataset *dataset, size_t first, size_t n,
                                 int32_t *ids, struct tfm_error *err)
{
    const struct tfm_dataset *d = dataset;

    tfm_error_clear(err);
    if (first > d->count || n > d->count - first)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "%s: ids %zu to %zu of %zu", d->name,
                             first, first + n, d->count);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)tfm__le_load(d->ids + (first + i) * d->width, d->width);
    return TFM_STATUS_OK;
}
