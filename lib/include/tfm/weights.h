/* SPDX-License-Identifier: MIT
 * Parameters and buffers by name, reference-counted, shared by every plan over them. Thread-safe.
 * A device's own copy (packed, uploaded) is made once, by the first plan that needs it. */
#ifndef TFM_WEIGHTS_H
#define TFM_WEIGHTS_H

#include <tfm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOMEM. */
TFM_API enum tfm_status tfm_weights_create(struct tfm_weights **weights, struct tfm_error *err);
/* Gives up one reference; plans hold their own. NULL is fine. */
TFM_API void tfm_weights_release(struct tfm_weights *weights);

/* Copies `bytes` bytes in. INVALID_ARGUMENT: name already there; BUSY: a plan was compiled over
 * these weights (they are frozen then); NOMEM. */
TFM_API enum tfm_status tfm_weights_set(struct tfm_weights *weights, const char *name,
                                        enum tfm_dtype dtype, int rank, const int64_t *shape,
                                        const void *data, size_t bytes, struct tfm_error *err);

/* Borrows memory that outlives the weights (a mapped file). taken(context, data, bytes) is called when
 * a device has made its own copy and the pages are not needed for now; may be NULL. */
TFM_API enum tfm_status
tfm_weights_borrow(struct tfm_weights *weights, const char *name, enum tfm_dtype dtype, int rank,
                   const int64_t *shape, const void *data, size_t bytes,
                   void (*taken)(void *context, const void *data, size_t bytes), void *context,
                   struct tfm_error *err);

/* Runs when the last reference goes: the owner of borrowed memory lets go there. */
TFM_API void tfm_weights_on_destroy(struct tfm_weights *weights, void (*destroy)(void *context),
                                    void *context);

/* Gives the values of an entry up: for parameters that are trained, of which execs have their own. What was made of
 * them stays; who needs them later (an exec that shares nothing, a plan where the parameter is frozen) gets
 * NOT_FOUND. NOT_FOUND: there is none of that name. No other thread may be compiling with these weights. */
TFM_API enum tfm_status tfm_weights_forget(struct tfm_weights *weights, const char *name,
                                           struct tfm_error *err);

/* The bytes of an entry as its owner stores them. NOT_FOUND. */
TFM_API enum tfm_status tfm_weights_get(const struct tfm_weights *weights, const char *name,
                                        enum tfm_dtype *dtype, struct tfm_weight *weight,
                                        struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
