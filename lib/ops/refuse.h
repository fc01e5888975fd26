/* SPDX-License-Identifier: MIT
 * What the shape rules share: what kind of operand a tensor is, and the one form of their refusals.
 */
#ifndef TFM__OPS_REFUSE_H
#define TFM__OPS_REFUSE_H

#include "lib/core/rule.h"

/* "linear: x [N, in] and ... ; got x 'h' [N, 3] f32, weight 'w' [5, 4] f32": the op, what must
 * hold, and every input with its name, shape and dtype. roles[i] names input i; `must` has no
 * newline. */
enum tfm_status tfm__op_refuse(struct tfm_error *err, enum tfm_status status,
                               const struct tfm_node *node, const char *const *roles,
                               const char *must);

/* [N, ...] or [R, ...]: outermost extent is the rows of a run. */
static inline int tfm__is_activation(const struct tfm_tensor *t)
{
    return t->extent == TFM_EXTENT_ROWS || t->extent == TFM_EXTENT_OUT_ROWS;
}

/* A weight or constant: backends take these once, when they compile. */
static inline int tfm__is_constant(const struct tfm_tensor *t)
{
    return t->extent == TFM_EXTENT_FIXED &&
           (t->kind == TFM_TENSOR_PARAMETER || t->kind == TFM_TENSOR_BUFFER);
}

static inline int tfm__is_class(const struct tfm_tensor *t, enum tfm_dtype_class dtype_class)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(t->dtype);
    return info && info->dtype_class == dtype_class;
}

/* A state that an op adds to: of `dtype`, F32 or F64 as what is computed. */
static inline int tfm__is_sum(const struct tfm_tensor *t, enum tfm_dtype dtype)
{
    return t->extent == TFM_EXTENT_FIXED && t->kind == TFM_TENSOR_STATE && t->dtype == dtype;
}

/* Input i, NULL if it is absent, also behind the last. */
static inline const struct tfm_tensor *tfm__op_input(const struct tfm_node *node, uint32_t i)
{
    return i < node->n_inputs ? node->inputs[i] : NULL;
}

/* Float or block: what a weight may be stored as. */
static inline int tfm__is_storage(const struct tfm_tensor *t)
{
    return tfm__is_class(t, TFM_DTYPE_FLOAT) || tfm__is_class(t, TFM_DTYPE_BLOCK);
}

/* Rows of the table lie in whole blocks: its last extent is a multiple of the block. */
static inline int tfm__is_whole_blocks(const struct tfm_tensor *t)
{
    return t->shape[t->rank - 1] % tfm_dtype_info(t->dtype)->block == 0;
}

/* The precision that goes with activations of x: F64 stays F64, everything else meets F32. */
static inline enum tfm_dtype tfm__companion(enum tfm_dtype x)
{
    return x == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

/* Same extents in all dimensions (the outermost by its kind when it is N or R). */
int tfm__same_shape(const struct tfm_tensor *a, const struct tfm_tensor *b);

/* Gives `out` the extent, rank and shape of `like`, and a dtype of its own. */
void tfm__shape_like(struct tfm_tensor *out, const struct tfm_tensor *like, enum tfm_dtype dtype);

#endif
