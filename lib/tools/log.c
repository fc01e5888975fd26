/* SPDX-License-Identifier: MIT
 * Where the library's messages go while the program runs. */
#include "lib/tools/log.h"

#include <string.h>

#include <tfm/device.h>

#include "lib/tools/message.h"

static int log_verbose;

static void put(void *context, enum tfm_log_level level, const char *backend, const char *text)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    (void)context;
    if (!log_verbose && level == TFM_LOG_WARN)
        tfm__message("%s: %s: %s", levels[level], backend, text);
    while (log_verbose && *text) {
        size_t size = strcspn(text, "\n");
        if (size)
            tfm__message("%s: %s: %.*s", levels[level], backend, (int)size, text);
        text += size + (text[size] == '\n');
    }
}

void tfm__log_begin(int verbose)
{
    log_verbose = verbose;
    tfm_log_set(put, NULL);
}
