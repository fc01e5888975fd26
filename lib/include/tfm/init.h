/* SPDX-License-Identifier: MIT
 * Initial values of parameters: truncated normal numbers of a counter-based generator, made on the host
 * in f64 and rounded once, so that a seed means the same bits on every backend and machine. */
#ifndef TFM_INIT_H
#define TFM_INIT_H

#include <tfm/graph.h>
#include <tfm/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n numbers of a normal distribution of mean 0 and deviation std, restricted to [-cut std, cut std] by
 * drawing again (never by clamping, and without a correction of the deviation: with a cut of 3 the numbers
 * have 0.98658 std, with 2 0.87963). Number i depends on seed, stream (a name) and i alone: Philox 4x32-10
 * (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), arithmetic without libm.
 * Rounding to a plain dtype keeps the bound too; block types quantize what was drawn.
 * INVALID_ARGUMENT: std negative or not finite, cut not in (0, 16]; DTYPE: no float or block dtype, or n
 * no whole blocks. */
TFM_API enum tfm_status tfm_nn_init_truncated_normal(uint64_t seed, const char *stream, double std,
                                                     double cut, enum tfm_dtype dtype, size_t n,
                                                     void *values, struct tfm_error *err);

/* Gives `weights` every parameter and buffer of the graph that they do not have yet. Parameters by what
 * reads them first:
 *   weight of linear [out, in]   truncated normal, std sqrt(2 / (in + out)), cut 3
 *   table of embedding [V, D]    truncated normal, std 1, cut 3
 *   gamma of a norm              1
 *   beta, bias, relative bias    0
 * the stream is the parameter's name. Buffers as their layers said (tfm_graph_buffer_maker).
 * NOT_FOUND: nothing says how to make one (named); BUSY, NOMEM: as tfm_weights_set. */
TFM_API enum tfm_status tfm_nn_init_weights(const struct tfm_graph *graph, uint64_t seed,
                                            struct tfm_weights *weights, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
