/* SPDX-License-Identifier: MIT
 * The learning rate of each step. */
#include <math.h>

#include <tfm/schedule.h>

double tfm_schedule_rate(const struct tfm_schedule *s, uint64_t step)
{
    const double pi = 3.14159265358979323846;

    if (step < s->warmup)
        return s->rate * ((double)step + 1) / (double)s->warmup;
    if (step >= s->steps)
        return s->final_rate;
    const double done = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
    return s->final_rate + (s->rate - s->final_rate) * (1 + cos(pi * done)) / 2;
}
