/* SPDX-License-Identifier: MIT
 * Text to token ids: check UTF-8, cut out written-out tokens, split into words, merge each word.
 * All working memory belongs to the call, the tokenizer is only read. */
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/llm/hash.h"
#include "lib/llm/tokenizer_internal.h"
#include "lib/llm/utf8.h"

/* Words come again. A long text gets a table of words that were merged already; a short one would
 * not pay for clearing it. */
enum {
    CACHE_TEXT_BYTES = 8 << 10,
    CACHE_SLOTS = 1 << 13, /* a power of two */
    CACHE_WORD_BYTES = 16,
    CACHE_TOKENS = 5,
    WATCH_BYTES = 1 << 18, /* some hundredths of a second */
};

struct cached_word {
    uint64_t key[2]; /* the bytes, filled up with 0 */
    unsigned char size, n;
    int32_t ids[CACHE_TOKENS];
};

struct encoding {
    const struct tfm_tokenizer *tokenizer;
    const unsigned char *text;
    int32_t *ids;
    size_t n, capacity;
    struct cached_word *cache;             /* NULL = none */
    const struct tfm__encode_watch *watch; /* NULL = nobody watches */
    size_t size, look;                     /* of the text; where the watch is asked next */
    struct tfm__bpe_scratch scratch;
    struct tfm_error *err;
};

static enum tfm_status no_memory(const struct encoding *e)
{
    return tfm_error_set(e->err, TFM_STATUS_NOMEM, "out of memory after %zu tokens", e->n);
}

/* Makes room for `more` ids. */
static enum tfm_status reserve(struct encoding *e, size_t more)
{
    size_t wanted, bytes;
    int32_t *ids;

    if (more <= e->capacity - e->n)
        return TFM_STATUS_OK;
    if (tfm__add_size(e->n, more, &wanted) || tfm__add_size(wanted, wanted / 2, &wanted) ||
        tfm__mul_size(wanted, sizeof *ids, &bytes))
        return no_memory(e);
    ids = realloc(e->ids, bytes);
    if (!ids)
        return no_memory(e);
    e->ids = ids;
    e->capacity = wanted;
    return TFM_STATUS_OK;
}

static enum tfm_status put_id(struct encoding *e, int32_t id)
{
    enum tfm_status status = reserve(e, 1);

    if (status == TFM_STATUS_OK)
        e->ids[e->n++] = id;
    return status;
}

/* Merges the word text[begin, end) at the end of the ids. */
static enum tfm_status merge_word(struct encoding *e, size_t begin, size_t end)
{
    const struct tfm__vocabulary *v = &e->tokenizer->vocabulary;
    size_t size = end - begin;
    int32_t *ids;
    enum tfm_status status = reserve(e, size);

    if (status != TFM_STATUS_OK)
        return status;
    ids = e->ids + e->n;
    if (e->tokenizer->splitter->whole_words) {
        ids[0] = tfm__vocabulary_find(v, e->text + begin, size);
        if (ids[0] >= 0) {
            e->n++;
            return TFM_STATUS_OK;
        }
    }
    for (size_t i = 0; i < size; i++) {
        ids[i] = v->byte_ids[e->text[begin + i]];
        if (ids[i] < 0)
            return tfm_error_set(
                e->err, TFM_STATUS_UNSUPPORTED,
                "byte 0x%02x at offset %zu of the text: this model has no token for "
                "it, take it out",
                e->text[begin + i], begin + i);
    }
    if (tfm__bpe_merge_word(&e->tokenizer->bpe, &e->scratch, ids, &size))
        return no_memory(e);
    e->n += size;
    return TFM_STATUS_OK;
}

static enum tfm_status put_word(struct encoding *e, size_t begin, size_t end)
{
    size_t size = end - begin, first = e->n;
    uint64_t key[2] = {0, 0};
    struct cached_word *slot;
    enum tfm_status status;

    if (!e->cache || size > CACHE_WORD_BYTES)
        return merge_word(e, begin, end);
    memcpy(key, e->text + begin, size);
    slot = &e->cache[tfm__hash_mix(key[0] ^ tfm__hash_mix(key[1] + size)) & (CACHE_SLOTS - 1)];
    if (slot->size == size && slot->key[0] == key[0] && slot->key[1] == key[1]) {
        status = reserve(e, CACHE_TOKENS);
        if (status != TFM_STATUS_OK)
            return status;
        memcpy(e->ids + e->n, slot->ids, sizeof slot->ids);
        e->n += slot->n;
        return TFM_STATUS_OK;
    }
    status = merge_word(e, begin, end);
    if (status == TFM_STATUS_OK && e->n - first <= CACHE_TOKENS) {
        slot->key[0] = key[0];
        slot->key[1] = key[1];
        slot->size = (unsigned char)size;
        slot->n = (unsigned char)(e->n - first);
        memcpy(slot->ids, e->ids + first, slot->n * sizeof *slot->ids);
    }
    return status;
}

static enum tfm_status ask_watch(struct encoding *e, size_t at)
{
    if (!e->watch || at < e->look)
        return TFM_STATUS_OK;
    e->look = at + WATCH_BYTES;
    return e->watch->go_on(e->watch->context, at, e->size)
               ? TFM_STATUS_OK
               : tfm_error_set(e->err, TFM_STATUS_CANCELLED, "stopped at byte %zu of %zu", at,
                               e->size);
}

/* Text without written-out tokens. The splitter must not see what is behind it. */
static enum tfm_status put_text(struct encoding *e, size_t begin, size_t end)
{
    enum tfm_status status = TFM_STATUS_OK;
    size_t at = begin;

    while (at < end && status == TFM_STATUS_OK) {
        size_t next =
            begin + e->tokenizer->splitter->next(e->text + begin, end - begin, at - begin);
        status = put_word(e, at, next);
        at = next;
        if (status == TFM_STATUS_OK)
            status = ask_watch(e, at);
    }
    return status;
}

static enum tfm_status put_all(struct encoding *e, size_t size, unsigned flags)
{
    const struct tfm_tokenizer *t = e->tokenizer;
    const struct tfm__special *special = flags & TFM_TOKENIZE_SPECIAL ? &t->special : &t->user;
    size_t at = 0, begin, end;
    int32_t id;
    enum tfm_status status = TFM_STATUS_OK;

    while (status == TFM_STATUS_OK && (id = tfm__special_find(special, &t->vocabulary, e->text,
                                                              size, at, &begin, &end)) >= 0) {
        status = put_text(e, at, begin);
        if (status == TFM_STATUS_OK)
            status = put_id(e, id);
        at = end;
    }
    return status == TFM_STATUS_OK ? put_text(e, at, size) : status;
}

enum tfm_status tfm__tokenizer_encode(const struct tfm_tokenizer *tokenizer, const char *text,
                                      size_t size, unsigned flags,
                                      const struct tfm__encode_watch *watch, int32_t **ids,
                                      size_t *n, struct tfm_error *err)
{
    struct encoding e = {.tokenizer = tokenizer,
                         .text = (const unsigned char *)text,
                         .watch = watch,
                         .size = size,
                         .err = err};
    int bos = (flags & TFM_TOKENIZE_BOS) && tokenizer->add_bos;
    size_t valid;
    enum tfm_status status;

    tfm_error_clear(err);
    if (size > INT32_MAX) /* positions in a word are 32 bits */
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "a text of %zu bytes, at most %d: encode it in parts", size,
                             INT32_MAX);
    valid = tfm__utf8_check(e.text, size);
    if (valid < size)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "byte 0x%02x at offset %zu of the text is not valid UTF-8: convert it "
                             "(iconv)",
                             e.text[valid], valid);
    status = reserve(&e, size / 3 + 8);
    if (status == TFM_STATUS_OK && size >= CACHE_TEXT_BYTES) {
        e.cache = calloc(CACHE_SLOTS, sizeof *e.cache);
        if (!e.cache)
            status = no_memory(&e);
    }
    if (status == TFM_STATUS_OK && bos)
        status = put_id(&e, tokenizer->bos);
    if (status == TFM_STATUS_OK)
        status = put_all(&e, size, flags);
    free(e.cache);
    free(e.scratch.memory);
    if (status != TFM_STATUS_OK) {
        free(e.ids);
        return status;
    }
    if (bos && e.n > 1 && e.ids[1] == tokenizer->bos) /* it was written out in the text */
        memmove(e.ids, e.ids + 1, --e.n * sizeof *e.ids);
    *ids = e.ids;
    *n = e.n;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_tokenizer_encode(const struct tfm_tokenizer *tokenizer, const char *text,
                                     size_t size, unsigned flags, int32_t **ids, size_t *n,
                                     struct tfm_error *err)
{
    return tfm__tokenizer_encode(tokenizer, text, size, flags, NULL, ids, n, err);
}
