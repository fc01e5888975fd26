/* SPDX-License-Identifier: MIT
 * Reads the tokens of a byte-level vocabulary. In the file each byte is written as a printable
 * character (GPT-2's byte alphabet); pieces are kept as the bytes themselves. */
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/llm/hash.h"
#include "lib/llm/text.h"
#include "lib/llm/utf8.h"
#include "lib/llm/vocabulary.h"

enum { PIECE_MAX_BYTES = 1024 };

int tfm__alphabet_printable(unsigned byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/* The byte that a character of the alphabet stands for, -1 if it is none. Printable Latin-1 stands
 * for itself; the other 68 bytes are U+0100 and up, in order. */
static int alphabet_byte(uint32_t character)
{
    uint32_t rank = character - 256;

    if (character < 256)
        return tfm__alphabet_printable(character) ? (int)character : -1;
    if (rank <= 32)
        return (int)rank;
    if (rank <= 66)
        return (int)(127 + rank - 33);
    return rank == 67 ? 173 : -1;
}

int tfm__alphabet_decode(struct tfm_text text, char *out, size_t *size)
{
    const unsigned char *in = (const unsigned char *)text.data;
    size_t at = 0, n = 0, length;

    while (at < text.size) {
        int byte;
        if (tfm__utf8_scan(in + at, text.size - at) <= 0)
            return 1;
        byte = alphabet_byte(tfm__utf8_decode(in + at, &length));
        if (byte < 0)
            return 1;
        out[n++] = (char)byte;
        at += length;
    }
    *size = n;
    return 0;
}

size_t tfm__alphabet_encode(unsigned char byte, char text[2])
{
    unsigned character = byte;

    if (!tfm__alphabet_printable(byte))
        character = 256 + (byte <= 32 ? byte : byte <= 160 ? byte - 127U + 33 : 67);
    if (character < 0x80) {
        text[0] = (char)character;
        return 1;
    }
    text[0] = (char)(0xc0 | character >> 6);
    text[1] = (char)(0x80 | (character & 0x3f));
    return 2;
}

/* First slot that is free or holds these bytes; SIZE_MAX after too many steps. */
static size_t probe(const struct tfm__vocabulary *v, const void *bytes, size_t size)
{
    size_t at = tfm__hash_bytes(bytes, size) & v->mask;

    for (int step = 0; step < TFM__HASH_PROBES; step++) {
        int32_t id = v->slots[at];
        if (id < 0 || (v->pieces[id].size == size && memcmp(v->pieces[id].data, bytes, size) == 0))
            return at;
        at = (at + 1) & v->mask;
    }
    return SIZE_MAX;
}

int32_t tfm__vocabulary_find(const struct tfm__vocabulary *vocabulary, const void *bytes,
                             size_t size)
{
    size_t slot = probe(vocabulary, bytes, size);
    return slot == SIZE_MAX ? -1 : vocabulary->slots[slot];
}

static enum tfm_status read_kinds(struct tfm__vocabulary *v, const struct tfm_gguf *gguf,
                                  struct tfm_error *err)
{
    static const char key[] = "tokenizer.ggml.token_type";
    struct tfm_gguf_array array;
    enum tfm_status status = tfm_gguf_get_array(gguf, key, &array, err);

    if (status == TFM_STATUS_NOT_FOUND) { /* an old file: all are normal */
        tfm_error_clear(err);
        memset(v->kinds, TFM__TOKEN_NORMAL, v->n);
        return TFM_STATUS_OK;
    }
    if (status != TFM_STATUS_OK)
        return status;
    if (array.count != v->n)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: %s has %zu elements, there are %zu tokens", tfm_gguf_path(gguf),
                             key, array.count, v->n);
    for (size_t i = 0; i < v->n; i++) {
        int64_t kind;
        status = tfm_gguf_array_int(&array, i, &kind, err);
        if (status != TFM_STATUS_OK) {
            tfm_error_prefix(err, "%s: %s", tfm_gguf_path(gguf), key);
            return status;
        }
        if (kind < TFM__TOKEN_NORMAL || kind > TFM__TOKEN_BYTE)
            return tfm_error_set(err, TFM_STATUS_FORMAT,
                                 "%s: %s of token %zu is %lld, must be 1..6", tfm_gguf_path(gguf),
                                 key, i, (long long)kind);
        v->kinds[i] = (unsigned char)kind;
    }
    return TFM_STATUS_OK;
}

/* Puts a token that BPE can make into the table. */
static enum tfm_status enter(struct tfm__vocabulary *v, int32_t id, const struct tfm_gguf *gguf,
                             struct tfm_error *err)
{
    struct tfm_text piece = v->pieces[id];
    struct tfm__quoted quoted;
    size_t slot = probe(v, piece.data, piece.size);

    if (slot == SIZE_MAX)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: tokenizer.ggml.tokens: token %d %s collides with more than %d "
                             "others: refused",
                             tfm_gguf_path(gguf), id, tfm__text_quote(piece, &quoted),
                             TFM__HASH_PROBES);
    if (v->slots[slot] >= 0)
        return tfm_error_set(
            err, TFM_STATUS_FORMAT, "%s: tokenizer.ggml.tokens: tokens %d and %d are both %s",
            tfm_gguf_path(gguf), v->slots[slot], id, tfm__text_quote(piece, &quoted));
    v->slots[slot] = id;
    if (piece.size == 1)
        v->byte_ids[(unsigned char)piece.data[0]] = id;
    return TFM_STATUS_OK;
}

static enum tfm_status read_pieces(struct tfm__vocabulary *v, const struct tfm_text *texts,
                                   const struct tfm_gguf *gguf, struct tfm_error *err)
{
    char *out = v->bytes;
    struct tfm__quoted quoted;

    for (size_t i = 0; i < v->n; i++) {
        size_t size = texts[i].size;
        int encoded = v->kinds[i] == TFM__TOKEN_NORMAL || v->kinds[i] == TFM__TOKEN_BYTE;
        if (size > PIECE_MAX_BYTES)
            return tfm_error_set(
                err, TFM_STATUS_FORMAT,
                "%s: tokenizer.ggml.tokens: token %zu %s has %zu bytes, at most %d",
                tfm_gguf_path(gguf), i, tfm__text_quote(texts[i], &quoted), size, PIECE_MAX_BYTES);
        /* what is not written in the alphabet stands for itself, and BPE never makes it */
        if (encoded && tfm__alphabet_decode(texts[i], out, &size) != 0)
            encoded = 0;
        if (!encoded)
            memcpy(out, texts[i].data, size);
        v->pieces[i].data = out;
        v->pieces[i].size = size;
        out += size;
        if (encoded && size > 0) {
            enum tfm_status status = enter(v, (int32_t)i, gguf, err);
            if (status != TFM_STATUS_OK)
                return status;
        }
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__vocabulary_init(struct tfm__vocabulary *vocabulary,
                                     const struct tfm_gguf *gguf, struct tfm_error *err)
{
    static const char key[] = "tokenizer.ggml.tokens";
    struct tfm__vocabulary *v = vocabulary;
    struct tfm_gguf_array array;
    struct tfm_text *texts = NULL;
    size_t n_slots, bytes = 0;
    enum tfm_status status;

    memset(v, 0, sizeof *v);
    memset(v->byte_ids, -1, sizeof v->byte_ids);
    status = tfm_gguf_get_array(gguf, key, &array, err);
    if (status == TFM_STATUS_NOT_FOUND) {
        tfm_error_clear(err);
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: no key '%s': the file has no tokenizer",
                             tfm_gguf_path(gguf), key);
    }
    if (status != TFM_STATUS_OK)
        return status;
    if (array.count == 0 || array.count > INT32_MAX)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s has %zu elements, must be 1 to %d",
                             tfm_gguf_path(gguf), key, array.count, INT32_MAX);
    v->n = array.count;
    texts = calloc(v->n, sizeof *texts);
    v->pieces = calloc(v->n, sizeof *v->pieces);
    v->kinds = calloc(v->n, 1);
    if (!texts || !v->pieces || !v->kinds || tfm__hash_size(v->n, &n_slots))
        goto no_memory;
    v->slots = calloc(n_slots, sizeof *v->slots);
    if (!v->slots)
        goto no_memory;
    memset(v->slots, -1, n_slots * sizeof *v->slots);
    v->mask = n_slots - 1;
    status = tfm_gguf_array_text(&array, texts, err);
    if (status != TFM_STATUS_OK) {
        tfm_error_prefix(err, "%s: %s", tfm_gguf_path(gguf), key);
        goto done;
    }
    for (size_t i = 0; i < v->n; i++)
        if (tfm__add_size(bytes, texts[i].size, &bytes))
            goto no_memory;
    v->bytes = malloc(bytes ? bytes : 1);
    if (!v->bytes)
        goto no_memory;
    status = read_kinds(v, gguf, err);
    if (status == TFM_STATUS_OK)
        status = read_pieces(v, texts, gguf, err);
done:
    free(texts);
    return status;
no_memory:
    free(texts);
    return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory for %zu tokens",
                         tfm_gguf_path(gguf), array.count);
}

void tfm__vocabulary_deinit(struct tfm__vocabulary *vocabulary)
{
    free(vocabulary->bytes);
    free(vocabulary->pieces);
    free(vocabulary->kinds);
    free(vocabulary->slots);
}
