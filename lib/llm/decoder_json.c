/* SPDX-License-Identifier: MIT
 * Writes the settings of a decoder from the table that configurations are read by. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/llm/decoder_json.h"

json_t *tfm__json_real(double value)
{
    char text[32];

    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if ((float)strtod(text, NULL) == (float)value)
            break;
    }
    return json_real(strtod(text, NULL));
}

/* ---- kinds of values ---- */

static const char *const norms[] = {
#define TFM_NN_NORM(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const ffns[] = {
#define TFM_NN_FFN(id, NAME, name, gated) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const positions[] = {
#define TFM_NN_POSITION(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const scalings[] = {
#define TFM_NN_ROPE_SCALING(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const blocks[] = {
#define TFM_NN_BLOCK(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const styles[] = {
    [TFM_ROPE_ADJACENT] = "adjacent", [TFM_ROPE_HALVES] = "halves"};

/* The graph took the decoder, so that every number has a word. */
#define PUT_COUNT(value)    json_integer((json_int_t)(value))
#define PUT_REAL(value)     tfm__json_real(value)
#define PUT_FLAG(value)     json_boolean(value)
#define PUT_DTYPE(value)    json_string(tfm_dtype_name(value))
#define PUT_NORM(value)     json_string(norms[value])
#define PUT_FFN(value)      json_string(ffns[value])
#define PUT_POSITION(value) json_string(positions[value])
#define PUT_SCALING(value)  json_string(scalings[value])
#define PUT_BLOCK(value)    json_string(blocks[value])
#define PUT_STYLE(value)    json_string(styles[value])

static int means_nothing(const json_t *value)
{
    return json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0);
}

static int put(json_t *object, const char *key, json_t *value, int zeros)
{
    if (value && !zeros && means_nothing(value)) {
        json_decref(value);
        return 0;
    }
    return json_object_set_new(object, key, value); /* NULL fails */
}

json_t *tfm__decoder_json(const struct tfm_nn_decoder *decoder, int zeros)
{
    const struct tfm_nn_decoder *c = decoder;
    json_t *object = json_object();
    int failed = !object;

#define TFM_CONFIG(KIND, name, field, least, most, meaning) \
    failed = failed || put(object, name, PUT_##KIND(c->field), zeros);
#include <tfm/decoder_keys.def>
#undef TFM_CONFIG
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}
