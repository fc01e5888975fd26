/* SPDX-License-Identifier: MIT
 * Sizes of the data types and their conversion to and from float and double. */
#include <math.h>
#include <string.h>

#include <tfm/dtype.h>

#include "lib/core/half.h"

static const struct tfm_dtype_info infos[TFM_DTYPE_COUNT] = {
#define TFM_DTYPE(id, NAME, text, per_block, block_bytes, kind, age) \
    [TFM_DTYPE_##NAME] = {.name = (text),                            \
                          .block = (per_block),                      \
                          .bytes = (block_bytes),                    \
                          .dtype_class = TFM_DTYPE_##kind,           \
                          .minor = (age)},
#include <tfm/dtypes.def>
#undef TFM_DTYPE
};

const struct tfm_dtype_info *tfm_dtype_info(enum tfm_dtype dtype)
{
    return (unsigned)dtype < TFM_DTYPE_COUNT ? &infos[dtype] : NULL;
}

const char *tfm_dtype_name(enum tfm_dtype dtype)
{
    return (unsigned)dtype < TFM_DTYPE_COUNT ? infos[dtype].name : "?";
}

enum tfm_status tfm_dtype_parse(const char *name, enum tfm_dtype *dtype)
{
    for (int i = 0; i < TFM_DTYPE_COUNT; i++) {
        if (strcmp(name, infos[i].name) == 0) {
            *dtype = (enum tfm_dtype)i;
            return TFM_STATUS_OK;
        }
    }
    return TFM_STATUS_NOT_FOUND;
}

/* The quantizers of the format's own writers (ggml: quantize_row_q4_0_ref, _q4_1_ref, _q8_0_ref), to the bit:
 * float arithmetic, a multiplication with the inverse of the scale as it was before it became an f16, halves up
 * (q4) or away from zero (q8). What is not finite cannot be kept; it does no harm to memory. */
static void quantize(enum tfm_dtype dtype, const float *x, unsigned char *block)
{
    float low = x[0], high = x[0], peak = x[0], scale, from = 0, half = 8.5F;
    unsigned char *qs = block + 2;
    int q[32];

    for (int j = 1; j < 32; j++) {
        low = x[j] < low ? x[j] : low;
        high = x[j] > high ? x[j] : high;
        peak = fabsf(x[j]) > fabsf(peak) ? x[j] : peak;
    }
    if (dtype == TFM_DTYPE_Q8_0) {
        scale = fabsf(peak) / 127;
    } else if (dtype == TFM_DTYPE_Q4_1) {
        scale = (high - low) / 15;
        from = low;
        half = 0.5F;
        tfm__half_store(block + 2, low);
        qs = block + 4;
    } else {
        scale = peak / -8; /* the value of largest magnitude becomes -8 */
    }
    tfm__half_store(block, scale);
    const float inverse = scale != 0 ? 1 / scale : 0;
    for (int j = 0; j < 32; j++) {
        float v = (x[j] - from) * inverse;
        v = v != v ? 0 : v < -127 ? -127 : v > 127 ? 127 : v;
        const int r = dtype == TFM_DTYPE_Q8_0 ? (int)roundf(v) : (int)(v + half);
        q[j] = dtype == TFM_DTYPE_Q8_0 ? r : r < 0 ? 0 : r > 15 ? 15 : r;
    }
    if (dtype == TFM_DTYPE_Q8_0) {
        for (int j = 0; j < 32; j++)
            qs[j] = (unsigned char)(signed char)q[j];
    } else {
        for (int j = 0; j < 16; j++)
            qs[j] = (unsigned char)(q[j] | q[j + 16] << 4);
    }
}

/* Each reader and writer below is written once over the element type of the other side, so that
 * float and double cannot drift apart. */
#define REAL        float
#define NAMED(stem) stem##_f32
#include "lib/core/dtype_convert.h"
#undef REAL
#undef NAMED
#define REAL        double
#define NAMED(stem) stem##_f64
#include "lib/core/dtype_convert.h"
#undef REAL
#undef NAMED

void tfm_dtype_to_f64(enum tfm_dtype dtype, const void *src, size_t first, size_t n, double *dst)
{
    read_f64(dtype, src, first, n, dst);
}

void tfm_dtype_to_f32(enum tfm_dtype dtype, const void *src, size_t first, size_t n, float *dst)
{
    read_f32(dtype, src, first, n, dst);
}

void tfm_dtype_from_f64(enum tfm_dtype dtype, const double *src, void *dst, size_t first, size_t n)
{
    write_f64(dtype, src, dst, first, n);
}

void tfm_dtype_from_f32(enum tfm_dtype dtype, const float *src, void *dst, size_t first, size_t n)
{
    write_f32(dtype, src, dst, first, n);
}
