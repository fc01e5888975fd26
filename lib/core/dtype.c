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
