/* SPDX-License-Identifier: MIT
 * Tables of positions: rotary cos and sin, sinusoidal, and the buckets of relative distances. All are
 * made on the host, in f64, and rounded once; the layers of tfm/nn.h read them as buffers. */
#ifndef TFM_POSITIONS_H
#define TFM_POSITIONS_H

#include <stdint.h>

#include <tfm/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tfm_nn_position_kind {
#define TFM_NN_POSITION(id, NAME, name) TFM_NN_POSITION_##NAME = (id),
#include <tfm/nn_kinds.def>
};

enum tfm_nn_rope_scaling {
#define TFM_NN_ROPE_SCALING(id, NAME, name) TFM_NN_ROPE_SCALING_##NAME = (id),
#include <tfm/nn_kinds.def>
};

/* Frequencies f_i = theta^(-2i/dims), i in [0, dims/2), and what a longer context makes of them:
 *   NONE     f_i
 *   LINEAR   f_i / factor (Chen et al., arXiv:2306.15595)
 *   NTK      the f_i of the base theta factor^(dims / (dims - 2)): the first stays, the last is divided
 *            by factor
 *   YARN     f_i where a period fits original_context beta_fast times and more, f_i / factor where it
 *            fits beta_slow times and less, a ramp over i in between; cos and sin are multiplied by
 *            attn_factor (Peng et al., arXiv:2309.00071)
 *   LLAMA3   the same idea with a ramp over periods: f_i where a period is shorter than original_context /
 *            high_freq_factor, f_i / factor where longer than original_context / low_freq_factor
 *            (Grattafiori et al., arXiv:2407.21783)
 *   FACTORS  f_i / factors[i]; cos and sin are multiplied by attn_factor */
struct tfm_nn_rope {
    int64_t dims; /* r: how many of a head's d elements are rotated; even */
    double theta; /* 0 = 10000 */
    enum tfm_nn_rope_scaling scaling;
    double factor;                            /* LINEAR, NTK, YARN, LLAMA3: >= 1 */
    int64_t original_context;                 /* YARN, LLAMA3 */
    double low_freq_factor, high_freq_factor; /* LLAMA3; 0 = 1 and 4 */
    double beta_fast, beta_slow;              /* YARN; 0 = 32 and 1 */
    double attn_factor;                       /* YARN: 0 = 0.1 ln(factor) + 1; FACTORS: 0 = 1 */
    const float *factors;                     /* FACTORS: [dims/2], positive */
};

/* Frequencies [dims/2] in radians a position (NULL = only the check), and the factor on cos and sin.
 * INVALID_ARGUMENT: a field that the scaling reads is out of its range (named). */
TFM_API enum tfm_status tfm_nn_rope_frequencies(const struct tfm_nn_rope *rope, double *frequencies,
                                                double *attn_factor, struct tfm_error *err);
/* Rotary table [positions, dims/2, 2] of cos, sin.
 * INVALID_ARGUMENT: as above, or positions not positive; DTYPE: not F32, F64; NOMEM. */
TFM_API enum tfm_status tfm_nn_rope_table_scaled(enum tfm_dtype dtype, int64_t positions,
                                                 const struct tfm_nn_rope *rope, void *table,
                                                 struct tfm_error *err);
/* The same with FACTORS, or NONE when factors [dims/2] is NULL. theta must be positive. */
TFM_API enum tfm_status tfm_nn_rope_table(enum tfm_dtype dtype, int64_t positions, int64_t dims,
                                          double theta, const float *factors, void *table,
                                          struct tfm_error *err);

/* Sinusoidal table [positions, width], interleaved: element 2i of row p is sin(p 10000^(-2i/width)), 2i+1
 * the cos of the same angle; an odd width keeps the last sin (Vaswani et al., arXiv:1706.03762).
 *   [s c s c s]
 * INVALID_ARGUMENT: positions or width not positive; DTYPE: no plain float. */
TFM_API enum tfm_status tfm_nn_sinusoidal_table(enum tfm_dtype dtype, int64_t positions,
                                                int64_t width, void *table, struct tfm_error *err);

/* T5's buckets of relative distances (Raffel et al., arXiv:1910.10683, section 2.1): half of the buckets
 * of a direction hold one distance each, the rest grow by powers up to max_distance, and everything from
 * there on is the last. */
struct tfm_nn_relative {
    int64_t buckets;      /* e.g. 32 */
    int64_t max_distance; /* e.g. 128 */
    int bidirectional; /* 1 = half of the buckets are for keys after the query; 0 = bucket 0 is */
};
/* Bucket of the distance key - query, in [0, buckets). INVALID_ARGUMENT: fewer than 2 buckets a direction,
 * or a max_distance that does not pass the buckets of one distance each. */
TFM_API enum tfm_status tfm_nn_relative_bucket(const struct tfm_nn_relative *relative,
                                               int64_t distance, int32_t *bucket,
                                               struct tfm_error *err);
/* Table [2 max_distance + 1] of the buckets of the distances -max_distance .. max_distance. */
TFM_API enum tfm_status tfm_nn_relative_table(const struct tfm_nn_relative *relative,
                                              int32_t *table, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
