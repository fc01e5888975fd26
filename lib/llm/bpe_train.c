/* SPDX-License-Identifier: MIT
 * Trains a vocabulary: options and text, then merge after merge. */
#include <stdio.h>

#include "lib/llm/bpe_trainer.h"
#include "lib/llm/hash.h"
#include "lib/llm/utf8.h"
#include "lib/llm/vocabulary.h"

enum { VOCAB_MAX = 1 << 24, CONTROL_MAX_BYTES = 256 };

enum tfm_status tfm__bpe_no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory while a vocabulary is trained");
}

/* ---- options and text ---- */

static enum tfm_status check_control(const char *name, const char *text, struct tfm_error *err)
{
    if (!text)
        return TFM_STATUS_OK;
    const size_t size = strlen(text);
    if (size == 0 || size > CONTROL_MAX_BYTES ||
        tfm__utf8_check((const unsigned char *)text, size) != size)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s '%.60s': a control token must be 1 to %d bytes of UTF-8", name,
                             text, CONTROL_MAX_BYTES);
    return TFM_STATUS_OK;
}

static enum tfm_status find_splitter(const char *name, const struct tfm__splitter **splitter,
                                     struct tfm_error *err)
{
    char known[200] = "";
    size_t used = 0;

    *splitter = tfm__splitter_find((struct tfm_text){name, strlen(name)});
    if (*splitter)
        return TFM_STATUS_OK;
    for (size_t i = 0; tfm__splitter_at(i) && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 tfm__splitter_at(i)->name);
    return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                         "pre-tokenizer '%.60s' is not supported; known: %s", name, known);
}

enum tfm_status tfm_bpe_trainer_create(const struct tfm_bpe_options *options,
                                       struct tfm_bpe_trainer **trainer, struct tfm_error *err)
{
    const int same = options->bos && options->eos && strcmp(options->bos, options->eos) == 0;
    const size_t n_control = (options->bos != NULL) + (size_t)(options->eos && !same);
    const struct tfm__splitter *splitter = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    status = find_splitter(options->pre ? options->pre : "gpt-2", &splitter, err);
    if (status == TFM_STATUS_OK)
        status = check_control("bos", options->bos, err);
    if (status == TFM_STATUS_OK)
        status = check_control("eos", options->eos, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (options->add_bos && !options->bos)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "bos is to be put in front of texts, but there is none");
    if (options->vocab < 256 + n_control || options->vocab > VOCAB_MAX)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "a vocabulary of %zu tokens: must be %zu (256 bytes and %zu control "
                             "tokens) to %d",
                             options->vocab, 256 + n_control, n_control, VOCAB_MAX);
    struct tfm_bpe_trainer *t = calloc(1, sizeof *t);
    if (!t)
        return tfm__bpe_no_memory(err);
    t->options = *options;
    t->splitter = splitter;
    t->n_control = n_control;
    t->bos = options->bos ? strdup(options->bos) : NULL;
    t->eos = options->eos ? strdup(options->eos) : NULL;
    t->options.bos = t->bos;
    t->options.eos = t->eos;
    t->options.pre = splitter->name;
    if ((options->bos && !t->bos) || (options->eos && !t->eos)) {
        tfm_bpe_trainer_destroy(t);
        return tfm__bpe_no_memory(err);
    }
    *trainer = t;
    return TFM_STATUS_OK;
}

static void free_working(struct tfm_bpe_trainer *t)
{
    tfm__pairs_deinit(&t->pairs);
    memset(&t->pairs, 0, sizeof t->pairs);
    free(t->symbols);
    free(t->word_of);
    free(t->touched);
    free(t->slots);
    t->symbols = t->slots = NULL;
    t->word_of = t->touched = NULL;
}

void tfm_bpe_trainer_destroy(struct tfm_bpe_trainer *trainer)
{
    if (!trainer)
        return;
    free_working(trainer);
    tfm__words_deinit(&trainer->words);
    free(trainer->bytes.data);
    free(trainer->pieces);
    free(trainer->merges);
    free(trainer->bos);
    free(trainer->eos);
    free(trainer);
}

enum tfm_status tfm_bpe_trainer_add(struct tfm_bpe_trainer *trainer, const char *text, size_t size,
                                    struct tfm_error *err)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const size_t valid = tfm__utf8_check(bytes, size);

    tfm_error_clear(err);
    if (valid < size)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "byte 0x%02x at offset %zu of the text is not valid UTF-8: convert it "
                             "(iconv)",
                             bytes[valid], valid);
    for (size_t at = 0; at < size;) {
        const size_t end = trainer->splitter->next(bytes, size, at);
        if (tfm__words_add(&trainer->words, bytes + at, end - at))
            return tfm__bpe_no_memory(err);
        at = end;
    }
    trainer->text_bytes += size;
    return TFM_STATUS_OK;
}

/* ---- tokens ---- */

static int add_piece(struct tfm_bpe_trainer *t, const void *bytes, size_t size)
{
    t->pieces[t->n] = (struct tfm__piece){t->bytes.size, size};
    tfm__bytes_put(&t->bytes, bytes, size);
    t->n++;
    return t->bytes.failed;
}

size_t tfm__bpe_probe(const struct tfm_bpe_trainer *t, const unsigned char *bytes, size_t size)
{
    size_t at = tfm__hash_bytes(bytes, size) & t->mask;

    for (; t->slots[at] >= 0; at = (at + 1) & t->mask) {
        const struct tfm__piece piece = t->pieces[t->slots[at]];
        if (piece.size == size && memcmp(t->bytes.data + piece.at, bytes, size) == 0)
            break;
    }
    return at;
}

/* Control tokens, then the bytes in the order of the alphabet: those that stand for themselves, then
 * the rest. */
static int add_first(struct tfm_bpe_trainer *t)
{
    int failed = 0;

    if (t->bos)
        failed |= add_piece(t, t->bos, strlen(t->bos));
    if (t->n < t->n_control)
        failed |= add_piece(t, t->eos, strlen(t->eos));
    for (int shown = 1; shown >= 0; shown--)
        for (unsigned b = 0; b < 256; b++) {
            const unsigned char byte = (unsigned char)b;
            if (tfm__alphabet_printable(b) == shown)
                failed |= add_piece(t, &byte, 1);
        }
    return failed;
}

/* The token of left and right together; a new one unless there is one of these bytes. */
static enum tfm_status join(struct tfm_bpe_trainer *t, int32_t left, int32_t right, int32_t *id,
                            struct tfm_error *err)
{
    unsigned char bytes[TFM_BPE_TOKEN_BYTES];
    const struct tfm__piece a = t->pieces[left], b = t->pieces[right];
    const size_t size = a.size + b.size;

    memcpy(bytes, t->bytes.data + a.at, a.size);
    memcpy(bytes + a.size, t->bytes.data + b.at, b.size);
    const size_t slot = tfm__bpe_probe(t, bytes, size);
    if (t->slots[slot] < 0) {
        for (size_t i = 0; i < t->n_control; i++)
            if (t->pieces[i].size == size &&
                memcmp(t->bytes.data + t->pieces[i].at, bytes, size) == 0)
                return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                     "the text makes a token '%.*s', which is a control token "
                                     "already: choose a text for it that is no word",
                                     (int)size, (const char *)bytes);
        if (add_piece(t, bytes, size))
            return tfm__bpe_no_memory(err);
        t->slots[slot] = (int32_t)t->n - 1;
    }
    *id = t->slots[slot];
    return TFM_STATUS_OK;
}

static int add_merge(struct tfm_bpe_trainer *t, struct tfm__pair *pair)
{
    if (t->n_merges == t->merges_capacity) {
        const size_t capacity = t->merges_capacity ? 2 * t->merges_capacity : 1024;
        int32_t *merges = realloc(t->merges, 2 * capacity * sizeof *merges);
        if (!merges)
            return 1;
        t->merges = merges;
        t->merges_capacity = capacity;
    }
    pair->rank = (int32_t)t->n_merges;
    t->merges[2 * t->n_merges] = pair->left;
    t->merges[2 * t->n_merges++ + 1] = pair->right;
    return 0;
}

/* ---- the run ---- */

static enum tfm_status too_little(const struct tfm_bpe_trainer *t, uint64_t least,
                                  struct tfm_error *err)
{
    return tfm_error_set(
        err, TFM_STATUS_OUT_OF_RANGE,
        "the text gives only %zu of %zu tokens: in its %zu bytes no pair occurs %llu "
        "times any more; take more text, or a vocabulary of %zu",
        t->n, t->options.vocab, t->text_bytes, (unsigned long long)least, t->n);
}

static enum tfm_status run(struct tfm_bpe_trainer *t, struct tfm_error *err)
{
    const uint64_t least = t->options.least ? t->options.least : 2;
    enum tfm_status status = tfm__bpe_lay_out(t, err);

    while (status == TFM_STATUS_OK && t->n < t->options.vocab) {
        const uint32_t index = tfm__pairs_pop(&t->pairs);
        if (index == UINT32_MAX)
            return too_little(t, least, err);
        struct tfm__pair *pair = &t->pairs.list[index];
        int32_t id;
        if (pair->rank < 0 && pair->count < least)
            return too_little(t, least, err);
        status = join(t, pair->left, pair->right, &id, err);
        if (status != TFM_STATUS_OK)
            return status;
        if ((pair->rank < 0 && add_merge(t, pair)) || tfm__bpe_merge_all(t, index, id))
            return tfm__bpe_no_memory(err);
        if (t->options.progress)
            t->options.progress(t->options.progress_context, t->n, t->options.vocab);
    }
    return status;
}

enum tfm_status tfm_bpe_trainer_run(struct tfm_bpe_trainer *trainer, struct tfm_error *err)
{
    struct tfm_bpe_trainer *t = trainer;
    size_t n_slots;
    enum tfm_status status;

    tfm_error_clear(err);
    if (t->done || t->pieces)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "this vocabulary was trained already: make another trainer");
    if (t->words.n == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "there is no text to train a vocabulary on");
    if (tfm__hash_size(t->options.vocab, &n_slots))
        return tfm__bpe_no_memory(err);
    t->pieces = calloc(t->options.vocab, sizeof *t->pieces);
    t->slots = calloc(n_slots, sizeof *t->slots);
    if (!t->pieces || !t->slots || add_first(t))
        return tfm__bpe_no_memory(err);
    memset(t->slots, -1, n_slots * sizeof *t->slots);
    t->mask = n_slots - 1;
    for (size_t i = t->n_control; i < t->n; i++)
        t->slots[tfm__bpe_probe(t, t->bytes.data + t->pieces[i].at, 1)] = (int32_t)i;
    status = run(t, err);
    free_working(t);
    t->done = status == TFM_STATUS_OK;
    return status;
}

size_t tfm_bpe_trainer_text_bytes(const struct tfm_bpe_trainer *trainer)
{
    return trainer->text_bytes;
}

size_t tfm_bpe_trainer_words(const struct tfm_bpe_trainer *trainer)
{
    return trainer->words.n;
}

size_t tfm_bpe_trainer_merges(const struct tfm_bpe_trainer *trainer)
{
    return trainer->n_merges;
}
