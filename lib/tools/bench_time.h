/* SPDX-License-Identifier: MIT
 * The time of a node of `tfm bench-ops`. */
#ifndef TFM__TOOLS_BENCH_TIME_H
#define TFM__TOOLS_BENCH_TIME_H

#include <tfm/device.h>

#include "lib/tools/bench_cases.h"

/* Seconds of one node of the case on the device, the least of so many repetitions; not positive when it is
 * lost in the noise. UNSUPPORTED, STRICT: the device does not take it; whatever plans and runs say. */
enum tfm_status tfm__bench_time(struct tfm_device *device, const struct tfm__bench_case *c,
                                int64_t repetitions, double *seconds, struct tfm_error *err);

#endif
