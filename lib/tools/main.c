/* SPDX-License-Identifier: MIT
 * The program `tfm`: finds the verb, reads its options, calls it. */
#include <stdio.h>
#include <string.h>

#include <tfm/tfm.h>

#include "lib/tools/message.h"
#include "lib/tools/options.h"
#include "lib/tools/output.h"
#include "lib/tools/setup.h"

static int call(enum tfm__verb verb, int argc, char **argv)
{
    static int (*const verbs[])(const struct tfm__options *options) = {
#define TFM_VERB(name, summary, text) tfm__verb_##name,
#include "lib/tools/verbs.def"
#undef TFM_VERB
    };
    struct tfm__options options;
    tfm__message_verb(tfm__verb_name(verb));
    int code = tfm__options_parse(verb, argc, argv, &options);
    if (code == TFM__EXIT_OK && options.help)
        tfm__options_help(verb, stdout);
    else if (code == TFM__EXIT_OK && verb != TFM__VERB_backends &&
             tfm__backend_help_wanted(&options))
        code = tfm__verb_backends(&options); /* TFM_BACKEND=help */
    else if (code == TFM__EXIT_OK)
        code = verbs[verb](&options);
    tfm__options_deinit(&options);
    return code;
}

static int print_version(void)
{
    printf("tfm %s\n", tfm_version());
    return TFM__EXIT_OK;
}

static int help(const char *name)
{
    enum tfm__verb verb = name ? tfm__verb_find(name) : TFM__VERB_COUNT;
    if (name && verb == TFM__VERB_COUNT)
        return tfm__usage("there is no verb '%s'", name);
    tfm__options_help(verb, stdout);
    return TFM__EXIT_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        tfm__options_help(TFM__VERB_COUNT, stderr);
        return TFM__EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(NULL);
    if (strcmp(argv[1], "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    enum tfm__verb verb = tfm__verb_find(argv[1]);
    if (verb == TFM__VERB_COUNT)
        return tfm__usage("there is no verb '%s'", argv[1]);
    return call(verb, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    tfm__output_init();
    return tfm__output_close(dispatch(argc, argv));
}
