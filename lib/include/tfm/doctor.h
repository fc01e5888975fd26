/* SPDX-License-Identifier: MIT
 * The extension "doctor-1" of a backend: facts about what it stands on, for `tfm doctor`. Whoever looks for a
 * fault gets them all, so a backend tells also what it could not find out, and why. */
#ifndef TFM_DOCTOR_H
#define TFM_DOCTOR_H

#include <tfm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFM_DOCTOR "doctor-1"

enum tfm_doctor_unit { TFM_DOCTOR_COUNT, TFM_DOCTOR_BYTES };

/* Who listens. Facts come in order; keys are a-z, 0-9 and _, constant, unique within their item; other strings
 * are valid during the call. Append only: call a member only if struct_size covers it. */
struct tfm_doctor_sink {
    size_t struct_size;
    void *context;
    /* What follows belongs to a new item of the list of that name ("platforms"); lists may alternate. */
    void (*item)(void *context, const char *list);
    void (*text)(void *context, const char *key, const char *value);
    void (*number)(void *context, const char *key, uint64_t value, enum tfm_doctor_unit unit);
    void (*flag)(void *context, const char *key, int32_t value);
};

/* What extension(NULL, TFM_DOCTOR) returns. */
struct tfm_doctor {
    size_t struct_size;
    /* Facts that need no open device: drivers, devices, limits, caches. Never fails: what cannot be had is
     * a text that says why. */
    void (*machine)(const struct tfm_host *host, const struct tfm_doctor_sink *sink);
    /* What an open device does, and why it does it so. */
    void (*device)(void *device, const struct tfm_doctor_sink *sink);
};

#ifdef __cplusplus
}
#endif
#endif
