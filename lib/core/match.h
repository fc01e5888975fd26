/* SPDX-License-Identifier: MIT
 * From the names that a user types to a backend and one of its devices. */
#ifndef TFM__CORE_MATCH_H
#define TFM__CORE_MATCH_H

#include "lib/core/registry.h"

/* The backend of that name. NOT_FOUND: none, the text lists those that are there; PLUGIN: it is
 * there and was refused, the text says why. `source` says where the name came from. */
enum tfm_status tfm__match_backend(struct tfm_registry *registry, const char *source,
                                   const char *name, struct tfm__entry **entry,
                                   struct tfm_error *err);

/* Number of the device that `text` means: an index, or a part of a platform's or device's name in
 * any case; NULL = the first. Probes. BACKEND: the backend cannot be used here; NOT_FOUND: no such
 * device; INVALID_ARGUMENT: several fit and none of them exactly. The text lists the devices. */
enum tfm_status tfm__match_device(struct tfm__entry *entry, const char *source, const char *text,
                                  uint32_t *index, struct tfm_error *err);

#endif
