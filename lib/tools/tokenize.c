/* SPDX-License-Identifier: MIT
 * `tfm tokenize`: the ids of a text, on one line. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/prompt.h"
#include "lib/tools/setup.h"

static int print_texts(const struct tfm_tokenizer *tokenizer, const struct tfm__prompt *prompt)
{
    for (size_t i = 0; i < prompt->n; i++) {
        struct tfm_text piece;
        struct tfm_error err;
        if (tfm_tokenizer_piece(tokenizer, prompt->ids[i], &piece, &err))
            return tfm__failed("%s", err.text);
        printf("%" PRId32 "\t", prompt->ids[i]);
        if (tfm__json_put_string(piece.data, piece.size))
            return tfm__failed("out of memory");
        putchar('\n');
    }
    return TFM__EXIT_OK;
}

int tfm__verb_tokenize(const struct tfm__options *options)
{
    struct tfm_tokenizer *tokenizer = NULL;
    struct tfm__prompt prompt = {0};
    int code = tfm__prompt_check(options, 1);

    if (code == TFM__EXIT_OK)
        code = tfm__prompt_read(options, "", &prompt);
    if (code == TFM__EXIT_OK)
        code = tfm__setup_tokenizer(options, &tokenizer);
    if (code == TFM__EXIT_OK)
        code = tfm__prompt_encode(options, tokenizer, &prompt);
    if (code == TFM__EXIT_OK && options->text) {
        code = print_texts(tokenizer, &prompt);
    } else if (code == TFM__EXIT_OK) {
        for (size_t i = 0; i < prompt.n; i++)
            printf(i ? " %" PRId32 : "%" PRId32, prompt.ids[i]);
        putchar('\n');
    }
    tfm__prompt_deinit(&prompt);
    tfm_tokenizer_destroy(tokenizer);
    return code;
}
