/* SPDX-License-Identifier: MIT
 * The extension by which a backend lets `tfm tune` choose between ways to compute: what there is to choose from,
 * and where the choice is kept. The backend reads that file when a device is opened. */
#ifndef TFM_TUNE_H
#define TFM_TUNE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFM_TUNE "tune-1"

struct tfm_tune_candidate {
    const char *name;  /* "CLBlast, tiles of 32 x 32" */
    const char *lines; /* "key = value" lines that choose it, each with its line end */
};

/* What extension(device, TFM_TUNE) returns; belongs to the device. Append only. */
struct tfm_tune {
    size_t struct_size;
    const char *variable; /* of the environment: a file that is read instead of `path`, or "off" */
    const char *forced;   /* a variable that would decide instead, and is set; NULL = none */
    const char *path;     /* the file of this device; "" when no folder for it is known */
    const char *head; /* lines that it begins with: they say for which device and driver it is */
    /* [n]; the first is what is done without a file */
    const struct tfm_tune_candidate *candidates;
    uint32_t n;
};

#ifdef __cplusplus
}
#endif
#endif
