/* SPDX-License-Identifier: MIT
 * Feed-forward layers: down(f(up(x))), or gated down(f(gate(x)) * up(x)); x [N, D], hidden [N, F]. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

/* ---- hidden_<kind>: gate is NULL in kinds without one ---- */

static struct tfm_tensor *hidden_swiglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                        struct tfm_tensor *up)
{
    return tfm_op_swiglu(graph, gate, up);
}

static struct tfm_tensor *hidden_geglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                       struct tfm_tensor *up)
{
    gate = gate ? tfm_op_gelu(graph, gate, 1) : NULL;
    return gate ? tfm_op_mul(graph, gate, up) : NULL;
}

static struct tfm_tensor *hidden_glu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                     struct tfm_tensor *up)
{
    return tfm_op_glu(graph, gate, up);
}

static struct tfm_tensor *hidden_relu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                      struct tfm_tensor *up)
{
    (void)gate;
    return tfm_op_relu(graph, up);
}

static struct tfm_tensor *hidden_gelu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                      struct tfm_tensor *up)
{
    (void)gate;
    return tfm_op_gelu(graph, up, 0);
}

static struct tfm_tensor *hidden_gelu_tanh(struct tfm_graph *graph, struct tfm_tensor *gate,
                                           struct tfm_tensor *up)
{
    (void)gate;
    return tfm_op_gelu(graph, up, 1);
}

static struct tfm_tensor *hidden_silu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                      struct tfm_tensor *up)
{
    (void)gate;
    return tfm_op_silu(graph, up);
}

static const struct {
    const char *scope;
    int gated;
    struct tfm_tensor *(*hidden)(struct tfm_graph *graph, struct tfm_tensor *gate,
                                 struct tfm_tensor *up);
} kinds[] = {
#define TFM_NN_FFN(id, NAME, name, gated) \
    [TFM_NN_FFN_##NAME] = {"ffn_" #name, gated, hidden_##name},
#include <tfm/nn_kinds.def>
};

struct tfm_tensor *tfm_nn_ffn(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                              const struct tfm_nn_ffn *config)
{
    struct tfm__name buffer;
    struct tfm_tensor *gate = NULL;

    if (!x)
        return NULL;
    if ((unsigned)config->kind >= sizeof kinds / sizeof *kinds)
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT, "\"%s\": ffn %d is none", name,
                                (int)config->kind);
    const int64_t width = x->shape[x->rank - 1];
    tfm_graph_scope_push(graph, kinds[config->kind].scope, name);
    if (kinds[config->kind].gated)
        gate = tfm_nn_linear(graph, tfm__name_join(&buffer, name, "gate"), x, config->width,
                             config->gate, config->gate_bias);
    struct tfm_tensor *up = tfm_nn_linear(graph, tfm__name_join(&buffer, name, "up"), x,
                                          config->width, config->up, config->up_bias);
    struct tfm_tensor *hidden = up ? kinds[config->kind].hidden(graph, gate, up) : NULL;
    struct tfm_tensor *y = tfm_nn_linear(graph, tfm__name_join(&buffer, name, "down"), hidden,
                                         width, config->down, config->down_bias);
    tfm_graph_scope_pop(graph);
    return y;
}

struct tfm_tensor *tfm_nn_swiglu(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                 const struct tfm_nn_swiglu *config)
{
    const struct tfm_nn_ffn ffn = {
        .width = config->width, .gate = config->gate, .up = config->up, .down = config->down};

    return tfm_nn_ffn(graph, name, x, &ffn);
}

int64_t tfm_nn_ffn_width(int64_t width, int64_t multiple)
{
    static const int64_t most = (int64_t)1 << 48; /* far from overflow below */

    if (multiple == 0)
        multiple = 64;
    if (width < 1 || width > most || multiple < 1 || multiple > most)
        return 0;
    /* ceil(8 D / (3 m)) m, with 8 D / 3 never rounded before */
    return (8 * width + 3 * multiple - 1) / (3 * multiple) * multiple;
}
