/* SPDX-License-Identifier: MIT
 * What `auto` means. */
#ifndef TFM__CORE_AUTO_H
#define TFM__CORE_AUTO_H

#include "lib/core/registry.h"

enum { TFM__AUTO_MAX = 64 /* backends that are looked at */ };

/* Opens the first device, of the backends in the order of tfm_auto_order, that opens and was not
 * rejected; each failure is a warning. `source` says in messages where the wish came from. With strict
 * the reference does not take over from one that failed. NOT_FOUND, or what the first failure was. */
enum tfm_status tfm__auto_open(struct tfm_registry *registry, const char *source, int strict,
                               struct tfm__entry **entry, uint32_t *index,
                               struct tfm_device **device, struct tfm_error *err);

/* A file that the user pointed at, or that `auto` would have liked to try, is not passed over in
 * silence: told once. */
void tfm__auto_warn_refused(struct tfm_registry *registry, int is_auto);

/* `auto` passes over device `index` from now on. */
void tfm__entry_reject(struct tfm__entry *entry, uint32_t index, const struct tfm_error *why);

#endif
