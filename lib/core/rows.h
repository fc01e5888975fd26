/* SPDX-License-Identifier: MIT
 * The check of a run's rows against a plan. */
#ifndef TFM__CORE_ROWS_H
#define TFM__CORE_ROWS_H

#include <tfm/backend.h>

/* slots, cells: extents of the caches, 0 = the plan has none (rows may then have no sequences). */
enum tfm_status tfm__rows_check(const struct tfm_rows *rows, const struct tfm_capacity *capacity,
                                int64_t slots, int64_t cells, struct tfm_error *err);

#endif
