/* SPDX-License-Identifier: MIT
 * Trains a byte-level BPE vocabulary (Sennrich et al., arXiv:1508.07909; GPT-2's byte alphabet). The text is cut
 * into words; then, again and again, the pair of neighbouring tokens that occurs most often within words
 * becomes a token. What comes out depends on how often each word occurs and on nothing else. */
#ifndef TFM_BPE_TRAIN_H
#define TFM_BPE_TRAIN_H

#include <tfm/gguf_write.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_bpe_trainer; /* one thread at a time */

enum {
    TFM_BPE_TOKEN_BYTES = 512, /* no token becomes longer */
};

struct tfm_bpe_options {
    size_t vocab;    /* tokens in all: control tokens, 256 bytes, and those that are merged */
    const char *pre; /* how text is cut into words: "gpt-2" (NULL), "smollm", "llama-bpe" */
    const char *bos,
        *eos;       /* control tokens that begin and end a text; NULL = none. The same text twice is
                               one token. */
    int add_bos;    /* the tokenizer puts bos in front of a text */
    uint64_t least; /* a pair that occurs less often stays a pair; 0 = 2 */
    void (*progress)(void *context, size_t done, size_t total); /* NULL = none */
    void *progress_context;
};

/* INVALID_ARGUMENT: vocab too small for bytes and control tokens, or above 2^24; a control token that is empty or no
 * UTF-8; add_bos without bos. UNSUPPORTED: `pre` is not known (the text names those that are). NOMEM. */
TFM_API enum tfm_status tfm_bpe_trainer_create(const struct tfm_bpe_options *options,
                                               struct tfm_bpe_trainer **trainer,
                                               struct tfm_error *err);
TFM_API void tfm_bpe_trainer_destroy(struct tfm_bpe_trainer *trainer); /* NULL is fine */

/* Counts the words of a text; no word reaches into the next text. FORMAT: not valid UTF-8, which the
 * tokenizer would not encode either (the text names the byte offset); NOMEM. */
TFM_API enum tfm_status tfm_bpe_trainer_add(struct tfm_bpe_trainer *trainer, const char *text,
                                            size_t size, struct tfm_error *err);

/* Merges until there are `vocab` tokens. Ids: bos, eos, the 256 bytes in the order of GPT-2's alphabet (the printable
 * ones of Latin-1, then the others), then the merged ones. Of pairs that occur equally often the one of the
 * lower left id is merged, then of the lower right id. Two ways to the same bytes are one token and two merges; a
 * pair that was merged and comes up again is merged at once.
 * OUT_OF_RANGE: the text is too small (the text says how many tokens it gives); INVALID_ARGUMENT: there is no text, it
 * was run already, or a merged token would read like a control token; NOMEM. */
TFM_API enum tfm_status tfm_bpe_trainer_run(struct tfm_bpe_trainer *trainer, struct tfm_error *err);

/* What was added: bytes of text, and different words. */
TFM_API size_t tfm_bpe_trainer_text_bytes(const struct tfm_bpe_trainer *trainer);
TFM_API size_t tfm_bpe_trainer_words(const struct tfm_bpe_trainer *trainer);
/* After a run: merges that were learnt. */
TFM_API size_t tfm_bpe_trainer_merges(const struct tfm_bpe_trainer *trainer);

/* Puts the keys tokenizer.ggml.{model,pre,tokens,token_type,merges,bos_token_id,eos_token_id,add_bos_token} of a finished
 * vocabulary into a file: tfm_tokenizer_create reads them. INVALID_ARGUMENT: it was not run; NOMEM. */
TFM_API enum tfm_status tfm_bpe_trainer_put(const struct tfm_bpe_trainer *trainer,
                                            struct tfm_gguf_writer *writer, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
