/* SPDX-License-Identifier: MIT
 * The table of the types that safetensors files name, for the reader and the writer. */
#ifndef TFM__LLM_SAFETENSORS_TYPES_H
#define TFM__LLM_SAFETENSORS_TYPES_H

#include <stddef.h>

#include <tfm/dtype.h>

struct tfm__safetensors_type {
    const char *name;
    size_t bytes; /* of an element */
    int dtype;    /* enum tfm_dtype, or -1: known to the format and not to us */
};

static const struct tfm__safetensors_type tfm__safetensors_types[] = {
#define NONE                                     (-1)
#define TFM_SAFETENSORS_TYPE(NAME, bytes, dtype) {#NAME, bytes, dtype},
#include "lib/llm/safetensors_types.def"
#undef TFM_SAFETENSORS_TYPE
#undef NONE
};
enum { TFM__SAFETENSORS_TYPES = sizeof tfm__safetensors_types / sizeof *tfm__safetensors_types };

#endif
