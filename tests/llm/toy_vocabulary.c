/* SPDX-License-Identifier: MIT
 * Small byte-level vocabularies for tests of the tokenizer. */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/llm/toy_vocabulary.h"

struct toy_vocabulary *toy_create(void)
{
    struct toy_vocabulary *toy = calloc(1, sizeof *toy);
    ck_assert_ptr_nonnull(toy);
    return toy;
}

void toy_free(struct toy_vocabulary *toy)
{
    for (size_t i = 0; i < toy->n; i++) {
        free((void *)(uintptr_t)toy->bytes[i].data);
        free((void *)(uintptr_t)toy->tokens[i].data);
    }
    for (size_t i = 0; i < toy->n_merges; i++)
        free((void *)(uintptr_t)toy->merges[i].data);
    free(toy);
}

/* GPT-2's rule: bytes that print stand for themselves, the others are counted up from U+0100. */
static void put_alphabet(struct gguf_bytes *out, unsigned char byte)
{
    unsigned code = byte;

    if (byte < '!' || (byte > '~' && byte < 0xa1) || byte == 0xad) {
        code = 256;
        for (unsigned b = 0; b < byte; b++)
            code += b < '!' || (b > '~' && b < 0xa1) || b == 0xad;
    }
    if (code < 0x80) {
        gguf_bytes_number(out, code, 1);
    } else {
        gguf_bytes_number(out, 0xc0 | code >> 6, 1);
        gguf_bytes_number(out, 0x80 | (code & 0x3f), 1);
    }
}

static struct tfm_text in_alphabet(struct tfm_text bytes)
{
    struct gguf_bytes out = {NULL, 0, 0};

    for (size_t i = 0; i < bytes.size; i++)
        put_alphabet(&out, (unsigned char)bytes.data[i]);
    return (struct tfm_text){(char *)out.data, out.size};
}

static struct tfm_text copy(const void *bytes, size_t size)
{
    char *data = malloc(size + 1);

    ck_assert_ptr_nonnull(data);
    if (size)
        memcpy(data, bytes, size);
    return (struct tfm_text){data, size};
}

int32_t toy_token(struct toy_vocabulary *toy, const void *bytes, size_t size, int32_t type)
{
    size_t id = toy->n++;

    ck_assert_uint_lt(id, TOY_TOKENS_MAX);
    toy->bytes[id] = copy(bytes, size);
    toy->tokens[id] = type == TOY_NORMAL ? in_alphabet(toy->bytes[id]) : copy(bytes, size);
    toy->types[id] = type;
    return (int32_t)id;
}

void toy_all_bytes(struct toy_vocabulary *toy)
{
    for (unsigned b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        toy_token(toy, &byte, 1, TOY_NORMAL);
    }
}

int32_t toy_find(const struct toy_vocabulary *toy, const void *bytes, size_t size)
{
    for (size_t i = 0; i < toy->n; i++)
        if (toy->types[i] == TOY_NORMAL && toy->bytes[i].size == size &&
            memcmp(toy->bytes[i].data, bytes, size) == 0)
            return (int32_t)i;
    return -1;
}

int32_t toy_merge(struct toy_vocabulary *toy, int32_t left, int32_t right)
{
    struct gguf_bytes bytes = {NULL, 0, 0}, text = {NULL, 0, 0};
    size_t at = toy->n_merges++;
    int32_t id;

    ck_assert_uint_lt(at, TOY_TOKENS_MAX);
    gguf_bytes_put(&bytes, toy->bytes[left].data, toy->bytes[left].size);
    gguf_bytes_put(&bytes, toy->bytes[right].data, toy->bytes[right].size);
    gguf_bytes_put(&text, toy->tokens[left].data, toy->tokens[left].size);
    gguf_bytes_put(&text, " ", 1);
    gguf_bytes_put(&text, toy->tokens[right].data, toy->tokens[right].size);
    toy->merges[at] = (struct tfm_text){(char *)text.data, text.size};
    id = toy_find(toy, bytes.data, bytes.size);
    if (id < 0)
        id = toy_token(toy, bytes.data, bytes.size, TOY_NORMAL);
    free(bytes.data);
    toy->left[at] = left;
    toy->right[at] = right;
    toy->result[at] = id;
    return id;
}

int32_t toy_merge_text(struct toy_vocabulary *toy, const char *left, const char *right)
{
    int32_t a = toy_find(toy, left, strlen(left)), b = toy_find(toy, right, strlen(right));

    ck_assert_msg(a >= 0 && b >= 0, "no tokens for the merge '%s' '%s'", left, right);
    return toy_merge(toy, a, b);
}

void toy_put(const struct toy_vocabulary *toy, const char *pre, struct gguf_builder *builder)
{
    gguf_builder_string(builder, "tokenizer.ggml.model", "gpt2");
    gguf_builder_string(builder, "tokenizer.ggml.pre", pre);
    gguf_builder_texts(builder, "tokenizer.ggml.tokens", toy->tokens, toy->n);
    gguf_builder_array(builder, "tokenizer.ggml.token_type", TFM_GGUF_I32, toy->types, toy->n);
    gguf_builder_texts(builder, "tokenizer.ggml.merges", toy->merges, toy->n_merges);
}

enum tfm_status toy_open(const struct gguf_builder *builder, struct tfm_tokenizer **tokenizer,
                         struct tfm_error *err)
{
    size_t size;
    unsigned char *file = gguf_builder_finish(builder, &size);
    struct tfm_gguf *gguf = NULL;
    enum tfm_status status = tfm_gguf_open_memory(file, size, "toy.gguf", &gguf, err);

    ck_assert_msg(status == TFM_STATUS_OK, "%s", err->text);
    status = tfm_tokenizer_create(gguf, tokenizer, err);
    tfm_gguf_close(gguf); /* the tokenizer must not need it any longer */
    memset(file, 0xee, size);
    free(file);
    return status;
}

struct tfm_tokenizer *toy_tokenizer(const struct toy_vocabulary *toy, const char *pre)
{
    struct gguf_builder *builder = gguf_builder_create();
    struct tfm_tokenizer *tokenizer = NULL;
    struct tfm_error err;

    toy_put(toy, pre, builder);
    ck_assert_msg(toy_open(builder, &tokenizer, &err) == TFM_STATUS_OK, "%s", err.text);
    gguf_builder_destroy(builder);
    return tokenizer;
}
