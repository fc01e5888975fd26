/* SPDX-License-Identifier: MIT
 * Finds the way to multiply that a device takes and computes rightly. */
#include "backends/opencl/ways.h"

#include <stdio.h>
#include <string.h>

int tfm__cl_way_assembles(const struct tfm__cl_device *d)
{
    return d->kind == TFM_DEVICE_CPU && strcmp(d->platform, "Portable Computing Language") == 0;
}

/* 1 = the way computes what it must; else *why says what happened. */
static int is_right(struct tfm__cl_device *d, const struct tfm__cl_ways *ways,
                    const struct tfm__cl_way *way, struct tfm_error *why)
{
    int right = 0;

    if (ways->prove(d, way, &right, why) == TFM_STATUS_OK && !right)
        (void)d->host->error(why, TFM_STATUS_BACKEND, "opencl: %s computes wrong values",
                             way->name);
    return right;
}

const struct tfm__cl_way *tfm__cl_way_find(struct tfm__cl_device *d,
                                           const struct tfm__cl_ways *ways, int any, char *why)
{
    snprintf(why, TFM__CL_WAY_WHY, "the device has no fast products of %s", ways->numbers);
    for (size_t i = 0; i < ways->n; i++) {
        const struct tfm__cl_way *way = &ways->ways[i];
        struct tfm_error err = {0};
        if ((!any && !way->fast) || (way->may && !way->may(d)))
            continue;
        if (is_right(d, ways, way, &err))
            return way;
        d->host->log(TFM_LOG_WARN, "opencl", err.text);
        snprintf(why, TFM__CL_WAY_WHY, "the fast products of %s failed their proof", ways->numbers);
    }
    return NULL;
}
