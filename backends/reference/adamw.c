/* SPDX-License-Identifier: MIT
 * adamw: one update of a parameter; see lib/ops/adamw.c. Threads share the elements. */
#include <math.h>

#include "backends/reference/reference.h"

enum { CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype dtype, narrow; /* of the states, of w */
    void *w, *g, *m, *v, *master; /* master: where w is exact, maybe w itself */
    double hyper[TFM_ADAMW_HYPERS];
    size_t n;
};

static void update_chunk(const struct work *k, size_t first, size_t length)
{
    const double *h = k->hyper;
    double w[CHUNK], g[CHUNK], m[CHUNK], v[CHUNK];

    tfm_dtype_to_f64(k->dtype, k->master, first, length, w);
    tfm_dtype_to_f64(k->dtype, k->g, first, length, g);
    tfm_dtype_to_f64(k->dtype, k->m, first, length, m);
    tfm_dtype_to_f64(k->dtype, k->v, first, length, v);
    for (size_t i = 0; i < length; i++) {
        const double d = h[TFM_ADAMW_FACTOR] * g[i];
        m[i] = h[TFM_ADAMW_BETA1] * m[i] + (1 - h[TFM_ADAMW_BETA1]) * d;
        v[i] = h[TFM_ADAMW_BETA2] * v[i] + (1 - h[TFM_ADAMW_BETA2]) * d * d;
        const double root = sqrt(h[TFM_ADAMW_CORRECTION2] * v[i]) + h[TFM_ADAMW_EPS];
        w[i] -= h[TFM_ADAMW_DECAY] * w[i];
        w[i] -= h[TFM_ADAMW_RATE] * h[TFM_ADAMW_CORRECTION1] * m[i] / root;
        g[i] = 0;
    }
    tfm_dtype_from_f64(k->dtype, w, k->master, first, length);
    tfm_dtype_from_f64(k->dtype, g, k->g, first, length);
    tfm_dtype_from_f64(k->dtype, m, k->m, first, length);
    tfm_dtype_from_f64(k->dtype, v, k->v, first, length);
    if (k->master == k->w)
        return;
    tfm_dtype_to_f64(k->dtype, k->master, first, length, w); /* what is kept is what is rounded */
    tfm_dtype_from_f64(k->narrow, w, k->w, first, length);
}

static void update(void *context, size_t begin, size_t end)
{
    const struct work *k = context;

    for (size_t c = begin; c < end; c++)
        update_chunk(k, c * CHUNK, tfm__reference_length(k->n, c * CHUNK));
}

enum tfm_status tfm__reference_adamw(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *w = call->node->inputs[0], *g = call->node->inputs[1];
    struct work k = {
        .dtype = g->dtype,
        .narrow = w->dtype,
        .w = tfm__reference_state(call, 0),
        .g = tfm__reference_state(call, 1),
        .m = tfm__reference_state(call, 2),
        .v = tfm__reference_state(call, 3),
        .master = tfm__reference_state(call, 5),
        .n = (size_t)tfm_tensor_elements(w),
    };

    if (call->rows->n == 0)
        return TFM_STATUS_OK;
    if (!k.master)
        k.master = k.w;
    tfm_dtype_to_f64(call->node->inputs[4]->dtype, tfm__reference_input(call, 4), 0,
                     TFM_ADAMW_HYPERS, k.hyper);
    call->host->parallel_for(tfm__reference_chunks(k.n), update, &k);
    return TFM_STATUS_OK;
}
