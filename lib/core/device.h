/* SPDX-License-Identifier: MIT
 * What the core sees of an open device: its backend's table, the handle that the table's slots
 * take, its capabilities, and the ageing rule of the ABI. Everything here is constant while the
 * device lives, so every thread may read it. */
#ifndef TFM__CORE_DEVICE_H
#define TFM__CORE_DEVICE_H

#include <stddef.h>

#include <tfm/device.h>

/* The library's own copy of the table: slots past the plugin's struct_size are NULL. Belongs to the
 * device. */
const struct tfm_backend *tfm__device_table(const struct tfm_device *device);

/* What the backend's open() returned: the first argument of most slots. */
void *tfm__device_handle(const struct tfm_device *device);

/* Asked once, when the device was opened. Belongs to the device. */
const struct tfm_device_caps *tfm__device_caps(const struct tfm_device *device);

/* Ageing rule: 1 if the plugin is new enough to be asked about this node. 0 if op, a dtype or an
 * attribute away from its neutral value is younger than the plugin's ABI minor; then `reason`
 * [size] says which, in one line. A plan asks this before supports(). */
int tfm__device_may_see(const struct tfm_device *device, const struct tfm_node *node, char *reason,
                        size_t size);

/* 1 if TFM_STRICT is set in the environment and neither "" nor "0". */
int tfm__devices_strict_env(void);

#endif
