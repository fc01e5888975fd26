/* SPDX-License-Identifier: MIT
 * Names below a scope: "blk.3.attn" + "q" -> "blk.3.attn.q"; the precision that goes with a dtype. */
#ifndef TFM__NN_SCOPE_H
#define TFM__NN_SCOPE_H

#include <stdio.h>

#include <tfm/dtype.h>

struct tfm__name {
    char text[192];
};

/* Returns buffer->text. Longer names are cut, and then clash, which the graph reports. */
static inline const char *tfm__name_join(struct tfm__name *buffer, const char *scope,
                                         const char *leaf)
{
    snprintf(buffer->text, sizeof buffer->text, "%s.%s", scope, leaf);
    return buffer->text;
}

/* Of norm weights, biases and tables beside activations of that dtype. */
static inline enum tfm_dtype tfm__companion_of(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

#endif
