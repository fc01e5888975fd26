/* SPDX-License-Identifier: MIT
 * What `tfm train` learns from: texts as token files, and the tokenizer that made them. */
#ifndef TFM__TOOLS_TRAIN_DATA_H
#define TFM__TOOLS_TRAIN_DATA_H

#include <tfm/dataset.h>
#include <tfm/model.h>

#include "lib/tools/options.h"

struct tfm__train_data {
    struct tfm_tokenizer *tokenizer;        /* NULL = not known yet */
    struct tfm_dataset *train, *validation; /* validation NULL = a share of train */
    char *tokenizer_path;                   /* OUT/tokenizer.gguf */
    size_t bytes;                           /* of the texts that were encoded */
    int begun;                              /* a training goes on: its token files stay */
};

/* Opens the tokenizer, if there is one before the texts are read: that of an earlier call in the folder `out`, which must be
 * the same as that of --tokenizer or of `initial` (NULL = no model to begin with), else that of --tokenizer. Returns an
 * exit code after it has said what is wrong; release with tfm__train_data_deinit either way. */
int tfm__train_data_begin(const struct tfm__options *options, const struct tfm_model *initial,
                          struct tfm__train_data *data);
/* Behind it. In the folder `out`: tokenizer.gguf, which is that of --tokenizer, of the model to begin with (`initial`, may be
 * NULL), of an earlier call, or trained on the texts with `vocab` tokens (0 = the user must name one); then
 * data.tokens and validation.tokens, unless --data and --validation are token files themselves. `begun`: there is a
 * checkpoint, so other texts than those of the token files are refused. */
int tfm__train_data_open(const struct tfm__options *options, const struct tfm_model *initial,
                         int64_t vocab, int begun, struct tfm__train_data *data);
void tfm__train_data_deinit(struct tfm__train_data *data);

/* "OUT/name", allocated; NULL after it has said that memory is out. */
char *tfm__train_path(const struct tfm__options *options, const char *name);

#endif
