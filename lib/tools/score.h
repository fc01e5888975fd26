/* SPDX-License-Identifier: MIT
 * Scores of the tokens of a text: -ln of the probability that the model gives each. */
#ifndef TFM__TOOLS_SCORE_H
#define TFM__TOOLS_SCORE_H

#include "lib/tools/setup.h"

/* Windows of `window` tokens. Either one behind the other: scored are those from window / 2 + 1 on, and what is left at
 * the end is not used. Or `all`: each begins half a window after the one before it, the last one ends where the text ends,
 * and every token but number 0 is scored once, in the first window that it is in. */
struct tfm__score_text {
    const int32_t *ids; /* [n] */
    size_t n, windows, window;
    int all;
    int32_t first; /* in the place of each window's first token; -1 = as it is */
};

/* How many windows there are in n tokens; 0 when there is none. */
size_t tfm__score_windows(size_t n, size_t window, int all);
/* Where window w begins, and the first of its tokens that is scored, counted from its beginning: at least 1. */
struct tfm__score_window {
    size_t begin, scored;
};
struct tfm__score_window tfm__score_window(const struct tfm__score_text *text, size_t w);

/* Opens model and session from the options and fills scores, those of each window behind those of the one
 * before it; device [256] gets "BACKEND: DEVICE". Shows progress under `label`. Returns an exit code after it has said what is wrong. */
int tfm__score(const struct tfm__options *options, const struct tfm__score_text *text,
               const char *label, double *scores, char device[256]);

/* -ln softmax(logits [vocab])[id] */
double tfm__score_token(const float *logits, size_t vocab, int32_t id);

/* Mean of n values and its standard error, as if they were independent; the error is 0 for n < 2. */
struct tfm__score_mean {
    double mean, error;
};
struct tfm__score_mean tfm__score_average(const double *values, size_t n);

#endif
