/* SPDX-License-Identifier: MIT
 * Included twice by dtype.c, with REAL = float and REAL = double: arrays of any dtype to REAL and
 * back. No include guard on purpose. */

static void NAMED(read_block)(enum tfm_dtype dtype, const unsigned char *block, REAL *dst)
{
    const REAL d = (REAL)tfm__half_load(block);

    if (dtype == TFM_DTYPE_Q8_0) {
        for (int j = 0; j < 32; j++)
            dst[j] = (REAL)(signed char)block[2 + j] * d;
        return;
    }
    const REAL m = dtype == TFM_DTYPE_Q4_1 ? (REAL)tfm__half_load(block + 2) : (REAL)-8 * d;
    const unsigned char *qs = block + (dtype == TFM_DTYPE_Q4_1 ? 4 : 2);
    for (int j = 0; j < 16; j++) {
        dst[j] = (REAL)(qs[j] & 15) * d + m;
        dst[j + 16] = (REAL)(qs[j] >> 4) * d + m;
    }
}

static void NAMED(read)(enum tfm_dtype dtype, const void *src, size_t first, size_t n, REAL *dst)
{
    const struct tfm_dtype_info *info = &infos[dtype];
    const unsigned char *p = (const unsigned char *)src + first / info->block * info->bytes;

    switch (dtype) {
    case TFM_DTYPE_F32:
        for (size_t i = 0; i < n; i++) {
            float v;
            memcpy(&v, p + 4 * i, 4);
            dst[i] = v;
        }
        break;
    case TFM_DTYPE_F64:
        for (size_t i = 0; i < n; i++) {
            double v;
            memcpy(&v, p + 8 * i, 8);
            dst[i] = (REAL)v;
        }
        break;
    case TFM_DTYPE_I32:
        for (size_t i = 0; i < n; i++) {
            int32_t v;
            memcpy(&v, p + 4 * i, 4);
            dst[i] = (REAL)v;
        }
        break;
    case TFM_DTYPE_F16:
        for (size_t i = 0; i < n; i++)
            dst[i] = (REAL)tfm__half_load(p + 2 * i);
        break;
    case TFM_DTYPE_BF16:
        for (size_t i = 0; i < n; i++)
            dst[i] = (REAL)tfm__bf16_load(p + 2 * i);
        break;
    case TFM_DTYPE_Q4_0:
    case TFM_DTYPE_Q4_1:
    case TFM_DTYPE_Q8_0:
        for (size_t i = 0; i + 32 <= n; i += 32, p += info->bytes)
            NAMED(read_block)(dtype, p, dst + i);
        break;
    case TFM_DTYPE_COUNT:
        break;
    }
}

static void NAMED(write_block)(enum tfm_dtype dtype, const REAL *src, unsigned char *block)
{
    float x[32];

    for (int j = 0; j < 32; j++)
        x[j] = (float)src[j];
    quantize(dtype, x, block);
}

static void NAMED(write)(enum tfm_dtype dtype, const REAL *src, void *dst, size_t first, size_t n)
{
    const struct tfm_dtype_info *info = &infos[dtype];
    unsigned char *p = (unsigned char *)dst + first / info->block * info->bytes;

    switch (dtype) {
    case TFM_DTYPE_F32:
        for (size_t i = 0; i < n; i++) {
            const float v = (float)src[i];
            memcpy(p + 4 * i, &v, 4);
        }
        break;
    case TFM_DTYPE_F64:
        for (size_t i = 0; i < n; i++) {
            const double v = src[i];
            memcpy(p + 8 * i, &v, 8);
        }
        break;
    case TFM_DTYPE_I32:
        for (size_t i = 0; i < n; i++) {
            /* out of range and NaN would be undefined behaviour in C: they clamp, NaN to 0 */
            const double d = src[i];
            const int32_t v = d >= 2147483647.0   ? INT32_MAX
                              : d > -2147483648.0 ? (int32_t)d
                              : d == d            ? INT32_MIN
                                                  : 0;
            memcpy(p + 4 * i, &v, 4);
        }
        break;
    case TFM_DTYPE_F16:
        for (size_t i = 0; i < n; i++)
            tfm__half_store(p + 2 * i, (double)src[i]);
        break;
    case TFM_DTYPE_BF16:
        for (size_t i = 0; i < n; i++)
            tfm__bf16_store(p + 2 * i, (double)src[i]);
        break;
    case TFM_DTYPE_Q4_0:
    case TFM_DTYPE_Q4_1:
    case TFM_DTYPE_Q8_0:
        for (size_t i = 0; i + 32 <= n; i += 32, p += info->bytes)
            NAMED(write_block)(dtype, src + i, p);
        break;
    case TFM_DTYPE_COUNT:
        break;
    }
}
