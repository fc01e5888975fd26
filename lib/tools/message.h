/* SPDX-License-Identifier: MIT
 * What the program says on standard error: always whole lines, one a message. */
#ifndef TFM__TOOLS_MESSAGE_H
#define TFM__TOOLS_MESSAGE_H

#include <tfm/status.h>

enum { TFM__EXIT_OK = 0, TFM__EXIT_FAILED = 1, TFM__EXIT_USAGE = 2, TFM__EXIT_INTERRUPTED = 130 };

/* The verb that stands in front of messages: "tfm run: ...". NULL = none. */
void tfm__message_verb(const char *verb);
/* One line; control characters in it become blanks (file names and build logs are foreign text). */
void tfm__message(const char *format, ...) TFM_PRINTF(1, 2);
/* tfm__message and the exit code 1. */
int tfm__failed(const char *format, ...) TFM_PRINTF(1, 2);
/* The same with a hint to --help behind it, and the exit code 2. */
int tfm__usage(const char *format, ...) TFM_PRINTF(1, 2);

#endif
