/* SPDX-License-Identifier: MIT
 * rms_norm_grad: norm_grad.cl without the mean; formulas in lib/ops/rms_norm_grad.c. */
#ifndef TFM_NORM_GRAD_CL
#include "norm_grad.cl"
#endif

__kernel void tfm_run_rms_norm_grad(__global const uchar *x, __global const uchar *gamma,
                                    __global const uchar *dy, __global uchar *dx,
                                    __global uchar *moments, __global const struct tfm_step *steps,
                                    uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_norm_grad((__global const float *)(x + s->at[0]),
                  (__global const float *)(gamma + s->at[1]),
                  (__global const float *)(dy + s->at[2]), (__global float *)(dx + s->at[3]),
                  (__global float *)(moments + s->at[4]), s, rows, 0, (uint)get_global_id(0),
                  (uint)get_global_size(0));
}

__kernel void tfm_run_rms_norm_grad_sums(__global const uchar *x, __global const uchar *dy,
                                         __global const uchar *moments, __global uchar *dgamma,
                                         __global uchar *dbeta,
                                         __global const struct tfm_step *steps, uint index,
                                         __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_norm_grad_sums((__global const float *)(x + s->at[0]),
                       (__global const float *)(dy + s->at[1]),
                       (__global const float *)(moments + s->at[2]), dgamma + s->at[3],
                       dbeta + s->at[4], s, rows, (uint)get_global_id(0), (uint)get_global_size(0));
}
