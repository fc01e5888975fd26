/* SPDX-License-Identifier: MIT
 * Names below a scope: "blk.3.attn" + "q" -> "blk.3.attn.q". */
#ifndef TFM__NN_SCOPE_H
#define TFM__NN_SCOPE_H

#include <stdio.h>

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

#endif
