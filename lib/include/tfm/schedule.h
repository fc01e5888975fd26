/* SPDX-License-Identifier: MIT
 * The learning rate of each step: warm-up, then a cosine (Loshchilov and Hutter, arXiv:1608.03983, without restarts). */
#ifndef TFM_SCHEDULE_H
#define TFM_SCHEDULE_H

#include <stdint.h>

#include <tfm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_schedule {
    double rate;       /* the highest, at the end of the warm-up */
    double final_rate; /* from step `steps` on */
    uint64_t warmup;   /* steps in which the rate rises; 0 = none */
    uint64_t steps;    /* in all, the warm-up included */
};

/* The rate of step 0, 1, ...:
 *   step < warmup   rate (step + 1) / warmup
 *   step < steps    final_rate + (rate - final_rate) (1 + cos(pi (step - warmup) / (steps - warmup))) / 2
 *   beyond          final_rate
 * It depends on the arguments alone; any thread may call it. */
TFM_API double tfm_schedule_rate(const struct tfm_schedule *schedule, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
