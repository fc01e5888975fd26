/* SPDX-License-Identifier: MIT
 * Weights as the core sees them: entries by name, and what devices keep with them. */
#ifndef TFM__CORE_WEIGHTS_H
#define TFM__CORE_WEIGHTS_H

#include <tfm/weights.h>

#include "lib/core/device.h"

struct tfm_weights *tfm__weights_retain(struct tfm_weights *weights);

/* Freezes and locks while `device` compiles; the slots below answer for that device. */
void tfm__weights_begin(struct tfm_weights *weights, struct tfm_device *device);
void tfm__weights_end(struct tfm_weights *weights);

/* There is an entry of the tensor's dtype and shape; its values may have been given up. */
enum tfm_status tfm__weights_check(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                   struct tfm_error *err);

/* Between begin and end. Memory of a parameter on a node-by-node device: the owner's own bytes when
 * the device's buffers are host memory, else an uploaded copy, made once. */
enum tfm_status tfm__weights_memory(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                    struct tfm_memory *memory, struct tfm_error *err);

/* The bytes of a parameter that its owner has, once a plan was compiled over the weights. */
enum tfm_status tfm__weights_values(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                    struct tfm_weight *weight, struct tfm_error *err);

/* Slots of struct tfm_host. */
enum tfm_status tfm__weights_host_get(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                      struct tfm_weight *weight, struct tfm_error *err);
void tfm__weights_host_taken(struct tfm_weights *weights, const struct tfm_tensor *tensor);
void *tfm__weights_private_get(struct tfm_weights *weights);
void tfm__weights_private_set(struct tfm_weights *weights, void *data, void (*destroy)(void *data));

#endif
