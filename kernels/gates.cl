/* SPDX-License-Identifier: MIT
 * What silu, swiglu, glu and scale share: tanh, and the gates
 *   tfm_gate(x, w) = x / (1 + exp(w)), so that x sigmoid(z) = tfm_gate(x, -z)
 *
 * exp may overflow to infinity: the quotient is 0, as it should be. Only -inf / inf needs a word of
 * its own: the limit is 0. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif
#define TFM_GATES_CL

static tfm_floatv tfm_gate(tfm_floatv x, tfm_floatv w)
{
    const tfm_floatv quotient = x / (1.0f + exp(w));
    return select(quotient, (tfm_floatv)(0.0f), x == (tfm_floatv)(-INFINITY));
}

static tfm_floatv tfm_silu_of(tfm_floatv g)
{
    return tfm_gate(g, -g);
}

static tfm_floatv tfm_sigmoid_of(tfm_floatv g)
{
    return 1.0f / (1.0f + exp(-g));
}

/* Near 0 a polynomial in z^2, fitted at Chebyshev's points (1.1e-8 of tanh at most): there the quotient
 * would lose digits. Far out exp may be infinity: 1. */
static tfm_floatv tfm_tanh(tfm_floatv z)
{
    const tfm_floatv square = z * z;
    tfm_floatv p = (tfm_floatv)(-0x1.9ada60p-8f);
    p = fma(p, square, (tfm_floatv)(0x1.59e1c8p-6f));
    p = fma(p, square, (tfm_floatv)(-0x1.b955dcp-5f));
    p = fma(p, square, (tfm_floatv)(0x1.110ee0p-3f));
    p = fma(p, square, (tfm_floatv)(-0x1.555554p-2f));
    const tfm_floatv near = fma(z * square, p, z), far = 1.0f - 2.0f / (1.0f + exp(2.0f * z));

    return select(far, near, fabs(z) < (tfm_floatv)(0.6f));
}
