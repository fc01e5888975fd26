/* SPDX-License-Identifier: MIT
 * The check of indices: ids, positions, buckets. */
#ifndef TFM__CORE_VALUES_H
#define TFM__CORE_VALUES_H

#include <tfm/graph.h>

/* All n values of an I32 tensor, maybe unaligned, lie in [0, tensor->limit); a tensor without a limit
 * holds anything. OUT_OF_RANGE; CONTEXT_FULL for a position at or past the limit. */
enum tfm_status tfm__values_check(const struct tfm_tensor *tensor, const void *values, int64_t n,
                                  struct tfm_error *err);

/* The same; the error begins with the layer that reads the tensor and what else that reads. */
enum tfm_status tfm__values_check_for(const struct tfm_graph *graph,
                                      const struct tfm_tensor *tensor, const void *values,
                                      int64_t n, struct tfm_error *err);

#endif
