/* SPDX-License-Identifier: MIT
 * Where the prompt comes from, and its tokens. */
#ifndef TFM__TOOLS_PROMPT_H
#define TFM__TOOLS_PROMPT_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/tokenizer.h>

#include "lib/tools/options.h"

struct tfm__prompt {
    char *text; /* [size] malloc'ed */
    size_t size;
    int32_t *ids; /* [n] malloc'ed */
    size_t n;
};

/* Of -p, -f and --ids at most one may be given; exactly one if `required`. Returns 0, or 2 after it
 * has said what is wrong. */
int tfm__prompt_check(const struct tfm__options *options, int required);
/* -p or -f; else, if `otherwise` is not NULL, standard input when it is no terminal and not empty,
 * else `otherwise`. Returns an exit code after it has said what is wrong. */
int tfm__prompt_read(const struct tfm__options *options, const char *otherwise,
                     struct tfm__prompt *prompt);
/* Fills ids: control tokens are recognized unless --no-special, BOS is put in front if the model
 * asks for it. Returns an exit code. */
int tfm__prompt_encode(const struct tfm__options *options, const struct tfm_tokenizer *tokenizer,
                       struct tfm__prompt *prompt);
/* Fills ids from --ids. Returns an exit code. */
int tfm__prompt_parse_ids(const char *list, struct tfm__prompt *prompt);
void tfm__prompt_deinit(struct tfm__prompt *prompt);

#endif
