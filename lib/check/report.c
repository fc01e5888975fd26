/* SPDX-License-Identifier: MIT
 * Records from the child to the parent. */
#include "lib/check/report.h"

#include <stdarg.h>
#include <string.h>

static void put_field(FILE *to, const char *text)
{
    fputc('\t', to);
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, to);
}

static void put(struct tfm__report *report, const char *record, const char *const *fields, size_t n)
{
    fputs(record, report->to);
    for (size_t i = 0; i < n; i++)
        put_field(report->to, fields[i]);
    fputc('\n', report->to);
    fflush(report->to);
}

static int begin(struct tfm__report *report, const char *kind, const char *format,
                 va_list arguments)
{
    char name[400];

    if (report->index < report->done) {
        report->index++;
        return 0;
    }
    vsnprintf(name, sizeof name, format, arguments);
    put(report, TFM__RECORD_CASE, (const char *const[]){kind, name}, 2);
    return 1;
}

int tfm__report_begin(struct tfm__report *report, const char *kind, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int run = begin(report, kind, format, arguments);
    va_end(arguments);
    return run;
}

void tfm__report_skip(struct tfm__report *report, const char *why, const char *kind,
                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int told = begin(report, kind, format, arguments);
    va_end(arguments);
    if (!told)
        return;
    report->index++;
    put(report, TFM__RECORD_SKIP, &why, 1);
}

void tfm__report_end(struct tfm__report *report, const struct tfm_error *err)
{
    const char *text = err->text[0] ? err->text : "it failed without a text";

    report->index++;
    report->failed += err->status != TFM_STATUS_OK;
    if (err->status == TFM_STATUS_OK)
        put(report, TFM__RECORD_PASS, NULL, 0);
    else
        put(report, TFM__RECORD_FAIL, &text, 1);
}

void tfm__report_put(struct tfm__report *report, const char *record, const char *const *fields,
                     size_t n)
{
    if (report->index >= report->done)
        put(report, record, fields, n);
}

void tfm__report_note(struct tfm__report *report, const char *format, ...)
{
    char text[400];
    const char *const field = text;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tfm__report_put(report, TFM__RECORD_NOTE, &field, 1);
}
