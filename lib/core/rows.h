/* SPDX-License-Identifier: MIT
 * The check of a run's rows against a plan. */
#ifndef TFM__CORE_ROWS_H
#define TFM__CORE_ROWS_H

#include <tfm/backend.h>

/* What the nodes of a plan need of its rows. */
struct tfm__rows_needs {
    int64_t slots, cells; /* extents of the caches, the smallest; 0 = there are none */
    int32_t sequences; /* 1 = a node reads other rows of its sequence: every row belongs to one */
    int32_t no_past;   /* 1 = a node does so without a cache: it sees nothing of earlier runs */
};

enum tfm_status tfm__rows_check(const struct tfm_rows *rows, const struct tfm_capacity *capacity,
                                const struct tfm__rows_needs *needs, struct tfm_error *err);

#endif
