/* SPDX-License-Identifier: MIT
 * What the parts of the GGUF reader share: the opened file and its metadata pairs. */
#ifndef TFM__LLM_GGUF_INTERNAL_H
#define TFM__LLM_GGUF_INTERNAL_H

#include <string.h>

#include <tfm/gguf.h>
#include <tfm/nn.h>
#include <tfm/safetensors.h>

#include "lib/core/map.h"

/* One metadata pair; everything points into the file. */
struct tfm__gguf_pair {
    struct tfm_text key;
    enum tfm_gguf_type type;
    union {
        const unsigned char *number; /* little-endian, maybe unaligned */
        struct tfm_text text;
        struct tfm_gguf_array array;
    } value;
};

struct tfm_gguf {
    char *name; /* path, or what the caller called the memory */
    const unsigned char *base;
    size_t size;
    struct tfm__map map; /* base and size; not mapped when somebody else owns the memory */
    struct tfm__gguf_pair *pairs;
    const struct tfm__gguf_pair **pairs_by_key; /* sorted */
    size_t n_pairs;
    struct tfm_gguf_tensor *tensors;
    const struct tfm_gguf_tensor **tensors_by_name; /* sorted */
    size_t n_tensors;

    /* ---- of what is only read as if it were a file: a model folder, or a model in memory ---- */
    int halves;                     /* the rotary pairs of q and k are the halves of a head */
    void *owned;                    /* the memory at base */
    char (*names)[64];              /* [n_tensors] */
    struct tfm_safetensors *folder; /* where the tensors are; NULL = no folder */
    const char **labels;            /* [n_tensors] the names in the folder, for errors */
    struct tfm_nn_decoder
        *decoder; /* of a folder of our own kind, whose tensors have our names; NULL = a Llama's */
};

/* Room for n tensors and their names, in place of those that the file had: fill them, count them in n_tensors, then
 * tfm__gguf_sort, and they are found by name. Returns 1 when out of memory. */
int tfm__gguf_make_room(struct tfm_gguf *gguf, size_t n);
void tfm__gguf_sort(struct tfm_gguf *gguf);
/* ggml's number of a type, UINT32_MAX for a type without. */
uint32_t tfm__gguf_number(enum tfm_dtype dtype);

/* Fills pairs and tensors from base[0, size). On failure the caller frees what is there. */
enum tfm_status tfm__gguf_parse(struct tfm_gguf *gguf, struct tfm_error *err);

/* NULL when there is no such key. */
const struct tfm__gguf_pair *tfm__gguf_pair(const struct tfm_gguf *gguf, struct tfm_text key);

/* Name of a value type, "?" for a number that is none; bytes of a number type, 0 for string and
 * array. */
const char *tfm__gguf_type_name(uint32_t type);
size_t tfm__gguf_type_bytes(uint32_t type);

/* Order of keys and names: bytes, then length. */
static inline int tfm__text_compare(struct tfm_text a, struct tfm_text b)
{
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Unsigned little-endian number of `bytes` <= 8 bytes. */
static inline uint64_t tfm__le_load(const unsigned char *p, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

#endif
