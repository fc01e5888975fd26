/* SPDX-License-Identifier: MIT
 * GGUF files that lie: faults of which GGUF readers are known to have died, and their neighbours. */
#include <stdlib.h>
#include <string.h>

#include "tests/llm/gguf_hostile.h"

#define DIMS(...)      \
    (const uint64_t[]) \
    {                  \
        __VA_ARGS__    \
    }
#define TWO(n) (UINT64_C(1) << (n))

/* numbers of tensor types in the file */
enum { F32 = 0, F16 = 1, Q4_1 = 3, Q5_0 = 6, Q8_0 = 8, Q4_K = 12, Q6_K = 14, I8 = 24 };

/* ---- header ---- */
static void foreign_magic(struct gguf_builder *b)
{
    gguf_builder_magic(b, "PK\3\4");
}
static void version_0(struct gguf_builder *b)
{
    gguf_builder_version(b, 0);
}
static void version_1(struct gguf_builder *b)
{
    gguf_builder_version(b, 1);
}
static void version_2(struct gguf_builder *b)
{
    gguf_builder_version(b, 2);
}
static void version_4(struct gguf_builder *b)
{
    gguf_builder_version(b, 4);
}
static void version_swapped(struct gguf_builder *b)
{
    gguf_builder_version(b, 0x03000000);
}
static void pairs_2_60(struct gguf_builder *b)
{
    gguf_builder_pair_count(b, TWO(60) + 1);
}
static void pairs_all_ones(struct gguf_builder *b)
{
    gguf_builder_pair_count(b, UINT64_MAX);
}
static void pairs_one_more(struct gguf_builder *b)
{
    gguf_builder_bool(b, "x", 1);
    gguf_builder_pair_count(b, 2);
}
static void tensors_2_61(struct gguf_builder *b)
{
    gguf_builder_tensor_count(b, TWO(61));
}
static void tensors_one_more(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "a", 1, DIMS(1), F32, NULL, 4);
    gguf_builder_tensor_count(b, 2);
}
static void tensors_into_data(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "a", 1, DIMS(25), F32, NULL, 100);
    gguf_builder_tensor_count(b, 2);
}

/* ---- metadata ---- */
/* A pair "x" of that type, then `value` of `size` bytes. */
static void raw(struct gguf_builder *b, uint32_t type, const struct gguf_bytes *value)
{
    struct gguf_bytes pair = {NULL, 0, 0};

    gguf_bytes_string(&pair, "x", 1);
    gguf_bytes_number(&pair, type, 4);
    gguf_bytes_put(&pair, value->data, value->size);
    gguf_builder_raw_pair(b, pair.data, pair.size);
    free(pair.data);
    free(value->data);
}
static void raw_array(struct gguf_builder *b, uint32_t type, uint64_t count, size_t bytes)
{
    struct gguf_bytes value = {NULL, 0, 0};

    gguf_bytes_number(&value, type, 4);
    gguf_bytes_number(&value, count, 8);
    gguf_bytes_put(&value, NULL, bytes);
    raw(b, TFM_GGUF_ARRAY, &value);
}
static void raw_string(struct gguf_builder *b, uint64_t size, size_t bytes)
{
    struct gguf_bytes value = {NULL, 0, 0};

    gguf_bytes_number(&value, size, 8);
    gguf_bytes_put(&value, NULL, bytes);
    raw(b, TFM_GGUF_STRING, &value);
}
static void string_2_63(struct gguf_builder *b)
{
    raw_string(b, TWO(63), 100);
}
static void string_all_ones(struct gguf_builder *b)
{
    raw_string(b, UINT64_MAX, 100);
}
static void string_one_more(struct gguf_builder *b)
{
    raw_string(b, 101, 100);
}
static void string_too_long(struct gguf_builder *b)
{
    raw_string(b, (16 << 20) + 1, (16 << 20) + 1);
}
static void string_longest(struct gguf_builder *b)
{
    raw_string(b, 16 << 20, 16 << 20);
}
static void key_of(struct gguf_builder *b, size_t size)
{
    char *key = malloc(size + 1);

    if (!key)
        abort();
    memset(key, 'k', size);
    key[size] = '\0';
    gguf_builder_bool(b, key, 1);
    free(key);
}
static void key_empty(struct gguf_builder *b)
{
    gguf_builder_bool(b, "", 1);
}
static void key_longest(struct gguf_builder *b)
{
    key_of(b, 64 << 10);
}
static void key_too_long(struct gguf_builder *b)
{
    key_of(b, (64 << 10) + 1);
}
static void key_twice(struct gguf_builder *b)
{
    gguf_builder_bool(b, "a.key", 1);
    gguf_builder_bool(b, "other", 1);
    gguf_builder_string(b, "a.key", "x");
}
static void key_escape(struct gguf_builder *b)
{
    gguf_builder_bool(b, "\033[2J", 2);
}
static void type_13(struct gguf_builder *b)
{
    struct gguf_bytes value = {NULL, 0, 0};
    gguf_bytes_number(&value, 0, 8);
    raw(b, 13, &value);
}
static void bool_2(struct gguf_builder *b)
{
    gguf_builder_bool(b, "flag", 2);
}
static void bool_array_2(struct gguf_builder *b)
{
    const unsigned char flags[] = {0, 1, 2};
    gguf_builder_array(b, "flags", TFM_GGUF_BOOL, flags, 3);
}
static void array_2_60(struct gguf_builder *b)
{
    raw_array(b, TFM_GGUF_U64, TWO(60), 100);
}
static void array_2_61(struct gguf_builder *b) /* times 8 is 0 */
{
    raw_array(b, TFM_GGUF_U64, TWO(61), 100);
}
static void array_2_63(struct gguf_builder *b)
{
    raw_array(b, TFM_GGUF_U8, TWO(63), 8);
}
static void array_one_more(struct gguf_builder *b)
{
    raw_array(b, TFM_GGUF_F64, 3, 23);
}
static void array_type_13(struct gguf_builder *b)
{
    raw_array(b, 13, 1, 100);
}
static void array_of_arrays(struct gguf_builder *b)
{
    raw_array(b, TFM_GGUF_ARRAY, 1, 100);
}
static void strings_2_60(struct gguf_builder *b)
{
    raw_array(b, TFM_GGUF_STRING, TWO(60), 100);
}
static void strings_one_more(struct gguf_builder *b) /* eleven empty ones, then 4 bytes */
{
    raw_array(b, TFM_GGUF_STRING, 11, 84);
}

/* ---- alignment ---- */
static void alignment_of(struct gguf_builder *b, uint32_t alignment)
{
    gguf_builder_uint(b, "general.alignment", TFM_GGUF_U32, alignment);
    gguf_builder_tensor(b, "a", 1, DIMS(1), F32, NULL, 4);
}
static void alignment_0(struct gguf_builder *b)
{
    alignment_of(b, 0);
}
static void alignment_3(struct gguf_builder *b)
{
    alignment_of(b, 3);
}
static void alignment_2_17(struct gguf_builder *b)
{
    alignment_of(b, 1 << 17);
}
static void alignment_2_31(struct gguf_builder *b)
{
    alignment_of(b, UINT32_C(1) << 31);
}
static void alignment_string(struct gguf_builder *b)
{
    gguf_builder_string(b, "general.alignment", "32");
}
static void alignment_u64(struct gguf_builder *b)
{
    gguf_builder_uint(b, "general.alignment", TFM_GGUF_U64, 32);
}
static void alignment_1(struct gguf_builder *b)
{
    gguf_builder_alignment(b, 1);
    gguf_builder_tensor(b, "a", 1, DIMS(3), I8, NULL, 3);
    gguf_builder_tensor(b, "b", 1, DIMS(3), F32, NULL, 12);
}
static void alignment_65536(struct gguf_builder *b)
{
    gguf_builder_alignment(b, 65536);
    gguf_builder_tensor(b, "a", 1, DIMS(3), I8, NULL, 3);
    gguf_builder_tensor(b, "b", 1, DIMS(3), F32, NULL, 12);
}

/* ---- shapes ---- */
static void product_2_64(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 2, DIMS(TWO(32), TWO(32)), F16, 0, 64);
}
static void product_near_2_64(struct gguf_builder *b) /* 2^64 - 64 bytes, then 64 more */
{
    gguf_builder_lie(b, "a", 3, DIMS(16, TWO(29) - 1, TWO(29) + 1), F32, 0, 0);
    gguf_builder_lie(b, "small", 1, DIMS(16), F32, UINT64_MAX - 63, 64);
}
static void product_near_2_64_small(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 3, DIMS(16, TWO(29) - 1, TWO(29) + 1), F32, 0, 0);
    gguf_builder_lie(b, "small", 1, DIMS(1), F32, UINT64_MAX - 63, 64);
}
static void bytes_2_64(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 1, DIMS(TWO(62)), F32, 0, 64);
}
static void blocks_2_64(struct gguf_builder *b) /* 2^57 blocks of 20 bytes */
{
    gguf_builder_lie(b, "a", 2, DIMS(32, TWO(60)), Q4_1, 0, 64);
}
static void padding_wraps(struct gguf_builder *b) /* 2^64 - 2 bytes */
{
    gguf_builder_lie(b, "a", 1, DIMS(INT64_MAX), F16, 0, 64);
}
static void sum_wraps(struct gguf_builder *b) /* 2^63 - 4 bytes twice */
{
    gguf_builder_lie(b, "a", 1, DIMS(TWO(61) - 1), F32, 0, 64);
    gguf_builder_lie(b, "b", 1, DIMS(TWO(61) - 1), F32, TWO(63), 64);
}
static void dim_2_63(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 1, DIMS(TWO(63)), I8, 0, 64);
}
static void dims_0(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 0, DIMS(1), F32, 0, 64);
}
static void dims_5(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 5, DIMS(1, 1, 1, 1, 1), F32, 0, 64);
}
static void dims_all_ones(struct gguf_builder *b)
{
    gguf_builder_lie(b, "a", 1, DIMS(UINT64_C(0xffffffff) << 32 | 1), F32, 0, 64);
}
static void zero_0_6(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "empty", 2, DIMS(0, 6), F32, NULL, 0);
    gguf_builder_tensor(b, "a", 1, DIMS(1), F32, NULL, 4);
}
static void zero_6_0_2(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "empty", 3, DIMS(6, 0, 2), F32, NULL, 0);
}
static void zero_beside_huge(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "empty", 4, DIMS(0, TWO(62), TWO(62), TWO(62)), F32, NULL, 0);
}
static void q4_1_of_48(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "blk.0.ffn_up.weight", 2, DIMS(48, 2), Q4_1, NULL, 60);
}
static void q4_k_of_576(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "blk.0.attn_q.weight", 2, DIMS(576, 4), Q4_K, NULL, 1296);
}
static void q4_k_m_mixture(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "token_embd.weight", 2, DIMS(576, 2), Q8_0, NULL, 18 * 34 * 2);
    gguf_builder_tensor(b, "blk.0.attn_q.weight", 2, DIMS(576, 2), Q5_0, NULL, 18 * 22 * 2);
    gguf_builder_tensor(b, "blk.0.ffn_down.weight", 2, DIMS(1536, 2), Q4_K, NULL, 6 * 144 * 2);
    gguf_builder_tensor(b, "blk.1.ffn_down.weight", 2, DIMS(1536, 2), Q6_K, NULL, 6 * 210 * 2);
    gguf_builder_tensor(b, "output_norm.weight", 1, DIMS(576), F32, NULL, 576 * 4);
}

/* ---- names, types, places ---- */
static void name_empty(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "", 1, DIMS(1), F32, NULL, 4);
}
static void name_of_64(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1,
                        DIMS(1), F32, NULL, 4);
}
static void name_twice(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "again", 1, DIMS(1), F32, NULL, 4);
    gguf_builder_tensor(b, "other", 1, DIMS(1), F32, NULL, 4);
    gguf_builder_tensor(b, "again", 1, DIMS(2), F32, NULL, 8);
}
static void type_4(struct gguf_builder *b) /* a type that was taken out of the format */
{
    gguf_builder_tensor(b, "a", 1, DIMS(32), 4, NULL, 20);
}
static void type_1000(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "a", 1, DIMS(32), 1000, NULL, 20);
}
static void type_negative(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "a", 1, DIMS(32), UINT32_MAX, NULL, 20);
}
static void offset_of(struct gguf_builder *b, uint64_t offset)
{
    gguf_builder_tensor(b, "a", 1, DIMS(8), F32, NULL, 32);
    gguf_builder_lie(b, "b", 1, DIMS(8), F32, offset, 64);
}
static void offset_overlaps(struct gguf_builder *b)
{
    offset_of(b, 0);
}
static void offset_unaligned(struct gguf_builder *b)
{
    offset_of(b, 36);
}
static void offset_hole(struct gguf_builder *b)
{
    offset_of(b, 64);
}
static void offset_past_end(struct gguf_builder *b)
{
    offset_of(b, TWO(40));
}
static void offset_all_ones(struct gguf_builder *b)
{
    offset_of(b, UINT64_MAX);
}
static void data_missing(struct gguf_builder *b)
{
    gguf_builder_tensor(b, "a", 1, DIMS(8), F32, NULL, 32);
    gguf_builder_lie(b, "half", 1, DIMS(8), F32, 32, 17);
}

const struct gguf_hostile gguf_hostile[] = {
    {"another format", foreign_magic, {"header", "not a GGUF"}},
    {"version 0", version_0, {"header", "version 0"}},
    {"version 1 has other lengths", version_1, {"header", "version 1"}},
    {"version 2 is fine", version_2, {NULL, NULL}},
    {"a later version", version_4, {"header", "version 4"}},
    {"big-endian", version_swapped, {"header", "big-endian"}},
    {"count of keys times size wraps", pairs_2_60, {"header", "1152921504606846977 metadata keys"}},
    {"count of keys 2^64-1", pairs_all_ones, {"header", "18446744073709551615 metadata keys"}},
    {"one key too many promised", pairs_one_more, {"header", "2 metadata keys"}},
    {"A23: count of tensors 2^61", tensors_2_61, {"header", "2305843009213693952 tensors"}},
    {"one tensor too many promised", tensors_one_more, {"header", "2 tensors"}},
    {"table runs into the data", tensors_into_data, {"tensor 1", "name is empty"}},
    {"A23: string of 2^63 bytes", string_2_63, {"key 'x'", "9223372036854775808"}},
    {"length + 1 wraps", string_all_ones, {"key 'x'", "18446744073709551615"}},
    {"string one byte past the end", string_one_more, {"key 'x'", "101 bytes"}},
    {"string above 16 MiB", string_too_long, {"key 'x'", "longer than 16777216"}},
    {"string of 16 MiB is fine", string_longest, {NULL, NULL}},
    {"A24: empty key", key_empty, {"key 0", "empty"}},
    {"key of 64 KiB is fine", key_longest, {NULL, NULL}},
    {"key above 64 KiB", key_too_long, {"key 0", "65537 bytes is longer than 65536"}},
    {"key twice", key_twice, {"key 'a.key'", "twice"}},
    {"key that clears the terminal", key_escape, {"key '\\x1b[2J'", "bool"}},
    {"value of no type", type_13, {"key 'x'", "type 13"}},
    {"bool of value 2", bool_2, {"key 'flag'", "value 2"}},
    {"bool of value 2 in an array", bool_array_2, {"key 'flags'", "value 2"}},
    {"A23: array of 2^60 numbers", array_2_60, {"key 'x'", "1152921504606846976 elements"}},
    {"count times size is 0", array_2_61, {"key 'x'", "2305843009213693952 elements"}},
    {"2^63 elements in a tiny file", array_2_63, {"key 'x'", "9223372036854775808 elements"}},
    {"array one byte past the end", array_one_more, {"key 'x'", "3 elements of type f64"}},
    {"array of no type", array_type_13, {"key 'x'", "element type 13"}},
    {"arrays in arrays, for recursion", array_of_arrays, {"key 'x'", "array of arrays"}},
    {"2^60 strings", strings_2_60, {"key 'x'", "1152921504606846976 elements"}},
    {"last string past the end", strings_one_more, {"key 'x'", "11 elements of type string"}},
    {"A24: alignment 0", alignment_0, {"key 'general.alignment'", "it is 0"}},
    {"A24: alignment 3", alignment_3, {"key 'general.alignment'", "it is 3"}},
    {"alignment above 65536", alignment_2_17, {"key 'general.alignment'", "it is 131072"}},
    {"alignment 2^31", alignment_2_31, {"key 'general.alignment'", "it is 2147483648"}},
    {"A24: alignment as string", alignment_string, {"key 'general.alignment'", "type string"}},
    {"alignment as u64", alignment_u64, {"key 'general.alignment'", "type u64"}},
    {"alignment 1 is fine", alignment_1, {NULL, NULL}},
    {"alignment 65536 is fine", alignment_65536, {NULL, NULL}},
    {"A23: f16 [2^32, 2^32]", product_2_64, {"tensor 'a'", "overflows at dimension 1"}},
    {"A23: sum wraps at a small tensor", product_near_2_64, {"tensor 'small'", "overflow"}},
    {"A23: sum just below 2^64", product_near_2_64_small, {"tensor 'a'", "end"}},
    {"bytes of 2^62 floats wrap", bytes_2_64, {"tensor 'a'", "size overflows"}},
    {"bytes of blocks wrap", blocks_2_64, {"tensor 'a'", "overflows"}},
    {"rounding up wraps to 0", padding_wraps, {"tensor 'a'", "overflow"}},
    {"sum of rounded sizes wraps", sum_wraps, {"tensor 'b'", "overflow"}},
    {"dimension 2^63, negative as i64", dim_2_63, {"tensor 'a'", "dimension 0"}},
    {"A24: no dimensions", dims_0, {"tensor 'a'", "0 dimensions"}},
    {"A24: five dimensions", dims_5, {"tensor 'a'", "5 dimensions"}},
    {"negative dimension", dims_all_ones, {"tensor 'a'", "dimension 0"}},
    {"A24: dims [0, 6] are an empty tensor", zero_0_6, {NULL, NULL}},
    {"A24: dims [6, 0, 2] are an empty tensor", zero_6_0_2, {NULL, NULL}},
    {"a zero hides no huge product", zero_beside_huge, {NULL, NULL}},
    {"A26: Q4_1 of 48 columns", q4_1_of_48, {"'blk.0.ffn_up.weight'", "48 values of type Q4_1"}},
    {"A26: Q4_K of 576 columns", q4_k_of_576, {"'blk.0.attn_q.weight'", "576 values of type Q4_K"}},
    {"A26: the mixture of a Q4_K_M file is fine", q4_k_m_mixture, {NULL, NULL}},
    {"tensor without a name", name_empty, {"tensor 0", "empty"}},
    {"tensor name of 64 bytes", name_of_64, {"tensor 0", "64 bytes is longer than 63"}},
    {"tensor name twice", name_twice, {"tensor 'again'", "twice"}},
    {"A26: tensor of a type that is gone", type_4, {"tensor 'a'", "type 4"}},
    {"A26: tensor of no type", type_1000, {"tensor 'a'", "type 1000"}},
    {"tensor type -1", type_negative, {"tensor 'a'", "type 4294967295"}},
    {"tensors overlap", offset_overlaps, {"tensor 'b'", "offset 0, must be 32"}},
    {"offset not aligned", offset_unaligned, {"tensor 'b'", "offset 36, must be 32"}},
    {"hole between tensors", offset_hole, {"tensor 'b'", "offset 64, must be 32"}},
    {"offset past the end", offset_past_end, {"tensor 'b'", "offset 1099511627776"}},
    {"offset 2^64-1", offset_all_ones, {"tensor 'b'", "offset 18446744073709551615"}},
    {"A25: data cut off", data_missing, {"tensor 'half'", "15 bytes are missing"}},
};

const size_t gguf_hostile_count = sizeof gguf_hostile / sizeof *gguf_hostile;
