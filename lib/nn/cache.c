/* SPDX-License-Identifier: MIT
 * Cells leave a KV cache: the later ones move down, and their keys, which are rotated to their positions,
 * turn back by as many. R(-n) R(p) k = R(p - n) k, so repeated moves add up. */
#include <tfm/cache.h>

#include <math.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/nn/scope.h"

/* One cache, [slots, cells, G, d], on the host. */
struct cache {
    const struct tfm_tensor *tensor;
    unsigned char *data;
    size_t bytes, cell_bytes;
};

static enum tfm_status find(const struct tfm_graph *graph, const char *name, const char *leaf,
                            struct cache *cache, struct tfm_error *err)
{
    struct tfm__name buffer;

    cache->tensor = tfm_graph_find(graph, tfm__name_join(&buffer, name, leaf));
    if (!cache->tensor || cache->tensor->kind != TFM_TENSOR_STATE || cache->tensor->rank != 4)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "%s: the layer has no cache \"%s\"", name,
                             tfm__name_join(&buffer, name, leaf));
    const int64_t *shape = cache->tensor->shape; /* the graph checked that no product overflows */
    cache->cell_bytes = (size_t)(shape[2] * shape[3]) * tfm_dtype_info(cache->tensor->dtype)->bytes;
    cache->bytes = (size_t)(shape[0] * shape[1]) * cache->cell_bytes;
    return TFM_STATUS_OK;
}

static enum tfm_status check(const char *name, const struct cache *k,
                             const struct tfm_nn_cache_drop *drop, struct tfm_error *err)
{
    const int64_t *shape = k->tensor->shape;

    if (drop->slot < 0 || drop->slot >= shape[0])
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "%s: slot %lld, the cache has %lld",
                             name, (long long)drop->slot, (long long)shape[0]);
    if (drop->used < 0 || drop->used > shape[1])
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: %lld cells in use, the cache holds %lld", name,
                             (long long)drop->used, (long long)shape[1]);
    if (drop->first < 0 || drop->n < 0 || drop->first > drop->used ||
        drop->n > drop->used - drop->first)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: %lld cells from %lld on cannot go, %lld are in use", name,
                             (long long)drop->n, (long long)drop->first, (long long)drop->used);
    if (drop->rope && drop->rope->dims > shape[3])
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: %lld elements are rotated, but keys have %lld", name,
                             (long long)drop->rope->dims, (long long)shape[3]);
    return TFM_STATUS_OK;
}

/* Cells behind the gap, in the slot: where they begin and how many they are. */
static unsigned char *moved(const struct cache *cache, const struct tfm_nn_cache_drop *drop,
                            int64_t from)
{
    return cache->data + (size_t)(drop->slot * cache->tensor->shape[1] + from) * cache->cell_bytes;
}

static void move_down(const struct cache *cache, const struct tfm_nn_cache_drop *drop)
{
    memmove(moved(cache, drop, drop->first), moved(cache, drop, drop->first + drop->n),
            (size_t)(drop->used - drop->first - drop->n) * cache->cell_bytes);
}

/* Turns one pair of a key by -n positions. */
static void turn(enum tfm_dtype dtype, void *keys, size_t first, size_t second, double angle)
{
    const double c = cos(angle), s = sin(angle);
    double a, b;

    tfm_dtype_to_f64(dtype, keys, first, 1, &a);
    tfm_dtype_to_f64(dtype, keys, second, 1, &b);
    const double turned[2] = {a * c - b * s, a * s + b * c};
    tfm_dtype_from_f64(dtype, &turned[0], keys, first, 1);
    tfm_dtype_from_f64(dtype, &turned[1], keys, second, 1);
}

static enum tfm_status turn_back(const struct cache *k, const struct tfm_nn_cache_drop *drop,
                                 struct tfm_error *err)
{
    const int64_t pairs = drop->rope->dims / 2, d = k->tensor->shape[3];
    const int64_t keys = (drop->used - drop->first - drop->n) * k->tensor->shape[2];
    unsigned char *memory = moved(k, drop, drop->first);
    double attn_factor, *f = tfm__alloc_array((size_t)pairs, sizeof *f);

    if (!f)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "cache: out of memory");
    enum tfm_status status = tfm_nn_rope_frequencies(drop->rope, f, &attn_factor, err);
    for (int64_t key = 0; status == TFM_STATUS_OK && key < keys; key++) {
        for (int64_t i = 0; i < pairs; i++) {
            const int halves = drop->style == TFM_ROPE_HALVES;
            const int64_t first = key * d + (halves ? i : 2 * i);
            turn(k->tensor->dtype, memory, (size_t)first, (size_t)(first + (halves ? pairs : 1)),
                 -(double)drop->n * f[i]);
        }
    }
    tfm__free(f);
    return status;
}

static enum tfm_status load(struct tfm_exec *exec, struct cache *cache, struct tfm_error *err)
{
    cache->data = tfm__alloc(cache->bytes);
    if (!cache->data)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "cache: out of memory for \"%s\"",
                             cache->tensor->name);
    return tfm_exec_state_read(exec, cache->tensor->name, cache->data, cache->bytes, err);
}

enum tfm_status tfm_nn_cache_drop(struct tfm_exec *exec, const struct tfm_graph *graph,
                                  const char *name, const struct tfm_nn_cache_drop *drop,
                                  struct tfm_error *err)
{
    struct cache k = {0}, v = {0};
    double attn_factor;
    enum tfm_status status;

    tfm_error_clear(err);
    status = find(graph, name, "k_cache", &k, err);
    if (status == TFM_STATUS_OK)
        status = find(graph, name, "v_cache", &v, err);
    if (status == TFM_STATUS_OK)
        status = check(name, &k, drop, err);
    if (status == TFM_STATUS_OK && drop->rope)
        status = tfm_nn_rope_frequencies(drop->rope, NULL, &attn_factor, err);
    if (status != TFM_STATUS_OK || drop->n == 0)
        return status;
    status = load(exec, &k, err);
    if (status == TFM_STATUS_OK)
        status = load(exec, &v, err);
    if (status != TFM_STATUS_OK)
        goto done;
    move_down(&k, drop);
    move_down(&v, drop);
    if (drop->rope)
        status = turn_back(&k, drop, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_state_write(exec, k.tensor->name, k.data, k.bytes, err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_state_write(exec, v.tensor->name, v.data, v.bytes, err);
done:
    tfm__free(k.data);
    tfm__free(v.data);
    return status;
}
