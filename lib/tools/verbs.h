/* SPDX-License-Identifier: MIT
 * The verbs of the program: their numbers and the function of each, made from verbs.def. */
#ifndef TFM__TOOLS_VERBS_H
#define TFM__TOOLS_VERBS_H

struct tfm__options;

enum tfm__verb {
#define TFM_VERB(name, summary, text) TFM__VERB_##name,
#include "lib/tools/verbs.def"
#undef TFM_VERB
    TFM__VERB_COUNT
};

/* lib/tools/<name>.c. Each returns the exit code of the program. */
#define TFM_VERB(name, summary, text) int tfm__verb_##name(const struct tfm__options *options);
#include "lib/tools/verbs.def"
#undef TFM_VERB

#endif
