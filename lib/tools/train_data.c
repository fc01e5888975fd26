/* SPDX-License-Identifier: MIT
 * Makes token files of texts, with a tokenizer that is there or is trained first. */
#include "lib/tools/train_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/bpe_train.h>

#include "lib/tools/corpus.h"
#include "lib/tools/file.h"
#include "lib/tools/interrupt.h"
#include "lib/tools/message.h"
#include "lib/tools/progress.h"

char *tfm__train_path(const struct tfm__options *options, const char *name)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", options->train_out, name) < 0) {
        tfm__failed("%s: out of memory", name);
        return NULL;
    }
    return path;
}

static int is_token_file(const char *path)
{
    const size_t n = strlen(path), ending = strlen(".tokens");
    return n > ending && strcmp(path + n - ending, ".tokens") == 0;
}

/* ---- the texts, one after the other ---- */

/* Where reading the texts is. */
struct reading {
    struct tfm__progress progress;
    size_t file, files;
};

typedef enum tfm_status add_text(void *context, struct reading *reading, const char *text,
                                 size_t size, struct tfm_error *err);

enum { FILE_PARTS = 1000 }; /* of each file, in the progress of all */

/* As tfm_tokenizer_add_text wants it: no signal waits for the end of a long text. */
static int go_on(void *context, size_t done, size_t size)
{
    struct reading *reading = context;
    const size_t part = (size_t)((double)FILE_PARTS * (double)done / (double)(size ? size : 1));

    tfm__progress_show(&reading->progress, reading->file * FILE_PARTS + part,
                       reading->files * FILE_PARTS);
    return !tfm__signals_waiting();
}

static int each_text(const char *path, const char *label, add_text *add, void *context,
                     size_t *bytes)
{
    struct tfm__corpus corpus = {0};
    struct reading reading;
    struct tfm_error err;
    enum tfm_status status;
    int code = tfm__corpus_open(path, &corpus);

    tfm__progress_init(&reading.progress);
    tfm__progress_begin(&reading.progress, label);
    reading.files = corpus.n;
    for (reading.file = 0; reading.file < corpus.n && code == TFM__EXIT_OK; reading.file++) {
        const char *name = corpus.files[reading.file];
        char *text = NULL;
        size_t size = 0;
        if (!go_on(&reading, 0, 0))
            code = TFM__EXIT_INTERRUPTED;
        else if (tfm__file_read(name, &text, &size))
            code = TFM__EXIT_FAILED;
        else if ((status = add(context, &reading, text, size, &err)) != TFM_STATUS_OK)
            code = status == TFM_STATUS_CANCELLED ? TFM__EXIT_INTERRUPTED
                                                  : tfm__failed("%s: %s", name, err.text);
        *bytes += size;
        free(text);
    }
    tfm__progress_clear(&reading.progress);
    tfm__corpus_deinit(&corpus);
    return code;
}

/* ---- tokenizer ---- */

static enum tfm_status save(const char *path, const struct tfm_bpe_trainer *trainer,
                            struct tfm_error *err)
{
    struct tfm_gguf_writer *writer = NULL;
    struct tfm__signals held;
    enum tfm_status status = tfm_gguf_writer_create(&writer, err);

    if (status == TFM_STATUS_OK)
        status = tfm_bpe_trainer_put(trainer, writer, err);
    tfm__signals_hold(&held);
    if (status == TFM_STATUS_OK)
        status = tfm_gguf_writer_save(writer, path, err);
    tfm__signals_release(&held);
    tfm_gguf_writer_destroy(writer);
    return status;
}

static enum tfm_status count_words(void *context, struct reading *reading, const char *text,
                                   size_t size, struct tfm_error *err)
{
    (void)reading; /* nothing is held back meanwhile */
    return tfm_bpe_trainer_add(context, text, size, err);
}

static int train_tokenizer(const struct tfm__options *options, int64_t vocab, const char *path)
{
    struct tfm__progress progress;
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm_error err;
    size_t bytes = 0;
    const struct tfm_bpe_options wanted = {.vocab = (size_t)vocab,
                                           .bos = "<|bos|>",
                                           .eos = "<|eos|>",
                                           .progress = tfm__progress_show,
                                           .progress_context = &progress};

    if (vocab == 0 || is_token_file(options->data))
        return tfm__failed("%s is missing: name the tokenizer with --tokenizer FILE.gguf%s", path,
                           vocab == 0 ? ", or give \"vocab\" in the configuration" : "");
    if (tfm_bpe_trainer_create(&wanted, &trainer, &err) != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    int code = each_text(options->data, "counting words", count_words, trainer, &bytes);
    tfm__progress_init(&progress);
    tfm__progress_begin(&progress, "merging pairs");
    if (code == TFM__EXIT_OK && (tfm_bpe_trainer_run(trainer, &err) != TFM_STATUS_OK ||
                                 save(path, trainer, &err) != TFM_STATUS_OK)) {
        tfm__progress_clear(&progress);
        code = tfm__failed("%s: %s", options->data, err.text);
    }
    tfm__progress_clear(&progress);
    tfm_bpe_trainer_destroy(trainer);
    return code;
}

static int copy_tokenizer(const char *from, const char *to)
{
    struct tfm__signals held;
    struct tfm_error err;

    tfm__signals_hold(&held);
    const enum tfm_status status = tfm_tokenizer_copy(from, to, &err);
    tfm__signals_release(&held);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}

static int open_tokenizer(const char *path, struct tfm_tokenizer **tokenizer)
{
    struct tfm_error err;

    return tfm_tokenizer_open(path, tokenizer, &err) == TFM_STATUS_OK ? TFM__EXIT_OK
                                                                      : tfm__failed("%s", err.text);
}

/* One that is there belongs to the token files and checkpoints that are there: another is an error. */
static int check_same(const struct tfm__train_data *data, const struct tfm_tokenizer *other,
                      const char *path)
{
    return tfm_tokenizer_checksum(other) == tfm_tokenizer_checksum(data->tokenizer)
               ? TFM__EXIT_OK
               : tfm__failed("%s: this folder was begun with another tokenizer than %s: name "
                             "another folder with --out",
                             data->tokenizer_path, path);
}

/* The folder's own against the one that is named. */
static int check_named(const struct tfm__options *options, const struct tfm_model *initial,
                       const struct tfm__train_data *data)
{
    struct tfm_tokenizer *named = NULL;

    if (!options->tokenizer)
        return initial ? check_same(data, tfm_model_tokenizer(initial), tfm_model_path(initial))
                       : TFM__EXIT_OK;
    int code = open_tokenizer(options->tokenizer, &named);
    if (code == TFM__EXIT_OK)
        code = check_same(data, named, options->tokenizer);
    tfm_tokenizer_destroy(named);
    return code;
}

int tfm__train_data_begin(const struct tfm__options *options, const struct tfm_model *initial,
                          struct tfm__train_data *data)
{
    *data = (struct tfm__train_data){.tokenizer_path = tfm__train_path(options, "tokenizer.gguf")};
    if (!data->tokenizer_path)
        return TFM__EXIT_FAILED;
    if (access(data->tokenizer_path, F_OK) != 0)
        return options->tokenizer ? open_tokenizer(options->tokenizer, &data->tokenizer)
                                  : TFM__EXIT_OK;
    const int code = open_tokenizer(data->tokenizer_path, &data->tokenizer);
    return code == TFM__EXIT_OK ? check_named(options, initial, data) : code;
}

/* tokenizer.gguf into the folder, if it is not there, and opened, if it is not. */
static int complete_tokenizer(const struct tfm__options *options, const struct tfm_model *initial,
                              int64_t vocab, struct tfm__train_data *data)
{
    const char *named = options->tokenizer ? options->tokenizer
                        : initial          ? tfm_model_path(initial)
                                           : NULL;
    int code = TFM__EXIT_OK;

    if (access(data->tokenizer_path, F_OK) != 0)
        code = named ? copy_tokenizer(named, data->tokenizer_path)
                     : train_tokenizer(options, vocab, data->tokenizer_path);
    if (code == TFM__EXIT_OK && !data->tokenizer)
        code = open_tokenizer(data->tokenizer_path, &data->tokenizer);
    if (code == TFM__EXIT_OK && vocab && tfm_tokenizer_vocab(data->tokenizer) != (size_t)vocab)
        code = tfm__failed("%s has %zu tokens, the configuration says %lld: leave \"vocab\" out or "
                           "take another tokenizer",
                           data->tokenizer_path, tfm_tokenizer_vocab(data->tokenizer),
                           (long long)vocab);
    return code;
}

/* ---- token files ---- */

struct encoding {
    const struct tfm_tokenizer *tokenizer;
    struct tfm_dataset_writer *writer;
};

static enum tfm_status encode(void *context, struct reading *reading, const char *text, size_t size,
                              struct tfm_error *err)
{
    const struct encoding *e = context;
    return tfm_tokenizer_add_text(e->tokenizer, e->writer, text, size, go_on, reading, err);
}

/* What was written, as the file `to`. One that is there and holds the same stays; if it holds something else and a training
 * has begun with it, it stays too. */
static int keep_or_finish(const char *from, const char *to, const struct tfm__train_data *data,
                          struct tfm_dataset_writer *writer)
{
    struct tfm_dataset *old = NULL;
    struct tfm_error err;
    int code = TFM__EXIT_OK;

    /* one that is damaged is made again: the checkpoint knows what belongs to it */
    if (access(to, F_OK) == 0 && tfm_dataset_open(to, &old, &err) == TFM_STATUS_OK) {
        const int same = tfm_dataset_writer_same(writer, old);
        const size_t n = tfm_dataset_count(old);
        tfm_dataset_close(old);
        if (same)
            return TFM__EXIT_OK;
        if (data->begun)
            return tfm__failed("%s: the training in this folder was begun with another text than "
                               "%s (%zu tokens): train with what it was begun with, or name "
                               "another folder with --out",
                               to, from, n);
    }
    if (tfm_dataset_writer_finish(writer, &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    return code;
}

static int write_tokens(const char *from, const char *to, struct tfm__train_data *data)
{
    struct encoding encoding = {data->tokenizer, NULL};
    struct tfm__signals held;
    struct tfm_error err;
    int code = TFM__EXIT_OK;

    /* no temporary file stays behind when the user ends the program just now: the signal waits for this clean-up only */
    tfm__signals_hold(&held);
    if (tfm_dataset_writer_create(to, tfm_tokenizer_vocab(data->tokenizer),
                                  tfm_tokenizer_checksum(data->tokenizer), &encoding.writer,
                                  &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    if (code == TFM__EXIT_OK)
        code = each_text(from, "encoding", encode, &encoding, &data->bytes);
    if (code == TFM__EXIT_OK)
        code = keep_or_finish(from, to, data, encoding.writer);
    tfm_dataset_writer_destroy(encoding.writer);
    tfm__signals_release(&held);
    return code;
}

static int open_tokens(const struct tfm__options *options, const char *from, const char *name,
                       struct tfm__train_data *data, struct tfm_dataset **dataset)
{
    char *path = is_token_file(from) ? strdup(from) : tfm__train_path(options, name);
    struct tfm_error err;
    int code = path ? TFM__EXIT_OK : TFM__EXIT_FAILED;

    if (code == TFM__EXIT_OK && !is_token_file(from))
        code = write_tokens(from, path, data);
    if (code == TFM__EXIT_OK && tfm_dataset_open(path, dataset, &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    if (code == TFM__EXIT_OK &&
        tfm_dataset_expect(*dataset, tfm_tokenizer_vocab(data->tokenizer),
                           tfm_tokenizer_checksum(data->tokenizer), &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    free(path);
    return code;
}

int tfm__train_data_open(const struct tfm__options *options, const struct tfm_model *initial,
                         int64_t vocab, int begun, struct tfm__train_data *data)
{
    int code;

    data->begun = begun;
    code = complete_tokenizer(options, initial, vocab, data);
    if (code == TFM__EXIT_OK)
        code = open_tokens(options, options->data, "data.tokens", data, &data->train);
    if (code == TFM__EXIT_OK && options->validation)
        code =
            open_tokens(options, options->validation, "validation.tokens", data, &data->validation);
    return code;
}

void tfm__train_data_deinit(struct tfm__train_data *data)
{
    tfm_dataset_close(data->train);
    tfm_dataset_close(data->validation);
    tfm_tokenizer_destroy(data->tokenizer);
    free(data->tokenizer_path);
}
