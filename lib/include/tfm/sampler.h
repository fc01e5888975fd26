/* SPDX-License-Identifier: MIT
 * Chooses the next token from logits: greedy, temperature, top-k, top-p, with a seed. */
#ifndef TFM_SAMPLER_H
#define TFM_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_sampler;

/* The filters apply in this order: temperature, top-k, top-p (to what top-k kept). */
struct tfm_sampler_options {
    double temperature; /* 0 = greedy: the largest, ties by lowest index; negative = error */
    int64_t top_k;      /* keep the k largest; <= 0 = off; > vocab = all */
    double top_p; /* keep the smallest set whose probability reaches p; >= 1 = off; 0 keeps the
                           best one; NaN or negative = error */
    uint64_t seed;
};

/* vocab = length of the logits. INVALID_ARGUMENT names option and value; NOMEM. */
TFM_API enum tfm_status tfm_sampler_create(size_t vocab, const struct tfm_sampler_options *options,
                                           struct tfm_sampler **sampler, struct tfm_error *err);
TFM_API void tfm_sampler_destroy(struct tfm_sampler *sampler); /* NULL is fine */

/* logits [vocab], unchanged. A logit of -infinity is never chosen. OUT_OF_RANGE: no logit is finite, or
 * one is NaN (the text names the first). Allocates nothing. */
TFM_API enum tfm_status tfm_sampler_next(struct tfm_sampler *sampler, const float *logits,
                                         int32_t *id, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
