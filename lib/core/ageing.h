/* SPDX-License-Identifier: MIT
 * The ageing rule of the backend ABI. */
#ifndef TFM__CORE_AGEING_H
#define TFM__CORE_AGEING_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/backend.h>

/* 1 if a plugin built for ABI minor `abi_minor` knows everything that `node` uses: its op, the
 * dtypes of its tensors, its attributes away from their neutral value. Otherwise 0, and `reason`
 * [size] names the first that is too young, in one line. */
int tfm__ageing_may_see(uint32_t abi_minor, const struct tfm_node *node, char *reason, size_t size);

#endif
