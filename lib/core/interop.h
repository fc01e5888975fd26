/* SPDX-License-Identifier: MIT
 * Objects and memory that belong to the program: how the core asks a backend for them. */
#ifndef TFM__CORE_INTEROP_H
#define TFM__CORE_INTEROP_H

#include <tfm/backend.h>

/* The extension of a backend; NULL if it has none of that name, or one that ends too early. device may be
 * NULL. */
const struct tfm_interop *tfm__interop(const struct tfm_backend *table, void *device,
                                       const char *extension);

#endif
