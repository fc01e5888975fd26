/* SPDX-License-Identifier: MIT
 * Scores of the tokens of a text: -ln of the probability that the model gives each. */
#ifndef TFM__TOOLS_SCORE_H
#define TFM__TOOLS_SCORE_H

#include "lib/tools/setup.h"

/* Windows of `window` tokens, one behind the other; scored are those from window / 2 + 1 on. */
struct tfm__score_text {
    const int32_t *ids; /* [windows * window] */
    size_t windows, window;
    int32_t first; /* in the place of each window's first token; -1 = as it is */
};

/* window - window / 2 - 1 */
size_t tfm__score_each(const struct tfm__score_text *text);

/* Opens model and session from the options and fills scores [windows, tfm__score_each()]; device [256] gets
 * "BACKEND: DEVICE". Shows progress under `label`. Returns an exit code after it has said what is wrong. */
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
