/* SPDX-License-Identifier: MIT
 * Large buffers of a CPU device in pages of 2 MB. */
#ifndef TFM_OPENCL_HUGE_PAGES_H
#define TFM_OPENCL_HUGE_PAGES_H

#include "backends/opencl/device.h"

/* Asks the system for huge pages under a new buffer of `bytes`, whose contents are not defined yet. A wish: what
 * it meets is no error. */
void tfm__cl_huge_pages(const struct tfm__cl_device *device, cl_mem buffer, size_t bytes);

#endif
