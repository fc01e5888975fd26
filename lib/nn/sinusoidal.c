/* SPDX-License-Identifier: MIT
 * Sinusoidal table [P, D], interleaved sin, cos, sin, cos; an odd D keeps the last sin
 * (Vaswani et al., arXiv:1706.03762). */
#include <math.h>

#include <tfm/positions.h>

enum tfm_status tfm_nn_sinusoidal_table(enum tfm_dtype dtype, int64_t positions, int64_t width,
                                        void *table, struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);

    tfm_error_clear(err);
    if (!info || info->dtype_class != TFM_DTYPE_FLOAT)
        return tfm_error_set(err, TFM_STATUS_DTYPE, "sinusoidal table: %s is no float",
                             tfm_dtype_name(dtype));
    if (positions <= 0 || width <= 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "sinusoidal table: [%lld, %lld]; both must be positive",
                             (long long)positions, (long long)width);
    for (int64_t k = 0; k < width; k++) {
        const double frequency = pow(10000, -(double)(k - k % 2) / (double)width);
        for (int64_t p = 0; p < positions; p++) {
            const double angle = (double)p * frequency;
            const double value = k % 2 ? cos(angle) : sin(angle);
            tfm_dtype_from_f64(dtype, &value, table, (size_t)(p * width + k), 1);
        }
    }
    return TFM_STATUS_OK;
}
