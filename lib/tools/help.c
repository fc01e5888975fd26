/* SPDX-License-Identifier: MIT
 * --help of the program and of each verb, made from verbs.def and options.def. */
#include <string.h>

#include "lib/tools/option_table.h"
#include "lib/tools/options.h"

enum { HELP_WIDTH = 79, HELP_COLUMN = 28 };

struct verb_text {
    const char *summary, *text;
};

static const struct verb_text verb_texts[] = {
#define TFM_VERB(name, summary, text) {summary, text},
#include "lib/tools/verbs.def"
#undef TFM_VERB
};

/* Prints words with a line break before each that would pass the width; `at` = column now. */
static void put_wrapped(FILE *to, const char *text, int at, int indent)
{
    while (*text) {
        int size = (int)strcspn(text, " ");
        if (at > indent && at + 1 + size > HELP_WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', to);
            at++;
        }
        fprintf(to, "%.*s", size, text);
        at += size;
        text += size;
        text += strspn(text, " ");
    }
    fputc('\n', to);
}

static void put_option(FILE *to, const struct tfm__option *row)
{
    char text[512];
    int at = fprintf(to, row->letter ? "  -%c, " : "      ", row->letter);
    at += fprintf(to, "--%s%s%s", row->name, row->argument ? " " : "",
                  row->argument ? row->argument : "");
    if (at > HELP_COLUMN - 2) {
        fputc('\n', to);
        at = 0;
    }
    fprintf(to, "%*s", HELP_COLUMN - at, "");

    int n = snprintf(text, sizeof text, "%s", row->help);
    if (row->initial)
        n += snprintf(text + n, sizeof text - (size_t)n, " (default %s)", row->initial);
    if (row->env)
        snprintf(text + n, sizeof text - (size_t)n, " [env %s]", row->env);
    put_wrapped(to, text, HELP_COLUMN, HELP_COLUMN);
}

static void put_program(FILE *to)
{
    fprintf(to, "usage: tfm VERB [OPTION...]\n\n");
    for (size_t i = 0; i < TFM__VERB_COUNT; i++)
        fprintf(to, "  %-15s %s\n", tfm__verb_name((enum tfm__verb)i), verb_texts[i].summary);
    fprintf(to, "  %-15s %s\n", "help", "this, or the options of a verb: tfm help VERB");
    fprintf(to,
            "\nExit codes: 0 done, 1 failed (one line on standard error says why), 2 wrong usage,\n"
            "130 ended by Ctrl-C. tfm --version prints the version.\n");
}

void tfm__options_help(enum tfm__verb verb, FILE *to)
{
    if (verb >= TFM__VERB_COUNT) {
        put_program(to);
        return;
    }
    fprintf(to, "usage: tfm %s [OPTION...]", tfm__verb_name(verb));
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++)
        if (tfm__option_table[i].verbs & 1u << verb &&
            tfm__option_table[i].kind == TFM__KIND_OPERAND)
            fprintf(to, " %s", tfm__option_table[i].argument);
    fputs("\n\n", to);
    put_wrapped(to, verb_texts[verb].text, 0, 0);
    fputc('\n', to);
    for (size_t i = 0; i < TFM__OPTION_ROWS; i++)
        if (tfm__option_table[i].verbs & 1u << verb &&
            tfm__option_table[i].kind != TFM__KIND_OPERAND)
            put_option(to, &tfm__option_table[i]);
}
