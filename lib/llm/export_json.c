/* SPDX-License-Identifier: MIT
 * config.json as transformers writes it for a Llama, tokenizer.json as tokenizers does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/decoder_json.h"
#include "lib/llm/export_json.h"
#include "lib/llm/folder.h"
#include "lib/llm/put_folder.h"
#include "lib/llm/vocabulary.h"

static json_t *id(int32_t token)
{
    return token < 0 ? json_null() : json_integer(token);
}

json_t *tfm__export_config(const struct tfm_model *model, enum tfm_dtype dtype)
{
    const struct tfm_model_config *c = &model->config;

    return json_pack(
        "{s[s], ss, sI, sI, sI, sI, sI, sI, sI, sI, so, so, ss, sb, sb, sb, ss, so, so}",
        "architectures", "LlamaForCausalLM", "model_type", "llama", "vocab_size",
        (json_int_t)c->vocab, "hidden_size", (json_int_t)c->width, "intermediate_size",
        (json_int_t)c->ffn_width, "num_hidden_layers", (json_int_t)c->layers, "num_attention_heads",
        (json_int_t)c->heads, "num_key_value_heads", (json_int_t)c->kv_heads, "head_dim",
        (json_int_t)c->head_dim, "max_position_embeddings", (json_int_t)c->context, "rms_norm_eps",
        tfm__json_real(c->eps), "rope_theta", tfm__json_real(c->rope_theta), "hidden_act", "silu",
        "attention_bias", model->layers[0].q_bias, "mlp_bias", 0, "tie_word_embeddings", c->tied,
        "torch_dtype", tfm__put_folder_type(dtype), "bos_token_id",
        id(tfm_tokenizer_bos(model->tokenizer)), "eos_token_id",
        id(tfm_tokenizer_eos(model->tokenizer)));
}

/* ---- tokenizer.json ---- */

static json_t *byte_level(int regex)
{
    return json_pack("{ss, sb, sb, sb}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
                     1, "use_regex", regex);
}

static json_t *pre_tokenizer(struct tfm_text pre)
{
    if (pre.size == 6 && memcmp(pre.data, "smollm", 6) == 0)
        return json_pack("{ss, s[{ss, sb}, o]}", "type", "Sequence", "pretokenizers", "type",
                         "Digits", "individual_digits", 1, byte_level(1));
    if (pre.size == 9 && memcmp(pre.data, "llama-bpe", 9) == 0)
        return json_pack("{ss, s[{ss, s{ss}, ss, sb}, o]}", "type", "Sequence", "pretokenizers",
                         "type", "Split", "pattern", "Regex", tfm__folder_llama3, "behavior",
                         "Isolated", "invert", 0, byte_level(0));
    return byte_level(1);
}

/* One control token in front of a text. */
static json_t *post_processor(struct tfm_text bos, uint64_t number)
{
    char *name = strndup(bos.data, bos.size);
    json_t *post =
        name ? json_pack("{ss, s[{s{ss, si}}, {s{ss, si}}],"
                         " s[{s{ss, si}}, {s{ss, si}}, {s{ss, si}}], s{s{ss, s[I], s[s]}}}",
                         "type", "TemplateProcessing", "single", "SpecialToken", "id", name,
                         "type_id", 0, "Sequence", "id", "A", "type_id", 0, "pair", "SpecialToken",
                         "id", name, "type_id", 0, "Sequence", "id", "A", "type_id", 0, "Sequence",
                         "id", "B", "type_id", 1, "special_tokens", name, "id", name, "ids",
                         (json_int_t)number, "tokens", name)
             : NULL;
    free(name);
    return post;
}

static json_t *added_token(struct tfm_text text, size_t number, int control)
{
    return json_pack("{sI, ss%, sb, sb, sb, sb, sb}", "id", (json_int_t)number, "content",
                     text.data, text.size, "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized",
                     0, "special", control);
}

/* Returns 1 when out of memory or for a token that is no UTF-8. */
static int put_tokens(const struct tfm_gguf_array *kinds, const struct tfm_text *texts, size_t n,
                      json_t *vocab, json_t *added)
{
    int failed = !vocab || !added;

    for (size_t i = 0; i < n && !failed; i++) {
        int64_t kind = TFM__TOKEN_NORMAL;
        if (kinds->count == n)
            (void)tfm_gguf_array_int(kinds, i, &kind, NULL);
        if (kind == TFM__TOKEN_CONTROL || kind == TFM__TOKEN_USER) {
            failed =
                json_array_append_new(added, added_token(texts[i], i, kind == TFM__TOKEN_CONTROL));
        } else if (kind == TFM__TOKEN_NORMAL) {
            char *key = strndup(texts[i].data, texts[i].size);
            failed = !key || json_object_set_new(vocab, key, json_integer((json_int_t)i));
            free(key);
        }
    }
    return failed;
}

static int put_merges(const struct tfm_text *merges, size_t n, json_t *list)
{
    int failed = !list;

    for (size_t i = 0; i < n && !failed; i++) {
        const char *blank = memchr(merges[i].data, ' ', merges[i].size);
        const size_t left = (size_t)(blank - merges[i].data); /* it was there when it was read */
        failed = json_array_append_new(
            list, json_pack("[s%s%]", merges[i].data, left, blank + 1, merges[i].size - left - 1));
    }
    return failed;
}

/* The strings of a key: free them. NULL when out of memory; there are none when the key is absent. */
static struct tfm_text *strings(const struct tfm_gguf *gguf, const char *key, size_t *n)
{
    struct tfm_gguf_array array = {TFM_GGUF_STRING, 0, NULL};
    struct tfm_text *texts;

    (void)tfm_gguf_get_array(gguf, key, &array, NULL);
    texts = calloc(array.count + 1, sizeof *texts);
    if (texts && array.count > 0)
        (void)tfm_gguf_array_text(&array, texts, NULL);
    *n = array.count;
    return texts;
}

enum tfm_status tfm__export_tokenizer(const struct tfm_gguf *gguf, json_t **tokenizer,
                                      struct tfm_error *err)
{
    struct tfm_gguf_array kinds = {TFM_GGUF_I32, 0, NULL};
    struct tfm_text pre = {"", 0};
    uint64_t bos = 0;
    size_t n = 0, n_merges = 0;
    int adds = 0;
    struct tfm_text *texts = strings(gguf, "tokenizer.ggml.tokens", &n),
                    *merges = strings(gguf, "tokenizer.ggml.merges", &n_merges);
    json_t *vocab = json_object(), *added = json_array(), *list = json_array(), *post = NULL;

    (void)tfm_gguf_get_array(gguf, "tokenizer.ggml.token_type", &kinds, NULL);
    (void)tfm_gguf_string(gguf, "tokenizer.ggml.pre", &pre, NULL);
    (void)tfm_gguf_uint(gguf, "tokenizer.ggml.bos_token_id", &bos, NULL);
    (void)tfm_gguf_bool(gguf, "tokenizer.ggml.add_bos_token", &adds, NULL);
    int failed = !texts || !merges || put_tokens(&kinds, texts, n, vocab, added) ||
                 put_merges(merges, n_merges, list);
    if (!failed)
        post = adds && bos < n ? post_processor(texts[bos], bos) : json_null();
    json_t *json =
        failed || !post
            ? NULL
            : json_pack(
                  "{ss, sn, sn, sO, sn, so, sO, so, s{ss, sn, sn, sn, sn, sb, sb, sb, sO, sO}}",
                  "version", "1.0", "truncation", "padding", "added_tokens", added, "normalizer",
                  "pre_tokenizer", pre_tokenizer(pre), "post_processor", post, "decoder",
                  byte_level(1), "model", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback",
                  0, "ignore_merges", pre.size == 9 && memcmp(pre.data, "llama-bpe", 9) == 0,
                  "vocab", vocab, "merges", list);
    json_decref(vocab);
    json_decref(added);
    json_decref(list);
    json_decref(post);
    free(texts);
    free(merges);
    if (!json)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "%s: its tokenizer cannot be written as JSON: out of memory, or a "
                             "token is no UTF-8",
                             tfm_gguf_path(gguf));
    *tokenizer = json;
    return TFM_STATUS_OK;
}
