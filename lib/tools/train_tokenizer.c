/* SPDX-License-Identifier: MIT
 * `tfm train-tokenizer`: a vocabulary made from texts. */
#include <stdlib.h>

#include <tfm/bpe_train.h>

#include "lib/tools/clock.h"
#include "lib/tools/corpus.h"
#include "lib/tools/file.h"
#include "lib/tools/interrupt.h"
#include "lib/tools/message.h"
#include "lib/tools/options.h"
#include "lib/tools/progress.h"

static int add_files(const struct tfm__corpus *corpus, struct tfm_bpe_trainer *trainer,
                     struct tfm__progress *progress)
{
    struct tfm_error err;

    tfm__progress_begin(progress, "counting words");
    for (size_t i = 0; i < corpus->n; i++) {
        char *text = NULL;
        size_t size = 0;
        enum tfm_status status = TFM_STATUS_OK;
        tfm__progress_show(progress, i, corpus->n);
        if (tfm__file_read(corpus->files[i], &text, &size))
            return TFM__EXIT_FAILED;
        status = tfm_bpe_trainer_add(trainer, text, size, &err);
        free(text);
        if (status != TFM_STATUS_OK)
            return tfm__failed("%s: %s", corpus->files[i], err.text);
    }
    return TFM__EXIT_OK;
}

static int save(const struct tfm__options *options, const struct tfm_bpe_trainer *trainer)
{
    struct tfm_gguf_writer *writer = NULL;
    struct tfm__signals held;
    struct tfm_error err;
    enum tfm_status status = tfm_gguf_writer_create(&writer, &err);

    if (status == TFM_STATUS_OK)
        status = tfm_bpe_trainer_put(trainer, writer, &err);
    /* no temporary file stays behind when the user ends the program just now */
    tfm__signals_hold(&held);
    if (status == TFM_STATUS_OK)
        status = tfm_gguf_writer_save(writer, options->out, &err);
    tfm_gguf_writer_destroy(writer);
    tfm__signals_release(&held);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}

static int train(const struct tfm__options *options, struct tfm_bpe_trainer *trainer,
                 const struct tfm__corpus *corpus, struct tfm__progress *progress)
{
    const double begin = tfm__seconds();
    struct tfm_error err;
    int code = add_files(corpus, trainer, progress);

    if (code != TFM__EXIT_OK)
        return code;
    tfm__progress_begin(progress, "merging pairs");
    if (tfm_bpe_trainer_run(trainer, &err) != TFM_STATUS_OK) {
        tfm__progress_clear(progress);
        return tfm__failed("%s: %s", options->data, err.text);
    }
    tfm__progress_clear(progress);
    code = save(options, trainer);
    if (code == TFM__EXIT_OK)
        tfm__message("%lld tokens, %zu merges, from %zu bytes in %zu files (%zu different words), "
                     "%.1f s: %s",
                     (long long)options->vocab, tfm_bpe_trainer_merges(trainer),
                     tfm_bpe_trainer_text_bytes(trainer), corpus->n, tfm_bpe_trainer_words(trainer),
                     tfm__seconds() - begin, options->out);
    return code;
}

static const char *text_or_none(const char *text)
{
    return *text ? text : NULL;
}

int tfm__verb_train_tokenizer(const struct tfm__options *options)
{
    struct tfm__corpus corpus = {0};
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm__progress progress;
    struct tfm_error err;

    if (!options->data || !options->out || !options->given.vocab)
        return tfm__usage("%s is missing", !options->data  ? "--data FILE|FOLDER"
                                           : !options->out ? "--out FILE"
                                                           : "--vocab N");
    tfm__progress_init(&progress);
    const struct tfm_bpe_options wanted = {
        .vocab = (size_t)options->vocab,
        .pre = options->pre,
        .bos = text_or_none(options->bos),
        .eos = text_or_none(options->eos),
        .add_bos = options->add_bos,
        .progress = tfm__progress_show,
        .progress_context = &progress,
    };
    if (tfm_bpe_trainer_create(&wanted, &trainer, &err) != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    int code = tfm__corpus_open(options->data, &corpus);
    if (code == TFM__EXIT_OK)
        code = train(options, trainer, &corpus, &progress);
    tfm__progress_clear(&progress);
    tfm_bpe_trainer_destroy(trainer);
    tfm__corpus_deinit(&corpus);
    return code;
}
