/* SPDX-License-Identifier: MIT
 * The golden files of this folder as C data, and the comparison of logits with them. */
#ifndef TFM_TEST_GOLDEN_H
#define TFM_TEST_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_TOP = 10 };

struct golden_top {
    size_t n;                 /* logits after the first n tokens */
    int32_t id[GOLDEN_TOP];   /* best first */
    double logit[GOLDEN_TOP]; /* float64, 6 decimals */
};

/* A prompt: the best logits after it, then the tokens that follow and how sure each is. */
struct golden_case {
    char *text; /* NULL for the long one */
    int32_t *ids;
    size_t n;
    size_t n_top;
    struct golden_top *top; /* [n_top] */
    size_t n_greedy;
    int32_t *greedy; /* [n_greedy] */
    double *margin;  /* [n_greedy] best minus second-best logit */
};

struct golden {
    size_t n;
    struct golden_case *cases; /* [n] */
};

/* The "logits" of a file of prompts, or the one case of a long text; `name` is looked for in
 * the folder $TFM_TEST_GOLDEN. Says on stderr what is wrong and returns NULL. */
struct golden *golden_read(const char *name);
void golden_free(struct golden *golden); /* NULL is fine */

/* How far logits [vocab] are from a golden top: the largest difference at its tokens, and how much
 * any other token lies above the last of them. Infinity when a logit is not finite. */
double golden_distance(const struct golden_top *top, const float *logits, size_t vocab);

#endif
