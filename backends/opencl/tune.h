/* SPDX-License-Identifier: MIT
 * What a file of `tfm tune` chose for a device, what is shipped, and what there is to choose from. */
#ifndef TFM_OPENCL_TUNE_H
#define TFM_OPENCL_TUNE_H

#include <tfm/tune.h>

#include "backends/opencl/internal.h"

#define TFM__CL_TUNE_VARIABLE "TFM_OPENCL_TUNE"

/* Fills device->shipped, then device->tuned from the device's file, whose facts are known; a file that is of
 * another device, another driver or broken is ignored with one line. */
enum tfm_status tfm__cl_tune_open(struct tfm__cl_device *device, struct tfm_error *err);
void tfm__cl_tune_close(struct tfm__cl_device *device);

/* Value of a key: what the file says, or what is shipped. file: set to 1 if the file decided; may be NULL. */
uint32_t tfm__cl_tuned(const struct tfm__cl_device *device, enum tfm__cl_tune_key key, int *file);

/* Lines in the form of a file for this kind of device (tune_shipped.c): the keys whose defaults are not found out
 * when the device is opened. name: of the table, for `tfm doctor`. */
const char *tfm__cl_tune_shipped(const struct tfm__cl_device *device, const char **name);

/* The extension TFM_TUNE of a device, and its making (tune_areas.c). path, head: of device->tune. */
const struct tfm_tune *tfm__cl_tune(const struct tfm__cl_device *device);

enum { TFM__CL_TUNE_PATH = 1024, TFM__CL_TUNE_HEAD = 512 };
enum {
    TFM__CL_TUNE_AREAS = 8,
    TFM__CL_TUNE_CANDIDATES = 10, /* of an area */
    TFM__CL_TUNE_LINES = 512,
    TFM__CL_TUNE_SETS = 8 /* of CLBlast's parameters */
};
struct tfm__cl_tune_table {
    struct tfm_tune table;
    struct tfm_tune_area areas[TFM__CL_TUNE_AREAS];
    struct tfm_tune_candidate candidates[TFM__CL_TUNE_AREAS][TFM__CL_TUNE_CANDIDATES];
    char path[TFM__CL_TUNE_PATH], head[TFM__CL_TUNE_HEAD];
    char lines[TFM__CL_TUNE_SETS][TFM__CL_TUNE_LINES];
};
void tfm__cl_tune_fill(const struct tfm__cl_device *device, struct tfm__cl_tune_table *table);

/* Names of CLBlast's Xgemm parameters, [TFM__CL_GEMM_PARAMETERS] (gemm.c). */
extern const char *const tfm__cl_gemm_names[];

#endif
