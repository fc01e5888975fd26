/* SPDX-License-Identifier: MIT
 * A home for PoCL's kernel cache where the user's own cannot be written: without one, PoCL 3.1 says
 * that there is no device. */
#ifndef TFM__TOOLS_KERNEL_CACHE_H
#define TFM__TOOLS_KERNEL_CACHE_H

/* Before the first OpenCL call: if POCL_CACHE_DIR is unset and PoCL's default folder cannot be
 * written, points it to a private folder of this process. Does nothing otherwise. */
void tfm__kernel_cache_init(void);
/* After kernels were built: says so once if they went to the private folder. */
void tfm__kernel_cache_tell(void);
/* 1 if kernels go to the private folder, so that the next process compiles them again. */
int tfm__kernel_cache_is_private(void);
/* Removes the private folder. */
void tfm__kernel_cache_deinit(void);

#endif
