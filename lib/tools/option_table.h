/* SPDX-License-Identifier: MIT
 * options.def as a table: what the parser and the help share. */
#ifndef TFM__TOOLS_OPTION_TABLE_H
#define TFM__TOOLS_OPTION_TABLE_H

#include <stddef.h>

/* Kind of an option and the function in options.c that reads its argument. */
#define TFM__KINDS                 \
    TFM__KIND(OPERAND, read_text)  \
    TFM__KIND(FLAG, read_flag)     \
    TFM__KIND(COUNT, read_count)   \
    TFM__KIND(REAL, read_real)     \
    TFM__KIND(SEED, read_seed)     \
    TFM__KIND(TEXT, read_text)     \
    TFM__KIND(CHOICE, read_choice) \
    TFM__KIND(LIST, read_list)

enum tfm__option_kind {
#define TFM__KIND(KIND, reader) TFM__KIND_##KIND,
    TFM__KINDS
#undef TFM__KIND
};

/* A line of options.def, column by column; offset and given are places in struct tfm__options. */
struct tfm__option {
    char letter;
    const char *name;
    enum tfm__option_kind kind;
    size_t offset, given;
    const char *initial;
    double least, most;
    const char *env;
    const char *argument;
    unsigned verbs;
    const char *help;
};

enum {
    TFM__OPTION_ROWS = 0
#define TFM_OPTION(field, letter, name, KIND, initial, least, most, env, argument, verbs, help) +1
#include "lib/tools/options.def"
#undef TFM_OPTION
};

extern const struct tfm__option tfm__option_table[TFM__OPTION_ROWS];

#endif
