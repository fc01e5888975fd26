/* SPDX-License-Identifier: MIT
 * Texts into token files. */
#include <stdlib.h>

#include "lib/llm/tokenizer_internal.h"

enum tfm_status tfm_tokenizer_add_text(const struct tfm_tokenizer *tokenizer,
                                       struct tfm_dataset_writer *writer, const char *text,
                                       size_t size,
                                       int (*go_on)(void *context, size_t done, size_t size),
                                       void *context, struct tfm_error *err)
{
    const struct tfm__encode_watch watch = {go_on, context};

    const struct tfm_tokenizer *t = tokenizer;
    int32_t *ids = NULL;
    size_t n = 0;
    enum tfm_status status =
        tfm__tokenizer_encode(t, text, size, 0, go_on ? &watch : NULL, &ids, &n, err);

    if (status == TFM_STATUS_OK && t->bos >= 0 && t->bos != t->eos)
        status = tfm_dataset_writer_add(writer, &t->bos, 1, err);
    if (status == TFM_STATUS_OK)
        status = tfm_dataset_writer_add(writer, ids, n, err);
    if (status == TFM_STATUS_OK && t->eos >= 0)
        status = tfm_dataset_writer_add(writer, &t->eos, 1, err);
    free(ids);
    return status;
}
