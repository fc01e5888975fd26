/* SPDX-License-Identifier: MIT
 * Status codes, the error text that goes with them, and the two export macros. */
#ifndef TFM_STATUS_H
#define TFM_STATUS_H

#if defined(__GNUC__)
#define TFM_API          __attribute__((visibility("default")))
#define TFM_PRINTF(m, n) __attribute__((__format__(__printf__, m, n)))
#else
#define TFM_API
#define TFM_PRINTF(m, n)
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum tfm_status {
#define TFM_STATUS(id, NAME, text) TFM_STATUS_##NAME = (id),
#include <tfm/status.def>
#undef TFM_STATUS
};

/* What went wrong, in one line: what, where, both values, and what to do. The caller owns it.
 * A call that takes one clears it on entry; within a call the first error wins.
 * Every function accepts NULL here when only the status is of interest. */
struct tfm_error {
    enum tfm_status status;
    char text[1000];
};

/* Short English text of a status, never NULL; "unknown status" for a foreign value. */
TFM_API const char *tfm_status_text(enum tfm_status status);

/* Name of a status as in the enum without its prefix ("SHAPE"), never NULL. */
TFM_API const char *tfm_status_name(enum tfm_status status);

/* Records an error unless one is already there, and returns `status`, so that a caller writes
 * `return tfm_error_set(err, TFM_STATUS_SHAPE, "linear: ...", ...)`. err may be NULL. */
TFM_API enum tfm_status tfm_error_set(struct tfm_error *err, enum tfm_status status,
                                      const char *format, ...) TFM_PRINTF(3, 4);

/* Puts "PREFIX: " before the recorded text (truncates at the end, never overflows). */
TFM_API void tfm_error_prefix(struct tfm_error *err, const char *format, ...) TFM_PRINTF(2, 3);

/* Empties it: status OK, text "". err may be NULL. */
TFM_API void tfm_error_clear(struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
