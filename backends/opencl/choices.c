/* SPDX-License-Identifier: MIT
 * What was chosen on a device, and why: for `tfm run -v` and `tfm doctor`. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"

void tfm__cl_choose(struct tfm__cl_device *d, const char *what, const char *choice, const char *why)
{
    char text[400];
    uint32_t i = 0;

    while (i < d->n_choices && strcmp(d->choices[i].what, what) != 0)
        i++;
    if (i < TFM__CL_CHOICES) {
        d->choices[i].what = what;
        snprintf(d->choices[i].choice, sizeof d->choices[i].choice, "%s", choice);
        snprintf(d->choices[i].why, sizeof d->choices[i].why, "%s", why);
        d->n_choices += i == d->n_choices;
    }
    snprintf(text, sizeof text, "%s: %s, because %s", what, choice, why);
    d->host->log(TFM_LOG_INFO, "opencl", text);
}
