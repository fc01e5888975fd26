/* SPDX-License-Identifier: MIT
 * Messages on standard error: one line each, whatever the text holds. */
#include "lib/tools/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/tools/progress.h"

static const char *message_verb;

void tfm__message_verb(const char *verb)
{
    message_verb = verb;
}

/* A message is one write, so that it stays whole beside other processes' lines. */
static void put_line(const char *tail, const char *format, va_list args)
{
    char line[2048];
    size_t room = sizeof line - 1;
    int n = snprintf(line, room, "tfm%s%s: ", message_verb ? " " : "",
                     message_verb ? message_verb : "");
    size_t at = n < 0 ? 0 : (size_t)n;

    n = vsnprintf(line + at, room - at, format, args);
    at = n < 0 ? at : at + (size_t)n < room ? at + (size_t)n : room - 1;
    n = snprintf(line + at, room - at, "%s", tail);
    at = n < 0 ? at : at + (size_t)n < room ? at + (size_t)n : room - 1;
    for (size_t i = 0; i < at; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    line[at] = '\n';
    tfm__progress_hide();
    fwrite(line, 1, at + 1, stderr);
}

void tfm__message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line("", format, args);
    va_end(args);
}

int tfm__failed(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line("", format, args);
    va_end(args);
    return TFM__EXIT_FAILED;
}

int tfm__usage(const char *format, ...)
{
    char tail[96];
    va_list args;
    snprintf(tail, sizeof tail, " (see tfm%s%s --help)", message_verb ? " " : "",
             message_verb ? message_verb : "");
    va_start(args, format);
    put_line(tail, format, args);
    va_end(args);
    return TFM__EXIT_USAGE;
}
