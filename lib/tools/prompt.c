/* SPDX-License-Identifier: MIT
 * The prompt: a text of the command line, a file, standard input, or ids. */
#include "lib/tools/prompt.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/core/checked.h"
#include "lib/tools/file.h"
#include "lib/tools/message.h"

static int copy_text(const char *text, struct tfm__prompt *prompt)
{
    size_t size = strlen(text);
    prompt->text = malloc(size + 1);
    if (!prompt->text)
        return tfm__failed("out of memory");
    memcpy(prompt->text, text, size + 1);
    prompt->size = size;
    return TFM__EXIT_OK;
}

/* Somebody who started the program with an open but silent input would wait for ever without
 * knowing what for. */
static void tell_if_silent(int fd)
{
    struct pollfd input = {fd, POLLIN, 0};
    if (poll(&input, 1, 3000) == 0)
        tfm__message("waiting for a prompt on standard input (-p TEXT gives one here)");
}

static int read_input(const char *otherwise, struct tfm__prompt *prompt)
{
    if (isatty(STDIN_FILENO))
        return copy_text(otherwise, prompt);
    tell_if_silent(STDIN_FILENO);
    if (tfm__file_read("-", &prompt->text, &prompt->size))
        return TFM__EXIT_FAILED;
    if (prompt->size == 0) {
        free(prompt->text);
        prompt->text = NULL;
        return copy_text(otherwise, prompt);
    }
    /* the line end that echo and editors put there is not part of what was meant */
    if (prompt->text[prompt->size - 1] == '\n')
        prompt->size--;
    return TFM__EXIT_OK;
}

int tfm__prompt_check(const struct tfm__options *options, int required)
{
    int given = options->given.prompt + options->given.file + options->given.ids;
    if (given > 1)
        return tfm__usage("the prompt is given twice: -p, -f and --ids exclude each other");
    if (required && !given)
        return tfm__usage("no text: give -p TEXT or -f FILE");
    return TFM__EXIT_OK;
}

int tfm__prompt_read(const struct tfm__options *options, const char *otherwise,
                     struct tfm__prompt *prompt)
{
    if (options->given.prompt)
        return copy_text(options->prompt, prompt);
    if (!options->given.file)
        return read_input(otherwise, prompt);
    return tfm__file_read(options->file, &prompt->text, &prompt->size) ? TFM__EXIT_FAILED
                                                                       : TFM__EXIT_OK;
}

int tfm__prompt_encode(const struct tfm__options *options, const struct tfm_tokenizer *tokenizer,
                       struct tfm__prompt *prompt)
{
    unsigned flags = TFM_TOKENIZE_BOS | (options->no_special ? 0 : TFM_TOKENIZE_SPECIAL);
    struct tfm_error err;
    if (tfm_tokenizer_encode(tokenizer, prompt->text, prompt->size, flags, &prompt->ids, &prompt->n,
                             &err))
        return tfm__failed("the prompt: %s", err.text);
    return TFM__EXIT_OK;
}

int tfm__prompt_parse_ids(const char *list, struct tfm__prompt *prompt)
{
    size_t room = 1, bytes;
    for (const char *p = list; *p; p++)
        room += *p == ',';
    if (tfm__mul_size(room, sizeof *prompt->ids, &bytes) || !(prompt->ids = malloc(bytes)))
        return tfm__failed("out of memory");
    for (const char *p = list;; p++) {
        char *end;
        errno = 0;
        long long id = strtoll(p, &end, 10);
        if (!((*p >= '0' && *p <= '9') || (*p == '-' && p[1] >= '0' && p[1] <= '9')) ||
            (*end && *end != ','))
            return tfm__usage("--ids: '%s' is not a list of token ids like 1,2,3", list);
        if (errno || id < INT32_MIN || id > INT32_MAX)
            return tfm__failed("--ids: %.*s is no token id: no vocabulary is that large",
                               (int)(end - p), p);
        prompt->ids[prompt->n++] = (int32_t)id;
        p = end;
        if (!*p)
            return TFM__EXIT_OK;
    }
}

void tfm__prompt_deinit(struct tfm__prompt *prompt)
{
    free(prompt->text);
    free(prompt->ids);
}
