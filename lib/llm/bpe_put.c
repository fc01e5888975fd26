/* SPDX-License-Identifier: MIT
 * A trained vocabulary as the keys of a GGUF file. */
#include "lib/llm/bpe_trainer.h"
#include "lib/llm/vocabulary.h"

/* A token in the alphabet; a control token as it is. */
static void put_piece(const struct tfm_bpe_trainer *t, size_t id, struct tfm__bytes *out)
{
    const struct tfm__piece piece = t->pieces[id];
    const unsigned char *bytes = t->bytes.data + piece.at;

    if (id < t->n_control) {
        tfm__bytes_put(out, bytes, piece.size);
        return;
    }
    for (size_t i = 0; i < piece.size; i++) {
        char text[2];
        tfm__bytes_put(out, text, tfm__alphabet_encode(bytes[i], text));
    }
}

/* The texts of what `count` calls of `put` append, as views into `out`, which then stays as it is. */
static struct tfm_text *make_texts(const struct tfm_bpe_trainer *t, size_t count,
                                   void (*put)(const struct tfm_bpe_trainer *t, size_t index,
                                               struct tfm__bytes *out),
                                   struct tfm__bytes *out)
{
    struct tfm_text *texts = calloc(count + 1, sizeof *texts);

    for (size_t i = 0; texts && i < count; i++) {
        const size_t begin = out->size;
        put(t, i, out);
        texts[i].size = out->size - begin;
    }
    if (!texts || out->failed) {
        free(texts);
        return NULL;
    }
    const char *at = (const char *)out->data;
    for (size_t i = 0; i < count; at += texts[i++].size)
        texts[i].data = at;
    return texts;
}

static void put_merge(const struct tfm_bpe_trainer *t, size_t index, struct tfm__bytes *out)
{
    put_piece(t, (size_t)t->merges[2 * index], out);
    tfm__bytes_put(out, " ", 1);
    put_piece(t, (size_t)t->merges[2 * index + 1], out);
}

enum tfm_status tfm_bpe_trainer_put(const struct tfm_bpe_trainer *trainer,
                                    struct tfm_gguf_writer *writer, struct tfm_error *err)
{
    const struct tfm_bpe_trainer *t = trainer;
    struct tfm__bytes bytes[2] = {{0}, {0}};
    struct tfm_text *tokens, *merges;
    int32_t *kinds;

    tfm_error_clear(err);
    if (!t->done)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "this vocabulary was not trained yet");
    tokens = make_texts(t, t->n, put_piece, &bytes[0]);
    merges = make_texts(t, t->n_merges, put_merge, &bytes[1]);
    kinds = malloc(t->n * sizeof *kinds);
    for (size_t i = 0; kinds && i < t->n; i++)
        kinds[i] = i < t->n_control ? TFM__TOKEN_CONTROL : TFM__TOKEN_NORMAL;
    if (tokens && merges && kinds) {
        tfm_gguf_writer_text(writer, "tokenizer.ggml.model", "gpt2", 4);
        tfm_gguf_writer_text(writer, "tokenizer.ggml.pre", t->options.pre, strlen(t->options.pre));
        tfm_gguf_writer_texts(writer, "tokenizer.ggml.tokens", tokens, t->n);
        tfm_gguf_writer_ints(writer, "tokenizer.ggml.token_type", kinds, t->n);
        tfm_gguf_writer_texts(writer, "tokenizer.ggml.merges", merges, t->n_merges);
        if (t->bos)
            tfm_gguf_writer_uint(writer, "tokenizer.ggml.bos_token_id", TFM_GGUF_U32, 0);
        if (t->eos)
            tfm_gguf_writer_uint(writer, "tokenizer.ggml.eos_token_id", TFM_GGUF_U32,
                                 t->n_control - 1);
        tfm_gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", t->options.add_bos);
    }
    const int failed = !tokens || !merges || !kinds;
    free(tokens);
    free(merges);
    free(kinds);
    free(bytes[0].data);
    free(bytes[1].data);
    return failed ? tfm__bpe_no_memory(err) : TFM_STATUS_OK;
}
