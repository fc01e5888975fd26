/* SPDX-License-Identifier: MIT
 * Rotary table [P, r/2, 2]: cos and sin of p * theta^(-2i/r) / factor_i, in f64, rounded once.
 * Scaling of positions lives here alone: the rope op only reads the table.
 * (Su et al., arXiv:2104.09864; factors as GGUF's rope_freqs) */
#include <math.h>

#include <tfm/nn.h>

enum tfm_status tfm_nn_rope_table(enum tfm_dtype dtype, int64_t positions, int64_t dims,
                                  double theta, const float *factors, void *table,
                                  struct tfm_error *err)
{
    tfm_error_clear(err);
    if (dtype != TFM_DTYPE_F32 && dtype != TFM_DTYPE_F64)
        return tfm_error_set(err, TFM_STATUS_DTYPE, "rope table: %s, but it is f32 or f64",
                             tfm_dtype_name(dtype));
    if (dims <= 0 || dims % 2 != 0 || positions <= 0 || !(theta > 0) || isinf(theta))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "rope table: %lld dims (must be even and positive), %lld positions, "
                             "theta %g (must be positive)",
                             (long long)dims, (long long)positions, theta);
    for (int64_t i = 0; factors && i < dims / 2; i++) {
        if (!(factors[i] > 0) || isinf(factors[i]))
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "rope table: factor %lld is %g, but factors are positive",
                                 (long long)i, (double)factors[i]);
    }
    for (int64_t i = 0; i < dims / 2; i++) {
        const double frequency =
            pow(theta, -2.0 * (double)i / (double)dims) / (factors ? (double)factors[i] : 1.0);
        for (int64_t p = 0; p < positions; p++) {
            const double angle = (double)p * frequency;
            const double pair[2] = {cos(angle), sin(angle)};
            tfm_dtype_from_f64(dtype, pair, table, (size_t)(p * dims + 2 * i), 2);
        }
    }
    return TFM_STATUS_OK;
}
