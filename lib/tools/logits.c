/* SPDX-License-Identifier: MIT
 * `tfm logits`: the best next tokens after a prompt, and all logits as a file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/npy.h"
#include "lib/tools/prompt.h"
#include "lib/tools/setup.h"

struct candidate {
    float logit;
    int32_t id;
};

/* Best first; equal ones by id; what is no number comes last. */
static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    int a_nan = a->logit != a->logit, b_nan = b->logit != b->logit;
    if (a_nan != b_nan)
        return a_nan - b_nan;
    if (!a_nan && a->logit != b->logit)
        return a->logit < b->logit ? 1 : -1;
    return a->id < b->id ? -1 : 1;
}

static int print_best(const struct tfm_tokenizer *tokenizer, const float *logits, size_t vocab,
                      int64_t top)
{
    struct candidate *all = calloc(vocab, sizeof *all);
    int code = all ? TFM__EXIT_OK : tfm__failed("out of memory");

    for (size_t i = 0; all && i < vocab; i++)
        all[i] = (struct candidate){logits[i], (int32_t)i};
    if (all)
        qsort(all, vocab, sizeof *all, compare);
    for (size_t i = 0; code == TFM__EXIT_OK && i < vocab && (int64_t)i < top; i++) {
        struct tfm_text piece;
        struct tfm_error err;
        if (tfm_tokenizer_piece(tokenizer, all[i].id, &piece, &err)) {
            code = tfm__failed("%s", err.text);
            break;
        }
        printf("%" PRId32 "\t", all[i].id);
        if (tfm__json_put_string(piece.data, piece.size))
            code = tfm__failed("out of memory");
        printf("\t%.6f\n", (double)all[i].logit);
    }
    free(all);
    return code;
}

static int read_tokens(const struct tfm__options *options, const struct tfm_model *model,
                       struct tfm__prompt *prompt)
{
    if (options->given.ids)
        return TFM__EXIT_OK;
    int code = tfm__prompt_encode(options, tfm_model_tokenizer(model), prompt);
    if (code == TFM__EXIT_OK && prompt->n == 0)
        code = tfm__failed("the prompt is empty: there is nothing to predict from");
    return code;
}

static int compute(const struct tfm__options *options, struct tfm__setup *setup,
                   const struct tfm__prompt *prompt)
{
    struct tfm_error err;
    if (tfm_session_feed(setup->session, prompt->ids, prompt->n, &err))
        return tfm__failed("%s", err.text);
    const size_t vocab = (size_t)tfm_model_config(setup->model)->vocab;
    const float *logits = tfm_session_logits(setup->session);
    if (options->npy && tfm__npy_write(options->npy, logits, vocab))
        return TFM__EXIT_FAILED;
    return print_best(tfm_model_tokenizer(setup->model), logits, vocab, options->top);
}

int tfm__verb_logits(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    struct tfm__prompt prompt = {0};
    int code = tfm__prompt_check(options, 1);

    if (code == TFM__EXIT_OK && options->given.ids)
        code = tfm__prompt_parse_ids(options->ids, &prompt);
    else if (code == TFM__EXIT_OK)
        code = tfm__prompt_read(options, "", &prompt);
    if (code == TFM__EXIT_OK)
        code = tfm__setup_model_and_devices(options, &setup);
    if (code == TFM__EXIT_OK)
        code = read_tokens(options, setup.model, &prompt);
    setup.rows = (int64_t)prompt.n;
    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(options, 0, &setup);
    if (code == TFM__EXIT_OK)
        code = compute(options, &setup, &prompt);
    tfm__prompt_deinit(&prompt);
    tfm__setup_close(&setup);
    return code;
}
