/* SPDX-License-Identifier: MIT
 * The threads that compute on a CPU device, each on a processor of its own. */
#ifndef TFM_OPENCL_WORKERS_H
#define TFM_OPENCL_WORKERS_H

#include "backends/opencl/device.h"

/* Processors that the process may use; 0 = not known. */
uint32_t tfm__cl_processors(void);

/* Gives each compute unit's thread a processor of its own, if there are as many of both, and keeps as a choice
 * whether it did and why. Never an error: the scheduler of the system can do without. */
void tfm__cl_workers_open(struct tfm__cl_device *device);
/* Lets them go where they were allowed to before. */
void tfm__cl_workers_close(struct tfm__cl_device *device);

#endif
