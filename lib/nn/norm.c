/* SPDX-License-Identifier: MIT
 * Norms over the last extent: RMSNorm x / sqrt(mean(x^2) + eps) * gamma, and LayerNorm
 * (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

/* NAME.leaf [D] for x [N, ..., D]. */
static struct tfm_tensor *vector(struct tfm_graph *graph, const char *name, const char *leaf,
                                 const struct tfm_tensor *x)
{
    struct tfm__name buffer;

    return tfm_graph_parameter(graph, tfm__name_join(&buffer, name, leaf),
                               tfm__companion_of(x->dtype), 1, (int64_t[]){x->shape[x->rank - 1]});
}

struct tfm_tensor *tfm_nn_rms_norm(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                   double eps)
{
    if (!x)
        return NULL;
    tfm_graph_scope_push(graph, "rms_norm", name);
    struct tfm_tensor *y = tfm_op_rms_norm(graph, x, vector(graph, name, "weight", x), eps);
    tfm_graph_scope_pop(graph);
    return y;
}

struct tfm_tensor *tfm_nn_layer_norm(struct tfm_graph *graph, const char *name,
                                     struct tfm_tensor *x, double eps)
{
    if (!x)
        return NULL;
    tfm_graph_scope_push(graph, "layer_norm", name);
    struct tfm_tensor *gamma = vector(graph, name, "weight", x);
    struct tfm_tensor *beta = vector(graph, name, "bias", x);
    struct tfm_tensor *y = beta ? tfm_op_layer_norm(graph, x, gamma, beta, eps) : NULL;
    tfm_graph_scope_pop(graph);
    return y;
}

static struct tfm_tensor *no_norm(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                  double eps)
{
    (void)graph, (void)name, (void)eps;
    return x;
}

struct tfm_tensor *tfm_nn_norm(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                               const struct tfm_nn_norm *config)
{
    static struct tfm_tensor *(*const norms[])(struct tfm_graph *, const char *,
                                               struct tfm_tensor *, double) = {
        [TFM_NN_NORM_RMS] = tfm_nn_rms_norm,
        [TFM_NN_NORM_LAYER] = tfm_nn_layer_norm,
        [TFM_NN_NORM_NONE] = no_norm,
    };

    if ((unsigned)config->kind >= sizeof norms / sizeof *norms)
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT, "\"%s\": norm %d is none", name,
                                (int)config->kind);
    return norms[config->kind](graph, name, x, config->eps);
}
