/* SPDX-License-Identifier: MIT
 * The host table that every backend gets. */
#ifndef TFM__CORE_HOST_H
#define TFM__CORE_HOST_H

#include <tfm/backend.h>

const struct tfm_host *tfm__host(void);

#endif
