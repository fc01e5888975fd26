/* SPDX-License-Identifier: MIT
 * Makes a tokenizer from a GGUF file's tokenizer.ggml.* keys, and answers what is known about
 * tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/folder.h"
#include "lib/llm/text.h"
#include "lib/llm/tokenizer_internal.h"

static enum tfm_status read_text(const struct tfm_gguf *gguf, const char *key,
                                 struct tfm_text *text, struct tfm_error *err)
{
    enum tfm_status status = tfm_gguf_string(gguf, key, text, err);

    if (status != TFM_STATUS_NOT_FOUND)
        return status;
    tfm_error_clear(err);
    return tfm_error_set(
        err, TFM_STATUS_FORMAT,
        "%s: no key '%s': it cannot be told how this model splits text, get a file "
        "that was converted lately",
        tfm_gguf_path(gguf), key);
}

static enum tfm_status choose_model(const struct tfm_gguf *gguf, struct tfm_error *err)
{
    static const char known[] = "gpt2";
    struct tfm_text model;
    struct tfm__quoted quoted;
    enum tfm_status status = read_text(gguf, "tokenizer.ggml.model", &model, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (model.size != sizeof known - 1 || memcmp(model.data, known, model.size) != 0)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "%s: tokenizer model %s is not supported; known: %s",
                             tfm_gguf_path(gguf), tfm__text_quote(model, &quoted), known);
    return TFM_STATUS_OK;
}

/* A guess here would make every answer a little worse without anybody noticing why. */
static enum tfm_status choose_splitter(struct tfm_tokenizer *t, const struct tfm_gguf *gguf,
                                       struct tfm_error *err)
{
    struct tfm_text name;
    struct tfm__quoted quoted;
    char known[200] = "";
    size_t used = 0;
    const struct tfm__splitter *splitter;
    enum tfm_status status = read_text(gguf, "tokenizer.ggml.pre", &name, err);

    if (status != TFM_STATUS_OK)
        return status;
    t->splitter = tfm__splitter_find(name);
    if (t->splitter)
        return TFM_STATUS_OK;
    for (size_t i = 0; (splitter = tfm__splitter_at(i)) && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 splitter->name);
    return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                         "%s: pre-tokenizer %s is not supported; known: %s", tfm_gguf_path(gguf),
                         tfm__text_quote(name, &quoted), known);
}

static enum tfm_status read_id(const struct tfm_gguf *gguf, const char *key, size_t vocab,
                               int32_t *id, struct tfm_error *err)
{
    uint64_t value;
    enum tfm_status status = tfm_gguf_uint(gguf, key, &value, err);

    if (status == TFM_STATUS_NOT_FOUND) {
        tfm_error_clear(err);
        *id = -1;
        return TFM_STATUS_OK;
    }
    if (status != TFM_STATUS_OK)
        return status;
    if (value >= vocab)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s is %llu, there are %zu tokens",
                             tfm_gguf_path(gguf), key, (unsigned long long)value, vocab);
    *id = (int32_t)value;
    return TFM_STATUS_OK;
}

static enum tfm_status read_ids(struct tfm_tokenizer *t, const struct tfm_gguf *gguf,
                                struct tfm_error *err)
{
    const struct {
        const char *key;
        int32_t *id;
    } list[] = {
        {"tokenizer.ggml.bos_token_id", &t->bos},
        {"tokenizer.ggml.eos_token_id", &t->eos},
        {"tokenizer.ggml.eot_token_id", &t->eot},
        {"tokenizer.ggml.eom_token_id", &t->eom},
    };
    enum tfm_status status = TFM_STATUS_OK;

    for (size_t i = 0; i < sizeof list / sizeof *list && status == TFM_STATUS_OK; i++)
        status = read_id(gguf, list[i].key, t->vocabulary.n, list[i].id, err);
    if (status != TFM_STATUS_OK)
        return status;
    status = tfm_gguf_bool(gguf, "tokenizer.ggml.add_bos_token", &t->add_bos, err);
    if (status == TFM_STATUS_NOT_FOUND) {
        tfm_error_clear(err);
        t->add_bos = t->splitter->add_bos;
        status = TFM_STATUS_OK;
    }
    if (status == TFM_STATUS_OK && t->add_bos && t->bos < 0)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: BOS is to be put in front, but there is no key "
                             "'tokenizer.ggml.bos_token_id'",
                             tfm_gguf_path(gguf));
    return status;
}

enum tfm_status tfm_tokenizer_create(const struct tfm_gguf *gguf, struct tfm_tokenizer **tokenizer,
                                     struct tfm_error *err)
{
    enum tfm_status status;
    struct tfm_tokenizer *t;

    tfm_error_clear(err);
    status = choose_model(gguf, err);
    if (status != TFM_STATUS_OK)
        return status;
    t = calloc(1, sizeof *t);
    if (!t)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory for the tokenizer",
                             tfm_gguf_path(gguf));
    status = choose_splitter(t, gguf, err);
    if (status == TFM_STATUS_OK)
        status = tfm__vocabulary_init(&t->vocabulary, gguf, err);
    if (status == TFM_STATUS_OK)
        status = tfm__bpe_init(&t->bpe, &t->vocabulary, gguf, err);
    if (status == TFM_STATUS_OK)
        status = read_ids(t, gguf, err);
    if (status == TFM_STATUS_OK && (tfm__special_init(&t->user, &t->vocabulary, 0) ||
                                    tfm__special_init(&t->special, &t->vocabulary, 1)))
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory for the tokenizer",
                               tfm_gguf_path(gguf));
    if (status != TFM_STATUS_OK) {
        tfm_tokenizer_destroy(t);
        return status;
    }
    *tokenizer = t;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_tokenizer_open(const char *path, struct tfm_tokenizer **tokenizer,
                                   struct tfm_error *err)
{
    struct tfm_gguf *gguf = NULL;
    enum tfm_status status = tfm__folder_is(path) ? tfm__folder_open(path, 0, &gguf, err)
                                                  : tfm_gguf_open(path, &gguf, err);

    if (status == TFM_STATUS_OK)
        status = tfm_tokenizer_create(gguf, tokenizer, err);
    tfm_gguf_close(gguf);
    return status;
}

void tfm_tokenizer_destroy(struct tfm_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    tfm__special_deinit(&tokenizer->special);
    tfm__special_deinit(&tokenizer->user);
    tfm__bpe_deinit(&tokenizer->bpe);
    tfm__vocabulary_deinit(&tokenizer->vocabulary);
    free(tokenizer);
}

size_t tfm_tokenizer_vocab(const struct tfm_tokenizer *tokenizer)
{
    return tokenizer->vocabulary.n;
}

int32_t tfm_tokenizer_bos(const struct tfm_tokenizer *tokenizer)
{
    return tokenizer->bos;
}

int32_t tfm_tokenizer_eos(const struct tfm_tokenizer *tokenizer)
{
    return tokenizer->eos;
}

int tfm_tokenizer_is_end(const struct tfm_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && (id == tokenizer->eos || id == tokenizer->eot || id == tokenizer->eom);
}

int tfm_tokenizer_is_control(const struct tfm_tokenizer *tokenizer, int32_t id)
{
    if (id < 0 || (size_t)id >= tokenizer->vocabulary.n)
        return 0;
    return tokenizer->vocabulary.kinds[id] == TFM__TOKEN_CONTROL ||
           tokenizer->vocabulary.kinds[id] == TFM__TOKEN_UNKNOWN;
}

int tfm_tokenizer_add_bos(const struct tfm_tokenizer *tokenizer)
{
    return tokenizer->add_bos;
}

enum tfm_status tfm_tokenizer_piece(const struct tfm_tokenizer *tokenizer, int32_t id,
                                    struct tfm_text *piece, struct tfm_error *err)
{
    tfm_error_clear(err);
    if (id < 0 || (size_t)id >= tokenizer->vocabulary.n)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "token id %d is not in the vocabulary of %zu tokens", id,
                             tokenizer->vocabulary.n);
    *piece = tokenizer->vocabulary.pieces[id];
    return TFM_STATUS_OK;
}

static uint64_t fnv(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Numbers byte by byte, so that the machine does not matter. */
static uint64_t fnv_number(uint64_t sum, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        const unsigned char byte = (unsigned char)(value >> (8 * i));
        sum = fnv(sum, &byte, 1);
    }
    return sum;
}

uint64_t tfm_tokenizer_checksum(const struct tfm_tokenizer *tokenizer)
{
    const uint64_t begin = UINT64_C(0xcbf29ce484222325);
    const struct tfm__vocabulary *v = &tokenizer->vocabulary;
    uint64_t sum = begin, merges = 0;

    sum = fnv(sum, tokenizer->splitter->name, strlen(tokenizer->splitter->name) + 1);
    for (size_t i = 0; i < v->n; i++) {
        sum = fnv_number(sum, v->kinds[i]);
        sum = fnv_number(sum, v->pieces[i].size);
        sum = fnv(sum, v->pieces[i].data, v->pieces[i].size);
    }
    /* each merge has its rank in it: the order in the table does not matter */
    for (size_t i = 0; i <= tokenizer->bpe.mask; i++)
        if (tokenizer->bpe.slots[i].pair != UINT64_MAX)
            merges += fnv_number(fnv_number(begin, tokenizer->bpe.slots[i].pair),
                                 tokenizer->bpe.slots[i].result);
    return fnv_number(sum, merges);
}
