/* SPDX-License-Identifier: MIT
 * tokenizer.json (Hugging Face tokenizers) as the tokenizer keys of a GGUF file: byte-level BPE with a pre-tokenizer
 * that TFM has. Anything else that would change ids is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/bytes.h"
#include "lib/llm/folder.h"
#include "lib/llm/vocabulary.h"

enum { TOKENS_MAX = 1 << 24 };

const char tfm__folder_llama3[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static enum tfm_status refuse(const char *path, enum tfm_status status, const char *what,
                              struct tfm_error *err)
{
    return tfm_error_set(err, status, "%s/tokenizer.json: %s", path, what);
}

static int is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, wanted) == 0;
}

/* A ByteLevel step without a blank in front; `regex` as given, true when absent. */
static int is_byte_level(const json_t *step, int regex)
{
    const json_t *use = json_object_get(step, "use_regex");

    return is_text(step, "type", "ByteLevel") &&
           json_is_false(json_object_get(step, "add_prefix_space")) &&
           (use ? json_is_true(use) : 1) == regex;
}

/* The value of tokenizer.ggml.pre, NULL if there is none for it. */
static const char *splitter(const json_t *pre)
{
    const json_t *steps = json_object_get(pre, "pretokenizers"), *first = json_array_get(steps, 0),
                 *second = json_array_get(steps, 1);

    if (is_byte_level(pre, 1))
        return "gpt-2";
    if (!is_text(pre, "type", "Sequence") || json_array_size(steps) > 2)
        return NULL;
    if (json_array_size(steps) == 1 && is_byte_level(first, 1))
        return "gpt-2";
    if (is_text(first, "type", "Digits") &&
        json_is_true(json_object_get(first, "individual_digits")) && is_byte_level(second, 1))
        return "smollm";
    if (is_text(first, "type", "Split") && is_text(first, "behavior", "Isolated") &&
        is_text(json_object_get(first, "pattern"), "Regex", tfm__folder_llama3) &&
        is_byte_level(second, 0))
        return "llama-bpe";
    return NULL;
}

/* The tokens by id while they are gathered. */
struct tokens {
    struct tfm_text *texts; /* [n] data NULL = no token of that id */
    int32_t *kinds;
    char (*fillers)[16]; /* texts of ids without a token */
    size_t n;
};

static int reserve(struct tokens *t, size_t n)
{
    t->texts = calloc(n + 1, sizeof *t->texts);
    t->kinds = calloc(n + 1, sizeof *t->kinds);
    t->fillers = calloc(n + 1, sizeof *t->fillers);
    t->n = n;
    return !t->texts || !t->kinds || !t->fillers;
}

static enum tfm_status put_token(struct tokens *t, const char *path, const char *text, size_t size,
                                 const json_t *id, int32_t kind, struct tfm_error *err)
{
    if (!text || !json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= (json_int_t)t->n)
        return refuse(path, TFM_STATUS_FORMAT,
                      "a token has no text, or an id that is not below the vocab_size or vocab of "
                      "config.json",
                      err);
    const size_t at = (size_t)json_integer_value(id);
    /* an added token may stand in the vocabulary too */
    if (t->texts[at].data && (t->texts[at].size != size || memcmp(t->texts[at].data, text, size)))
        return refuse(path, TFM_STATUS_FORMAT, "two tokens have the same id", err);
    t->texts[at] = (struct tfm_text){text, size};
    t->kinds[at] = kind;
    return TFM_STATUS_OK;
}

static enum tfm_status gather(struct tokens *t, const char *path, const json_t *json,
                              struct tfm_error *err)
{
    json_t *vocab = json_object_get(json_object_get(json, "model"), "vocab"), *id, *added;
    enum tfm_status status = TFM_STATUS_OK;
    const char *text;
    size_t index;

    json_object_foreach(vocab, text, id)
    {
        status = put_token(t, path, text, strlen(text), id, TFM__TOKEN_NORMAL, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    json_array_foreach(json_object_get(json, "added_tokens"), index, added)
    {
        const json_t *content = json_object_get(added, "content");
        status = put_token(t, path, json_string_value(content), json_string_length(content),
                           json_object_get(added, "id"),
                           json_is_true(json_object_get(added, "special")) ? TFM__TOKEN_CONTROL
                                                                           : TFM__TOKEN_USER,
                           err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    for (size_t i = 0; i < t->n; i++)
        if (!t->texts[i].data) { /* a row of the embedding that no token uses */
            t->texts[i].size = (size_t)snprintf(t->fillers[i], sizeof t->fillers[i], "[PAD%zu]", i);
            t->texts[i].data = t->fillers[i];
            t->kinds[i] = TFM__TOKEN_UNUSED;
        }
    return TFM_STATUS_OK;
}

/* Merges are "left right" or ["left", "right"]. */
static enum tfm_status put_merges(const char *path, const json_t *merges,
                                  struct tfm_gguf_writer *writer, struct tfm_error *err)
{
    const size_t n = json_array_size(merges);
    struct tfm_text *texts = calloc(n + 1, sizeof *texts);
    struct tfm__bytes bytes = {0};
    enum tfm_status status = TFM_STATUS_OK;

    for (size_t i = 0; texts && i < n && status == TFM_STATUS_OK; i++) {
        const json_t *merge = json_array_get(merges, i), *left = json_array_get(merge, 0),
                     *right = json_array_get(merge, 1);
        const size_t begin = bytes.size;
        if (json_is_string(merge)) {
            tfm__bytes_put(&bytes, json_string_value(merge), json_string_length(merge));
        } else if (json_is_string(left) && json_is_string(right)) {
            tfm__bytes_put(&bytes, json_string_value(left), json_string_length(left));
            tfm__bytes_put(&bytes, " ", 1);
            tfm__bytes_put(&bytes, json_string_value(right), json_string_length(right));
        } else {
            status = refuse(path, TFM_STATUS_FORMAT, "a merge is no pair of texts", err);
        }
        texts[i].size = bytes.size - begin;
    }
    if (!texts || bytes.failed)
        status = refuse(path, TFM_STATUS_NOMEM, "out of memory", err);
    const char *at = (const char *)bytes.data;
    for (size_t i = 0; status == TFM_STATUS_OK && i < n; at += texts[i++].size)
        texts[i].data = at;
    if (status == TFM_STATUS_OK)
        tfm_gguf_writer_texts(writer, "tokenizer.ggml.merges", texts, n);
    free(texts);
    free(bytes.data);
    return status;
}

/* The first id that config.json gives, -1 = none. */
static int64_t id_of(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    if (json_is_array(value))
        value = json_array_get(value, 0);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* 1 if the template puts a control token in front of a single text; -1 if it does what TFM has not. */
static int adds_bos(const json_t *post, const struct tokens *t, int64_t bos)
{
    const json_t *single = json_object_get(post, "single"), *first = json_array_get(single, 0);
    const char *token =
        json_string_value(json_object_get(json_object_get(first, "SpecialToken"), "id"));

    if (!post || json_is_null(post) || is_text(post, "type", "ByteLevel"))
        return 0;
    if (is_text(post, "type", "Sequence")) {
        const json_t *steps = json_object_get(post, "processors");
        int adds = 0;
        for (size_t i = 0; i < json_array_size(steps) && adds >= 0; i++) {
            const int more = adds_bos(json_array_get(steps, i), t, bos);
            adds = more < 0 ? -1 : adds | more;
        }
        return adds;
    }
    if (!is_text(post, "type", "TemplateProcessing") || json_array_size(single) > 2)
        return -1;
    if (json_array_size(single) == 1)
        return json_object_get(first, "Sequence") ? 0 : -1;
    if (!token || bos < 0 || (size_t)bos >= t->n || strlen(token) != t->texts[bos].size ||
        memcmp(token, t->texts[bos].data, t->texts[bos].size) != 0 ||
        !json_object_get(json_array_get(single, 1), "Sequence"))
        return -1;
    return 1;
}

static enum tfm_status put_all(const char *path, const json_t *json, const json_t *config,
                               const char *pre, struct tokens *t, struct tfm_gguf_writer *writer,
                               struct tfm_error *err)
{
    const json_t *model = json_object_get(json, "model");
    const int64_t bos = id_of(config, "bos_token_id"), eos = id_of(config, "eos_token_id");
    enum tfm_status status = gather(t, path, json, err);

    if (status != TFM_STATUS_OK)
        return status;
    const int adds = adds_bos(json_object_get(json, "post_processor"), t, bos);
    if (adds < 0)
        return refuse(path, TFM_STATUS_UNSUPPORTED,
                      "its post_processor does more than to put one control token in front", err);
    tfm_gguf_writer_text(writer, "tokenizer.ggml.model", "gpt2", 4);
    tfm_gguf_writer_text(writer, "tokenizer.ggml.pre", pre, strlen(pre));
    tfm_gguf_writer_texts(writer, "tokenizer.ggml.tokens", t->texts, t->n);
    tfm_gguf_writer_ints(writer, "tokenizer.ggml.token_type", t->kinds, t->n);
    if (bos >= 0)
        tfm_gguf_writer_uint(writer, "tokenizer.ggml.bos_token_id", TFM_GGUF_U32, (uint64_t)bos);
    if (eos >= 0)
        tfm_gguf_writer_uint(writer, "tokenizer.ggml.eos_token_id", TFM_GGUF_U32, (uint64_t)eos);
    tfm_gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", adds);
    return put_merges(path, json_object_get(model, "merges"), writer, err);
}

enum tfm_status tfm__folder_tokenizer(const char *path, const json_t *json, const json_t *config,
                                      int64_t n, struct tfm_gguf_writer *writer,
                                      struct tfm_error *err)
{
    const json_t *model = json_object_get(json, "model"), *vocab = json_object_get(model, "vocab"),
                 *normalizer = json_object_get(json, "normalizer");
    const char *pre = splitter(json_object_get(json, "pre_tokenizer"));
    struct tokens tokens = {0};
    enum tfm_status status;

    if (!is_text(model, "type", "BPE") || !json_is_object(vocab) ||
        !json_is_array(json_object_get(model, "merges")) ||
        json_is_true(json_object_get(model, "byte_fallback")))
        return refuse(path, TFM_STATUS_UNSUPPORTED, "its model is no byte-level BPE", err);
    if (normalizer && !json_is_null(normalizer))
        return refuse(path, TFM_STATUS_UNSUPPORTED, "it has a normalizer", err);
    if (!pre)
        return refuse(path, TFM_STATUS_UNSUPPORTED,
                      "its pre_tokenizer is not supported; known: gpt-2, smollm, llama-bpe", err);
    if (json_is_true(json_object_get(model, "ignore_merges")) != (strcmp(pre, "llama-bpe") == 0))
        return refuse(path, TFM_STATUS_UNSUPPORTED,
                      "its ignore_merges is not what goes with its pre_tokenizer", err);
    if (n < 1 || n > TOKENS_MAX)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s/config.json: vocab_size or vocab is missing, or not from 1 to %d",
                             path, TOKENS_MAX);
    if (reserve(&tokens, (size_t)n))
        status = refuse(path, TFM_STATUS_NOMEM, "out of memory", err);
    else
        status = put_all(path, json, config, pre, &tokens, writer, err);
    free(tokens.texts);
    free(tokens.kinds);
    free(tokens.fillers);
    return status;
}
