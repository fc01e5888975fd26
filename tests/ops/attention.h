/* SPDX-License-Identifier: MIT
 * An attention under test: built, filled, run against an oracle that asks for each row and cell whether
 * the one sees the other. Caches hold NaN wherever nothing was appended: a cell that a row must not see
 * shows, also if its weight is 0. */
#ifndef TESTS_OPS_ATTENTION_H
#define TESTS_OPS_ATTENTION_H

#include "tests/ops/trial.h"

struct attention_kind {
    enum tfm_dtype dtype, cache;
    int64_t heads, groups, d; /* H, G, d */
    int64_t slots, cells;     /* cells 0 = without caches; slots then counts sequences */
    double scale;             /* 0 = 1/sqrt(d) */
    int bidirectional, window;
    double softcap;
    int64_t buckets, span; /* of the relative bias; buckets 0 = none, span = M */
};

/* What was built last; an oracle has no context of its own. */
struct attention {
    struct attention_kind kind;
    struct tfm_tensor *q, *k, *v, *k_cache, *v_cache, *rel_bias, *rel_bucket;
};
extern struct attention attention;

/* Values lie in [-1, 1), buckets are scattered. */
void attention_build(struct trial *trial, uint32_t rows, const struct attention_kind *kind);

/* Fresh values of q, k and v in [-size, size) for a run. */
void attention_refill(struct trial *trial, uint64_t seed, double size);

/* Runs, compares, and looks into the caches: the new cells hold k and v, all others their old bits. */
void attention_attend(struct trial *trial, const struct tfm_rows *rows);

/* The same for rows given by the lengths and pasts of n sequences; sequence s has slot s. */
void attention_attend_lengths(struct trial *trial, uint32_t n, const int32_t *lengths,
                              const int32_t *past);

/* The tests of masks and biases, in attention_masks.c. */
void attention_mask_cases(Suite *suite);

#endif
