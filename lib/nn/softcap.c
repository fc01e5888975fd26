/* SPDX-License-Identifier: MIT
 * cap tanh(x / cap) = 2 cap sigmoid(2 x / cap) - cap, for x [N, V]. There is no op for it, and needs none:
 * glu is sigmoid(gate) * up, and a layer_norm with gamma 0 makes a row of constants, its beta. */
#include <math.h>

#include <tfm/nn.h>

#include "lib/nn/scope.h"

static enum tfm_status fill(const struct tfm_tensor *buffer, const void *settings, void *values,
                            struct tfm_error *err)
{
    const double *value = settings;

    (void)err;
    for (int64_t i = 0; i < buffer->shape[0]; i++)
        tfm_dtype_from_f64(buffer->dtype, value, values, (size_t)i, 1);
    return TFM_STATUS_OK;
}

/* Buffer NAME.leaf [V], every element `value`. */
static struct tfm_tensor *constant(struct tfm_graph *graph, const char *name, const char *leaf,
                                   const struct tfm_tensor *x, double value)
{
    struct tfm__name buffer;
    struct tfm_tensor *row = tfm_graph_buffer(graph, tfm__name_join(&buffer, name, leaf), x->dtype,
                                              1, (int64_t[]){x->shape[x->rank - 1]});

    return tfm_graph_buffer_maker(graph, row, fill, &value, sizeof value);
}

struct tfm_tensor *tfm_nn_softcap(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                  double cap)
{
    if (!x)
        return NULL;
    tfm_graph_scope_push(graph, "softcap", name);
    struct tfm_tensor *y = NULL;
    if (!(cap > 0) || !isfinite(2 / cap) || !isfinite(2 * cap)) {
        tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT,
                         "softcap: %g; it must be positive and finite", cap);
    } else {
        struct tfm_tensor *zero = constant(graph, name, "zero", x, 0);
        struct tfm_tensor *two_caps = constant(graph, name, "two_caps", x, 2 * cap);
        struct tfm_tensor *minus_cap = constant(graph, name, "minus_cap", x, -cap);
        if (zero && two_caps && minus_cap) {
            struct tfm_tensor *up = tfm_op_layer_norm(graph, x, zero, two_caps, 1);
            struct tfm_tensor *shift = tfm_op_layer_norm(graph, x, zero, minus_cap, 1);
            y = tfm_op_glu(graph, tfm_op_scale(graph, x, 2 / cap), up);
            y = tfm_op_add(graph, y, shift);
        }
    }
    tfm_graph_scope_pop(graph);
    return y;
}
