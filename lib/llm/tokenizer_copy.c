/* SPDX-License-Identifier: MIT
 * The tokenizer of a model as a file of its own. */
#include <tfm/gguf_write.h>

#include "lib/llm/folder.h"
#include "lib/llm/tokenizer_internal.h"

enum tfm_status tfm_tokenizer_copy(const char *from, const char *to, struct tfm_error *err)
{
    struct tfm_gguf *gguf = NULL;
    struct tfm_tokenizer *tokenizer = NULL;
    struct tfm_gguf_writer *writer = NULL;
    enum tfm_status status = tfm__folder_is(from) ? tfm__folder_open(from, 0, &gguf, err)
                                                  : tfm_gguf_open(from, &gguf, err);

    /* only what can be opened again */
    if (status == TFM_STATUS_OK)
        status = tfm_tokenizer_create(gguf, &tokenizer, err);
    if (status == TFM_STATUS_OK)
        status = tfm_gguf_writer_create(&writer, err);
    if (status == TFM_STATUS_OK) {
        tfm_gguf_writer_copy(writer, gguf, "tokenizer.");
        status = tfm_gguf_writer_save(writer, to, err);
    }
    tfm_gguf_writer_destroy(writer);
    tfm_tokenizer_destroy(tokenizer);
    tfm_gguf_close(gguf);
    return status;
}
