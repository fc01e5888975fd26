/* SPDX-License-Identifier: MIT
 * Where messages go. Without a sink: warnings to standard error, everything under TFM_VERBOSE. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tfm/device.h>

#include "lib/core/env.h"
#include "lib/core/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*log_sink)(void *context, enum tfm_log_level level, const char *backend,
                        const char *text);
static void *log_context;

void tfm_log_set(void (*sink)(void *context, enum tfm_log_level level, const char *backend,
                              const char *text),
                 void *context)
{
    pthread_mutex_lock(&lock);
    log_sink = sink;
    log_context = context;
    pthread_mutex_unlock(&lock);
}

int tfm__verbose(void)
{
    const char *value = tfm__env("TFM_VERBOSE");
    return value && *value && strcmp(value, "0") != 0;
}

void tfm__log_text(enum tfm_log_level level, const char *backend, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};

    pthread_mutex_lock(&lock);
    if (log_sink)
        log_sink(log_context, level, backend, text);
    else if (level <= TFM_LOG_WARN || tfm__verbose())
        fprintf(stderr, "tfm: %s: %s: %s\n", names[level], backend, text);
    pthread_mutex_unlock(&lock);
}

void tfm__log(enum tfm_log_level level, const char *backend, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tfm__log_text(level, backend, text);
}
