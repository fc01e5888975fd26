/* SPDX-License-Identifier: MIT
 * The two gates and the slope of one, with their limits at infinity. */
#ifndef TFM__REFERENCE_GATES_H
#define TFM__REFERENCE_GATES_H

#include <math.h>

/* exp(-g) overflows to infinity below -709, and the quotient is 0. */
static inline double tfm__gate_sigmoid(double g)
{
    return 1.0 / (1.0 + exp(-g));
}

/* The same, except that -inf / inf would be NaN. */
static inline double tfm__gate_silu(double g)
{
    return g == -INFINITY ? 0.0 : g / (1.0 + exp(-g));
}

/* The derivative of silu: s + silu(g) (1 - s), and 1 - s is the sigmoid of -g; inf times 0 has the limit 0. */
static inline double tfm__gate_silu_slope(double g)
{
    return g == INFINITY ? 1.0 : tfm__gate_sigmoid(g) + tfm__gate_silu(g) * tfm__gate_sigmoid(-g);
}

#endif
