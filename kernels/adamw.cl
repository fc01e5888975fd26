/* SPDX-License-Identifier: MIT
 * adamw, element by element; the formula stands in lib/ops/adamw.c
 *   w, g, m, v [width] F32, changed in place, hyper [8] F32 in the order of enum tfm_adamw_hyper; if master [width]
 *   F32 is there, it is what is updated, and w, F16 or BF16, is what it rounds to
 *
 * Work map: a unit is a vector. Every value is read once and written once: memory is the limit. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif

/* hyper, and what is made of it once. */
struct tfm_adamw {
    float rate, beta1, beta2, eps, decay, factor, correction2, rest1, rest2;
};

static struct tfm_adamw tfm_adamw_read(__global const float *h)
{
    return (struct tfm_adamw){.rate = h[0] * h[6], /* correction1 too */
                              .beta1 = h[1],
                              .beta2 = h[2],
                              .eps = h[3],
                              .decay = h[4],
                              .factor = h[5],
                              .correction2 = h[7],
                              .rest1 = 1.0f - h[1],
                              .rest2 = 1.0f - h[2]};
}

/* n elements from number `at` on: a whole vector, or the last ones. */
TFM_INLINE void tfm_adamw_unit(__global uchar *w, __global uchar *g, __global uchar *m,
                               __global uchar *v, __global uchar *master, uint narrow,
                               const struct tfm_adamw *h, ulong at, uint n)
{
    __global uchar *exact = narrow != TFM_STEP_NONE ? master : w;
    const tfm_floatv d = h->factor * tfm_loadv_n(g, at, n, TFM_STEP_F32);
    const tfm_floatv new_m = fma(h->beta1, tfm_loadv_n(m, at, n, TFM_STEP_F32), h->rest1 * d);
    const tfm_floatv new_v = fma(h->beta2, tfm_loadv_n(v, at, n, TFM_STEP_F32), h->rest2 * d * d);
    const tfm_floatv old = tfm_loadv_n(exact, at, n, TFM_STEP_F32);
    const tfm_floatv kept = fma(-h->decay, old, old);
    const tfm_floatv made = kept - h->rate * new_m / (sqrt(h->correction2 * new_v) + h->eps);

    tfm_storev_n(made, exact, at, n, TFM_STEP_F32);
    tfm_storev_n((tfm_floatv)0.0f, g, at, n, TFM_STEP_F32);
    tfm_storev_n(new_m, m, at, n, TFM_STEP_F32);
    tfm_storev_n(new_v, v, at, n, TFM_STEP_F32);
    if (narrow != TFM_STEP_NONE)
        tfm_storev_n(made, w, at, n, narrow);
}

__kernel void tfm_run_adamw(__global uchar *w, __global uchar *g, __global uchar *m,
                            __global uchar *v, __global const uchar *hyper, __global uchar *master,
                            __global const struct tfm_step *steps, uint index,
                            __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = (uint)get_global_id(0), parts = (uint)get_global_size(0);
    const uint width = s->width, units = width / TFM_VECTOR, left = width % TFM_VECTOR;
    const ulong end = tfm_end(units, part, parts), stride = tfm_stride(parts);
    const uint narrow = s->type[5] == TFM_STEP_NONE ? TFM_STEP_NONE : s->type[0];

    if (tfm_rows(s, rows) == 0)
        return;
    const struct tfm_adamw h = tfm_adamw_read((__global const float *)(hyper + s->at[4]));
    w += s->at[0];
    g += s->at[1];
    m += s->at[2];
    v += s->at[3];
    master += narrow == TFM_STEP_NONE ? 0 : s->at[5];
    if (narrow == TFM_STEP_NONE) {
        for (ulong u = tfm_first(units, part, parts); u < end; u += stride)
            tfm_adamw_unit(w, g, m, v, master, TFM_STEP_NONE, &h, u * TFM_VECTOR, TFM_VECTOR);
    } else if (narrow == TFM_STEP_BF16) { /* with a constant type there is no branch in the loop */
        for (ulong u = tfm_first(units, part, parts); u < end; u += stride)
            tfm_adamw_unit(w, g, m, v, master, TFM_STEP_BF16, &h, u * TFM_VECTOR, TFM_VECTOR);
    } else {
        for (ulong u = tfm_first(units, part, parts); u < end; u += stride)
            tfm_adamw_unit(w, g, m, v, master, TFM_STEP_F16, &h, u * TFM_VECTOR, TFM_VECTOR);
    }
    if (left > 0 && part == parts - 1)
        tfm_adamw_unit(w, g, m, v, master, narrow, &h, (ulong)units * TFM_VECTOR, left);
}
