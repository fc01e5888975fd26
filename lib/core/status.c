/* SPDX-License-Identifier: MIT
 * Status texts and the one-line error record. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tfm/status.h>

const char *tfm_status_text(enum tfm_status status)
{
    switch (status) {
#define TFM_STATUS(id, NAME, text) \
    case TFM_STATUS_##NAME:        \
        return text;
#include <tfm/status.def>
#undef TFM_STATUS
    }
    return "unknown status";
}

const char *tfm_status_name(enum tfm_status status)
{
    switch (status) {
#define TFM_STATUS(id, NAME, text) \
    case TFM_STATUS_##NAME:        \
        return #NAME;
#include <tfm/status.def>
#undef TFM_STATUS
    }
    return "unknown";
}

enum tfm_status tfm_error_set(struct tfm_error *err, enum tfm_status status, const char *format,
                              ...)
{
    if (err && err->status == TFM_STATUS_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

void tfm_error_prefix(struct tfm_error *err, const char *format, ...)
{
    char rest[sizeof err->text];
    va_list args;
    int n;

    if (!err || err->status == TFM_STATUS_OK)
        return;
    memcpy(rest, err->text, sizeof rest);
    va_start(args, format);
    n = vsnprintf(err->text, sizeof err->text - 2, format, args);
    va_end(args);
    if (n < 0)
        return;
    strcat(err->text, ": ");
    const size_t used = strlen(err->text), room = sizeof err->text - used - 1;
    const size_t keep = strlen(rest) < room ? strlen(rest) : room;
    memcpy(err->text + used, rest, keep);
    err->text[used + keep] = '\0';
}

void tfm_error_clear(struct tfm_error *err)
{
    if (err) {
        err->status = TFM_STATUS_OK;
        err->text[0] = '\0';
    }
}
