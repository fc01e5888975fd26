/* SPDX-License-Identifier: MIT
 * Layers of positions: tables that are added to x, the rotary table, the bias on scores. */
#include <string.h>

#include <tfm/nn.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_learned_positions(struct tfm_graph *graph, const char *name,
                                            struct tfm_tensor *x, struct tfm_tensor *pos,
                                            int64_t positions, enum tfm_dtype dtype)
{
    struct tfm__name buffer;

    if (!x || !pos)
        return NULL;
    tfm_graph_scope_push(graph, "positions_learned", name);
    struct tfm_tensor *table =
        tfm_graph_parameter(graph, tfm__name_join(&buffer, name, "weight"), dtype, 2,
                            (int64_t[]){positions, x->shape[x->rank - 1]});
    struct tfm_tensor *y = table ? tfm_op_position_embedding(graph, table, pos) : NULL;
    y = y ? tfm_op_add(graph, x, y) : NULL;
    tfm_graph_scope_pop(graph);
    return y;
}

static enum tfm_status make_sinusoidal(const struct tfm_tensor *buffer, const void *settings,
                                       void *values, struct tfm_error *err)
{
    (void)settings;
    return tfm_nn_sinusoidal_table(buffer->dtype, buffer->shape[0], buffer->shape[1], values, err);
}

struct tfm_tensor *tfm_nn_sinusoidal_positions(struct tfm_graph *graph, const char *name,
                                               struct tfm_tensor *x, struct tfm_tensor *pos,
                                               int64_t positions)
{
    struct tfm__name buffer;

    if (!x || !pos)
        return NULL;
    tfm_graph_scope_push(graph, "positions_sinusoidal", name);
    struct tfm_tensor *table =
        tfm_graph_buffer(graph, tfm__name_join(&buffer, name, "table"), tfm__companion_of(x->dtype),
                         2, (int64_t[]){positions, x->shape[x->rank - 1]});
    table = tfm_graph_buffer_maker(graph, table, make_sinusoidal, NULL, 0);
    struct tfm_tensor *y = table ? tfm_op_position_embedding(graph, table, pos) : NULL;
    y = y ? tfm_op_add(graph, x, y) : NULL;
    tfm_graph_scope_pop(graph);
    return y;
}

/* ---- rotation ---- */

/* What a rotary table is made of: the config, its factors behind it. */
struct rope_settings {
    struct tfm_nn_rope rope;
    float factors[];
};

static enum tfm_status make_rope(const struct tfm_tensor *buffer, const void *settings,
                                 void *values, struct tfm_error *err)
{
    const struct rope_settings *s = settings;
    struct tfm_nn_rope rope = s->rope;

    if (rope.scaling == TFM_NN_ROPE_SCALING_FACTORS)
        rope.factors = s->factors;
    return tfm_nn_rope_table_scaled(buffer->dtype, buffer->shape[0], &rope, values, err);
}

static struct tfm_tensor *attach_rope(struct tfm_graph *graph, struct tfm_tensor *table,
                                      const struct tfm_nn_rope *rope)
{
    const size_t pairs = (size_t)rope->dims / 2;
    size_t bytes;
    struct rope_settings *s = NULL;

    if (!tfm__mul_size(pairs, sizeof *s->factors, &bytes) &&
        !tfm__add_size(bytes, sizeof *s, &bytes))
        s = tfm__alloc(bytes); /* zeroed: two settings of one meaning have equal bytes */
    if (!s)
        return tfm_graph_refuse(graph, TFM_STATUS_NOMEM, "rope table: out of memory");
    s->rope.dims = rope->dims;
    s->rope.theta = rope->theta;
    s->rope.scaling = rope->scaling;
    s->rope.factor = rope->factor;
    s->rope.original_context = rope->original_context;
    s->rope.low_freq_factor = rope->low_freq_factor;
    s->rope.high_freq_factor = rope->high_freq_factor;
    s->rope.beta_fast = rope->beta_fast;
    s->rope.beta_slow = rope->beta_slow;
    s->rope.attn_factor = rope->attn_factor;
    if (rope->scaling == TFM_NN_ROPE_SCALING_FACTORS)
        memcpy(s->factors, rope->factors, pairs * sizeof *s->factors);
    table = tfm_graph_buffer_maker(graph, table, make_rope, s, bytes);
    tfm__free(s);
    return table;
}

struct tfm_tensor *tfm_nn_rope_buffer(struct tfm_graph *graph, const char *name,
                                      enum tfm_dtype dtype, int64_t positions,
                                      const struct tfm_nn_rope *rope)
{
    struct tfm__name buffer;
    struct tfm_error err = {0};
    double attn_factor;

    if (tfm_nn_rope_frequencies(rope, NULL, &attn_factor, &err) != TFM_STATUS_OK)
        return tfm_graph_refuse(graph, err.status, "\"%s\": %s", name, err.text);
    struct tfm_tensor *table =
        tfm_graph_buffer(graph, tfm__name_join(&buffer, name, "table"), tfm__companion_of(dtype), 3,
                         (int64_t[]){positions, rope->dims / 2, 2});
    return table ? attach_rope(graph, table, rope) : NULL;
}

/* ---- relative bias ---- */

static enum tfm_status make_buckets(const struct tfm_tensor *buffer, const void *settings,
                                    void *values, struct tfm_error *err)
{
    (void)buffer;
    return tfm_nn_relative_table(settings, values, err);
}

int tfm_nn_relative_bias(struct tfm_graph *graph, const char *name, enum tfm_dtype dtype,
                         int64_t heads, const struct tfm_nn_relative *config,
                         struct tfm_tensor **rel_bias, struct tfm_tensor **rel_bucket)
{
    struct tfm__name buffer;
    struct tfm_error err = {0};
    struct tfm_tensor *bias = NULL, *bucket = NULL;
    struct tfm_nn_relative settings;
    int32_t first;

    *rel_bias = *rel_bucket = NULL;
    if (tfm_nn_relative_bucket(config, 0, &first, &err) != TFM_STATUS_OK) {
        tfm_graph_refuse(graph, err.status, "\"%s\": %s", name, err.text);
        return 1;
    }
    memset(&settings, 0, sizeof settings); /* padding is compared too */
    settings.buckets = config->buckets;
    settings.max_distance = config->max_distance;
    settings.bidirectional = config->bidirectional;
    bias = tfm_graph_parameter(graph, tfm__name_join(&buffer, name, "rel_bias"),
                               tfm__companion_of(dtype), 2, (int64_t[]){config->buckets, heads});
    if (bias)
        bucket = tfm_graph_buffer(graph, tfm__name_join(&buffer, name, "rel_bucket"), TFM_DTYPE_I32,
                                  1, (int64_t[]){2 * config->max_distance + 1});
    bucket = tfm_graph_buffer_maker(graph, bucket, make_buckets, &settings, sizeof settings);
    if (!bucket)
        return 1;
    *rel_bias = bias;
    *rel_bucket = bucket;
    return 0;
}
