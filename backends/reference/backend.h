/* SPDX-License-Identifier: MIT
 * The table of the built-in reference backend, for the registry. */
#ifndef TFM__REFERENCE_BACKEND_H
#define TFM__REFERENCE_BACKEND_H

#include <tfm/backend.h>

extern const struct tfm_backend tfm__backend_reference;

#endif
