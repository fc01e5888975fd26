/* SPDX-License-Identifier: MIT
 * Reads the command line of a verb with getopt_long; what there is to read stands in options.def.
 */
#include "lib/tools/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tools/message.h"
#include "lib/tools/option_table.h"

#define TFM_OPTION(field, letter, name, KIND, initial, least, most, env, argument, verbs, help) \
    {letter,                                                                                    \
     name,                                                                                      \
     TFM__KIND_##KIND,                                                                          \
     offsetof(struct tfm__options, field),                                                      \
     offsetof(struct tfm__options, given.field),                                                \
     initial,                                                                                   \
     least,                                                                                     \
     most,                                                                                      \
     env,                                                                                       \
     argument,                                                                                  \
     verbs,                                                                                     \
     help},
const struct tfm__option tfm__option_table[TFM__OPTION_ROWS] = {
#include "lib/tools/options.def"
};
#undef TFM_OPTION

static const char *const verb_names[] = {
#define TFM_VERB(name, summary, text) #name,
#include "lib/tools/verbs.def"
#undef TFM_VERB
};

const char *tfm__verb_name(enum tfm__verb verb)
{
    static char names[TFM__VERB_COUNT][32];

    if (verb >= TFM__VERB_COUNT)
        return NULL;
    snprintf(names[verb], sizeof names[verb], "%s", verb_names[verb]);
    for (char *at = names[verb]; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return names[verb];
}

enum tfm__verb tfm__verb_find(const char *name)
{
    for (size_t i = 0; i < TFM__VERB_COUNT; i++)
        if (strcmp(tfm__verb_name((enum tfm__verb)i), name) == 0)
            return (enum tfm__verb)i;
    return TFM__VERB_COUNT;
}

/* ---- one reader a kind: returns 0, or 1 after it has written what is expected to `expected`
 * ------ */

static int read_flag(const struct tfm__option *row, const char *text, void *to, char expected[160])
{
    (void)row, (void)text, (void)expected;
    *(int *)to = 1;
    return 0;
}

static int read_count(const struct tfm__option *row, const char *text, void *to, char expected[160])
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int digits = text[0] >= '0' && text[0] <= '9';
    if (text[0] == '-' || text[0] == '+')
        digits = text[1] >= '0' && text[1] <= '9';
    if (!digits || *end || errno || (double)value < row->least || (double)value > row->most) {
        snprintf(expected, 160, "a whole number from %.0f to %.0f", row->least, row->most);
        return 1;
    }
    *(int64_t *)to = value;
    return 0;
}

static int read_real(const struct tfm__option *row, const char *text, void *to, char expected[160])
{
    char *end;
    double value = strtod(text, &end);
    /* strtod also takes blanks, hexadecimal, inf and nan */
    if (!*text || text[strspn(text, "+-.0123456789eE")] || *end || !isfinite(value) ||
        value < row->least || value > row->most) {
        snprintf(expected, 160, "a number from %g to %g", row->least, row->most);
        return 1;
    }
    *(double *)to = value;
    return 0;
}

static int read_seed(const struct tfm__option *row, const char *text, void *to, char expected[160])
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    (void)row;
    if (text[0] < '0' || text[0] > '9' || *end || errno) {
        snprintf(expected, 160, "a whole number from 0 to %llu", (unsigned long long)UINT64_MAX);
        return 1;
    }
    *(uint64_t *)to = value;
    return 0;
}

static int read_text(const struct tfm__option *row, const char *text, void *to, char expected[160])
{
    (void)row, (void)expected;
    *(const char **)to = text;
    return 0;
}

/* The words stand in the argument's name: "f16|f32". */
static int read_choice(const struct tfm__option *row, const char *text, void *to,
                       char expected[160])
{
    size_t size = strlen(text);
    for (const char *word = row->argument; word;
         word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
        if (size == strcspn(word, "|") && strncmp(word, text, size) == 0) {
            *(const char **)to = text;
            return 0;
        }
    snprintf(expected, 160, "one of %s", row->argument);
    return 1;
}

static int read_list(const struct tfm__option *row, const char *text, void *to, char expected[160])
{
    struct tfm__option_list *list = to;
    const char **items = realloc(list->items, (list->n + 1) * sizeof *items);
    (void)row;
    if (!items) {
        snprintf(expected, 160, "more memory");
        return 1;
    }
    list->items = items;
    items[list->n++] = text;
    return 0;
}

static int read_argument(const struct tfm__option *row, const char *text,
                         struct tfm__options *options, char expected[160])
{
    static int (*const readers[])(const struct tfm__option *, const char *, void *, char[160]) = {
#define TFM__KIND(KIND, reader) [TFM__KIND_##KIND] = reader,
        TFM__KINDS
#undef TFM__KIND
    };
    return readers[row->kind](row, text, (char *)options + row->offset, expected);
}

/* ---- the command line
 * ------------------------------------------------------------------------------ */

static int takes_argument(const struct tfm__option *row)
{
    return row->kind != TFM__KIND_FLAG;
}

static void set_initial(enum tfm__verb verb, struct tfm__options *options)
{
    char expected[160];
    memset(options, 0, sizeof *options);
    options->verb = verb;
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++)
        if (tfm__option_table[i].initial)
            read_argument(&tfm__option_table[i], tfm__option_table[i].initial, options, expected);
}

/* What getopt_long wants, for one verb. val is the row's index + 256; `letters` starts with "+:" so
 * that the first other word ends the options and a missing argument can be told from an unknown
 * option. */
struct getopt_tables {
    struct option longs[TFM__OPTION_ROWS + 1];
    char letters[2 * TFM__OPTION_ROWS + 3];
};

static void make_tables(enum tfm__verb verb, struct getopt_tables *tables)
{
    size_t n = 0, at = 2;
    memset(tables, 0, sizeof *tables);
    memcpy(tables->letters, "+:", 2);
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++) {
        const struct tfm__option *row = &tfm__option_table[i];
        if (!(row->verbs & 1u << verb) || row->kind == TFM__KIND_OPERAND)
            continue;
        tables->longs[n++] = (struct option){
            row->name, takes_argument(row) ? required_argument : no_argument, NULL, (int)i + 256};
        if (row->letter)
            tables->letters[at++] = row->letter;
        if (row->letter && takes_argument(row))
            tables->letters[at++] = ':';
    }
}

static const struct tfm__option *find_row(enum tfm__verb verb, int value)
{
    if (value >= 256)
        return &tfm__option_table[value - 256];
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++)
        if (tfm__option_table[i].letter == value && tfm__option_table[i].verbs & 1u << verb)
            return &tfm__option_table[i];
    return NULL;
}

/* getopt tells a wrong letter in optopt and a wrong long name only by where it stands. */
static int unknown_option(const char *word)
{
    if (optopt > 0 && optopt < 256)
        return tfm__usage("unknown option -%c", optopt);
    if (optopt >= 256)
        return tfm__usage("%s: --%s takes no value", word, tfm__option_table[optopt - 256].name);
    return tfm__usage("unknown option %s", word);
}

static int wrong_argument(const struct tfm__option *row, const char *expected)
{
    const char letter[] = {row->letter, '\0'};
    return tfm__usage("%s%s%s--%s: '%s' is not %s", row->letter ? "-" : "", letter,
                      row->letter ? ", " : "", row->name, optarg, expected);
}

/* The word of its own that the verb takes, NULL = none. */
static const struct tfm__option *find_operand(enum tfm__verb verb)
{
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++)
        if (tfm__option_table[i].kind == TFM__KIND_OPERAND &&
            tfm__option_table[i].verbs & 1u << verb)
            return &tfm__option_table[i];
    return NULL;
}

int tfm__options_parse(enum tfm__verb verb, int argc, char **argv, struct tfm__options *options)
{
    const struct tfm__option *operand = find_operand(verb);
    struct getopt_tables tables;
    int value;

    make_tables(verb, &tables);
    set_initial(verb, options);
    opterr = 0;
    optind = 1;
    for (;;) {
        char expected[160];
        value = getopt_long(argc, argv, tables.letters, tables.longs, NULL);
        if (value == -1 && operand && optind < argc) { /* it may stand among the options */
            read_argument(operand, argv[optind++], options, expected);
            operand = NULL;
            continue;
        }
        if (value == -1)
            break;
        const char *word = argv[optind - 1];
        if (value == '?')
            return unknown_option(word);
        if (value == ':')
            return tfm__usage("%s needs an argument", word);
        const struct tfm__option *row = find_row(verb, value);
        if (read_argument(row, optarg, options, expected))
            return wrong_argument(row, expected);
        *((unsigned char *)options + row->given) = 1;
    }
    if (optind < argc)
        return tfm__usage("'%s' is not an option", argv[optind]);
    if (operand && operand->least >= 0 && !options->help)
        return tfm__usage("%s is missing", operand->argument);
    return 0;
}

void tfm__options_deinit(struct tfm__options *options)
{
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++) {
        if (tfm__option_table[i].kind != TFM__KIND_LIST)
            continue;
        struct tfm__option_list *list = (void *)((char *)options + tfm__option_table[i].offset);
        free(list->items);
        *list = (struct tfm__option_list){0};
    }
}
