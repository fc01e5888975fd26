/* SPDX-License-Identifier: MIT
 * Takes storage and cache away from a decoder: what stays is its shape. */
#include "lib/llm/flat_decoder.h"

static struct tfm_nn_decoder_layer without_storage(const struct tfm_nn_decoder_layer *layer)
{
    struct tfm_nn_decoder_layer plain = *layer;

    plain.q = plain.k = plain.v = plain.o = TFM_DTYPE_F32;
    plain.gate = plain.up = plain.down = TFM_DTYPE_F32;
    return plain;
}

static int same_layer(const struct tfm_nn_decoder_layer *a, const struct tfm_nn_decoder_layer *b)
{
    return a->q_bias == b->q_bias && a->k_bias == b->k_bias && a->v_bias == b->v_bias &&
           a->o_bias == b->o_bias && a->gate_bias == b->gate_bias && a->up_bias == b->up_bias &&
           a->down_bias == b->down_bias && a->window == b->window;
}

enum tfm_status tfm__flat_decoder(const struct tfm_nn_decoder *decoder, const char *who,
                                  struct tfm_nn_decoder *flat, struct tfm_error *err)
{
    const struct tfm_nn_decoder *c = decoder;

    for (int64_t i = 1; c->layer && i < c->layers; i++)
        if (!same_layer(&c->layer[0], &c->layer[i]))
            return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                                 "%s: layer %lld has other biases or another window than layer 0; "
                                 "all layers must have the same",
                                 who, (long long)i);
    *flat = *c;
    flat->each = without_storage(c->layer ? &c->layer[0] : &c->each);
    flat->layer = NULL;
    flat->embedding = flat->head = flat->position_weight = TFM_DTYPE_F32;
    flat->slots = flat->cells = 0;
    return TFM_STATUS_OK;
}
