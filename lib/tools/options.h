/* SPDX-License-Identifier: MIT
 * The options of a verb as a struct, made from options.def. */
#ifndef TFM__TOOLS_OPTIONS_H
#define TFM__TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/tools/verbs.h"

struct tfm__option_list {
    const char **items; /* [n], borrowed from argv */
    size_t n;
};

#define TFM__OPTION_OPERAND const char *
#define TFM__OPTION_FLAG    int
#define TFM__OPTION_COUNT   int64_t
#define TFM__OPTION_REAL    double
#define TFM__OPTION_SEED    uint64_t
#define TFM__OPTION_TEXT    const char *
#define TFM__OPTION_CHOICE  const char *
#define TFM__OPTION_LIST    struct tfm__option_list

struct tfm__options {
    enum tfm__verb verb;
#define TFM_OPTION(field, letter, name, KIND, initial, least, most, env, argument, verbs, help) \
    TFM__OPTION_##KIND field;
#include "lib/tools/options.def"
#undef TFM_OPTION
    /* 1 = given on the command line */
    struct {
#define TFM_OPTION(field, letter, name, KIND, initial, least, most, env, argument, verbs, help) \
    unsigned char field;
#include "lib/tools/options.def"
#undef TFM_OPTION
    } given;
};

const char *tfm__verb_name(enum tfm__verb verb);
/* TFM__VERB_COUNT when there is none of that name. */
enum tfm__verb tfm__verb_find(const char *name);

/* Reads argv[1..argc), argv[0] being the verb. Returns 0, or 2 after it has said what is wrong.
 * Texts are borrowed from argv. Release with tfm__options_deinit, also after a failure. */
int tfm__options_parse(enum tfm__verb verb, int argc, char **argv, struct tfm__options *options);
void tfm__options_deinit(struct tfm__options *options);

/* Help of a verb; of the program when verb is TFM__VERB_COUNT. */
void tfm__options_help(enum tfm__verb verb, FILE *to);

#endif
