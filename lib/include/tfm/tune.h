/* SPDX-License-Identifier: MIT
 * The extension by which a backend lets `tfm tune` choose between ways to compute: what there is to choose from,
 * by what work it shows which is fastest, and where the choice is kept. The backend reads that file when a device
 * is opened. */
#ifndef TFM_TUNE_H
#define TFM_TUNE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFM_TUNE "tune-2"

/* What is timed, with the shapes of a model. */
enum tfm_tune_work {
    TFM_TUNE_LINEAR,  /* its linear layers once, at as many rows as a run of a prompt has */
    TFM_TUNE_TOKEN,   /* a token of the whole model at the beginning of a text */
    TFM_TUNE_CONTEXT, /* a token of it behind a long text */
};

struct tfm_tune_candidate {
    const char *name;  /* "CLBlast, tiles of 32 x 32" */
    const char *lines; /* "key = value" lines that choose it, each with its line end */
};

/* One question. Areas are tuned in their order, each with what those before it have chosen; no two choose the
 * same key. */
struct tfm_tune_area {
    const char *name;   /* "matrix product of many rows" */
    uint32_t work;      /* enum tfm_tune_work */
    const char *forced; /* a variable that decides instead, and is set; NULL = none */
    const char *given;  /* lines that hold while it is tuned and are not kept; may be "" */
    /* [n]; the first has no lines: what is done without a file */
    const struct tfm_tune_candidate *candidates;
    uint32_t n;
};

/* What extension(device, TFM_TUNE) returns; belongs to the device. Append only. */
struct tfm_tune {
    size_t struct_size;
    const char *variable; /* of the environment: a file that is read instead of `path`, or "off" */
    const char *path;     /* the file of this device; "" when no folder for it is known */
    const char *head; /* lines that it begins with: they say for which device and driver it is */
    const struct tfm_tune_area *areas; /* [n] */
    uint32_t n;
};

#ifdef __cplusplus
}
#endif
#endif
