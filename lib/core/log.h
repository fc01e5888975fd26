/* SPDX-License-Identifier: MIT
 * Messages of the library to the sink that the program chose. */
#ifndef TFM__CORE_LOG_H
#define TFM__CORE_LOG_H

#include <tfm/backend.h>

/* 1 if TFM_VERBOSE asks for more. */
int tfm__verbose(void);
void tfm__log(enum tfm_log_level level, const char *backend, const char *format, ...)
    TFM_PRINTF(3, 4);
/* The same for a ready text: a slot of struct tfm_host. */
void tfm__log_text(enum tfm_log_level level, const char *backend, const char *text);

#endif
