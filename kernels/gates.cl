/* SPDX-License-Identifier: MIT
 * The gates that silu, swiglu, glu and gelu share:
 *   tfm_gate(x, w) = x / (1 + exp(w)), so that x sigmoid(z) = tfm_gate(x, -z)
 *
 * exp may overflow to infinity: the quotient is 0, as it should be. Only -inf / inf needs a word of
 * its own: the limit is 0. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_GATES_CL

static float16 tfm_gate(float16 x, float16 w)
{
    const float16 quotient = x / (1.0f + exp(w));
    return select(quotient, (float16)(0.0f), x == (float16)(-INFINITY));
}

static float16 tfm_silu_of(float16 g)
{
    return tfm_gate(g, -g);
}

static float16 tfm_sigmoid_of(float16 g)
{
    return 1.0f / (1.0f + exp(-g));
}
