/* SPDX-License-Identifier: MIT
 * Moves in the KV cache of an attention layer between runs: what a context shift is made of. */
#ifndef TFM_CACHE_H
#define TFM_CACHE_H

#include <tfm/graph.h>
#include <tfm/plan.h>
#include <tfm/positions.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which cells of a slot go. A cell is a position, so what lies behind them moves down by n. */
struct tfm_nn_cache_drop {
    int64_t slot;
    int64_t used;     /* cells filled before */
    int64_t first, n; /* cells [first, first + n) go; n = 0 changes nothing */
    /* How keys are rotated (Su et al., arXiv:2104.09864): those that move are turned back by n positions.
     * NULL = they are not, or their positions do not follow the cells. */
    const struct tfm_nn_rope *rope;
    enum tfm_rope_style style;
};

/* Drops cells of the caches NAME.k_cache and NAME.v_cache [slots, cells, G, d] of an attention layer of the
 * graph, through the host; keys are turned in f64 and rounded once. The sequence has used - n cells then.
 * NOT_FOUND: the layer has no cache; INVALID_ARGUMENT: slot, used, first or n do not fit the cache, or
 * the rotation does not fit d (named); NOMEM; whatever reading and writing the states say: after a
 * failure between two writes the caches of the slot are undefined. */
TFM_API enum tfm_status tfm_nn_cache_drop(struct tfm_exec *exec, const struct tfm_graph *graph,
                                          const char *name, const struct tfm_nn_cache_drop *drop,
                                          struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
