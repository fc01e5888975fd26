/* SPDX-License-Identifier: MIT
 * Data types of tensor elements: their sizes and their conversion to and from float.
 * Block types are laid out as in a GGUF v3 file (ggml: docs/gguf.md):
 *   q4_0  f16 d; u8 qs[16]          value j = (nibble - 8) * d
 *   q4_1  f16 d, f16 m; u8 qs[16]   value j = nibble * d + m
 *   q8_0  f16 d; i8 qs[32]          value j = qs[j] * d
 * low nibbles hold values 0..15 of a block, high nibbles 16..31. */
#ifndef TFM_DTYPE_H
#define TFM_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tfm_dtype {
#define TFM_DTYPE(id, NAME, name, block, bytes, class, minor) TFM_DTYPE_##NAME = (id),
#include <tfm/dtypes.def>
#undef TFM_DTYPE
    TFM_DTYPE_COUNT
};

enum tfm_dtype_class { TFM_DTYPE_FLOAT, TFM_DTYPE_INT, TFM_DTYPE_BLOCK };

struct tfm_dtype_info {
    const char *name;
    uint32_t block; /* values per block, 1 for plain types */
    uint32_t bytes; /* bytes per block */
    enum tfm_dtype_class dtype_class;
    uint32_t minor; /* ABI minor that brought it */
};

/* Facts about a dtype; NULL for a value that is none. */
TFM_API const struct tfm_dtype_info *tfm_dtype_info(enum tfm_dtype dtype);

/* Its name ("q4_1"); "?" for a value that is none. */
TFM_API const char *tfm_dtype_name(enum tfm_dtype dtype);

/* Dtype by name. NOT_FOUND (and *dtype untouched) when there is none of that name. */
TFM_API enum tfm_status tfm_dtype_parse(const char *name, enum tfm_dtype *dtype);

/* Converts n values from index `first` on (both multiples of the block) of an array of any dtype
 * to double / float. I32 converts too. Exact except f64 -> f32, which rounds to nearest even.
 * Unaligned src is fine. */
TFM_API void tfm_dtype_to_f64(enum tfm_dtype dtype, const void *src, size_t first, size_t n,
                              double *dst);
TFM_API void tfm_dtype_to_f32(enum tfm_dtype dtype, const void *src, size_t first, size_t n,
                              float *dst);

/* The other way: plain types round once, to nearest even (NaN stays NaN, overflow becomes
 * infinity); I32 truncates; block types quantize whole blocks, to the bit as the format's own writers do
 * (ggml: quantize_row_*_ref).
 * first and n are multiples of the block. */
TFM_API void tfm_dtype_from_f64(enum tfm_dtype dtype, const double *src, void *dst, size_t first,
                                size_t n);
TFM_API void tfm_dtype_from_f32(enum tfm_dtype dtype, const float *src, void *dst, size_t first,
                                size_t n);

#ifdef __cplusplus
}
#endif
#endif
