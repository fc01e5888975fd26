/* SPDX-License-Identifier: MIT
 * How much host memory of this program is in use: counts what the objects of the test and of the libraries
 * in it (not shared ones) ask of malloc and its kin; the linker sends their calls here. */
#ifndef TESTS_OPENCL_LIVE_MEMORY_H
#define TESTS_OPENCL_LIVE_MEMORY_H

/* Blocks that were allocated and not freed. */
long live_memory(void);

#endif
