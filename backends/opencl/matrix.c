/* SPDX-License-Identifier: MIT
 * Products of matrices that lie row-major (kernels/matrix.cl, matrix_group.cl): linear with a trainable weight, the
 * gradients of linear and of cross_entropy share how they are planned. Products of bf16 take two launches: one
 * that rounds a into the workspace, and the product. Both gradients of a linear take dy, one straight and one
 * turned: the launch before the first makes both forms.
 *
 *   workspace   a as bf16 (straight, turned) | tile of part 0 | tile of part 1 | ... */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Of a value that is rounded, and of products of bf16 in the time of one of f32. */
enum { ROUND_COST = 2, BF16_PRODUCTS = 2 };
enum { BAND = 8 }; /* TFM_MATRIX_BAND */

int tfm__cl_matrix_is_bf16(const struct tfm__cl_device *d, const struct tfm_tensor *weight)
{
    return weight->dtype == TFM_DTYPE_BF16 && tfm__cl_is_trainable(d, weight) &&
           tfm__cl_bf16_is_on(d);
}

/* Words of a tile. */
static size_t tile_words(size_t k)
{
    return (k < TFM__CL_MATRIX_DEPTH ? k : TFM__CL_MATRIX_DEPTH) * TFM__CL_MATRIX_WIDTH;
}

int tfm__cl_matrix_shares(const struct tfm__cl_device *d, const struct tfm_node *grad_x,
                          const struct tfm_node *grad_w)
{
    return grad_x->op == TFM_OP_LINEAR_GRAD_X && grad_w->op == TFM_OP_LINEAR_GRAD_W &&
           grad_x->inputs[1] == grad_w->inputs[1] && tfm__cl_matrix_is_bf16(d, grad_x->inputs[0]) &&
           tfm__cl_linear_grad_w_is_bf16(d, grad_w);
}

/* With room for a whole band. */
int tfm__cl_matrix_rounded(const struct tfm__cl_matrix *product, size_t *bytes)
{
    if (product->m > UINT32_MAX - 64 || product->k > UINT32_MAX - 64)
        return 0;
    return !tfm__mul_size((product->m + BAND - 1) / BAND * BAND,
                          product->turned ? TFM_BF16_STRIDE_TURNED(product->k)
                                          : TFM_BF16_STRIDE(product->k),
                          bytes) &&
           !tfm__mul_size(*bytes, sizeof(uint32_t), bytes) &&
           !tfm__align_size(*bytes, TFM_ALIGNMENT, bytes);
}

int tfm__cl_matrix_fits(const struct tfm__cl_device *d, const struct tfm_tensor *vectors,
                        const struct tfm_capacity *capacity, size_t width, char *reason,
                        size_t size)
{
    size_t bytes;

    if (!tfm__cl_vectors_fit(vectors, capacity, reason, size))
        return 0;
    const size_t rows = (size_t)tfm_tensor_rows_most(vectors, capacity) * tfm__cl_vectors(vectors);
    if (tfm__mul_size(tile_words(TFM__CL_MATRIX_DEPTH) * sizeof(float), d->parts, &bytes) ||
        (d->max_alloc && bytes > d->max_alloc))
        return tfm__cl_refuse(reason, size, "the tiles of %u parts do not fit a buffer", d->parts);
    const struct tfm__cl_matrix straight = {.m = rows, .k = width},
                                turned = {.turned = 1, .m = width, .k = rows};
    size_t most, other;
    if (width && (!tfm__cl_matrix_rounded(&straight, &most) ||
                  !tfm__cl_matrix_rounded(&turned, &other) || tfm__add_size(bytes, most, &bytes) ||
                  tfm__add_size(bytes, other, &bytes) || (d->max_alloc && bytes > d->max_alloc)))
        return tfm__cl_refuse(reason, size,
                              "%zu vectors of %zu as bf16 do not fit a buffer beside the tiles",
                              rows, width);
    return 1;
}

static enum tfm_status too_large(const struct tfm__cl_planner *p)
{
    return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                  "opencl: a product of bf16: the workspace is too large");
}

enum tfm_status tfm__cl_matrix_round(struct tfm__cl_planner *p, struct tfm__cl_launch *launch,
                                     const struct tfm__cl_matrix *product, size_t at)
{
    struct tfm__cl_launch round = {
        .kernel = {product->file, product->turned ? "tfm_run_bf16_turned" : "tfm_run_bf16_rows",
                   p->device->settings.bf16_options},
        .step = launch->step,
        .n_operands = 2,
        .operands = {launch->operands[product->a], tfm__cl_operand_workspace(at)},
    };

    launch->kernel.options = p->device->settings.bf16_options;
    launch->cost /= BF16_PRODUCTS;
    launch->operands[product->a] = tfm__cl_operand_workspace(at);
    round.step.width = (uint32_t)(product->turned ? product->m : product->k);
    round.cost = ROUND_COST * (uint64_t)round.step.width * round.step.vectors;
    return product->rounded ? TFM_STATUS_OK : tfm__cl_plan_launch(p, &round);
}

/* As tfm__cl_matrix_round, in both forms at the beginning of the workspace. bytes: of both. */
static enum tfm_status round_both(struct tfm__cl_planner *p, struct tfm__cl_launch *launch,
                                  const struct tfm__cl_matrix *product, size_t *bytes)
{
    const struct tfm__cl_operand dy = launch->operands[product->a];
    struct tfm__cl_matrix given = *product, other = *product;
    size_t straight, turned;

    other.turned = !product->turned;
    other.m = product->k;
    other.k = product->m;
    if (!tfm__cl_matrix_rounded(product->turned ? &other : product, &straight) ||
        !tfm__cl_matrix_rounded(product->turned ? product : &other, &turned) ||
        tfm__add_size(straight, turned, bytes))
        return too_large(p);
    given.rounded = 1;
    const enum tfm_status status =
        tfm__cl_matrix_round(p, launch, &given, product->turned ? straight : 0);
    if (status != TFM_STATUS_OK || product->rounded)
        return status;
    struct tfm__cl_launch round = {
        .kernel = {product->file, "tfm_run_bf16_both", launch->kernel.options},
        .step = launch->step,
        .n_operands = 3,
        .operands = {dy, tfm__cl_operand_workspace(0), tfm__cl_operand_workspace(straight)},
    };
    round.step.width = (uint32_t)(product->turned ? product->m : product->k);
    round.cost = 2 * ROUND_COST * (uint64_t)round.step.width * round.step.vectors;
    return tfm__cl_plan_launch(p, &round);
}

enum tfm_status tfm__cl_matrix_plan(struct tfm__cl_planner *p, struct tfm__cl_launch *launch,
                                    const struct tfm__cl_matrix *product)
{
    enum tfm_status status = TFM_STATUS_OK;
    size_t rounded = 0;

    launch->step.scratch = (uint32_t)tile_words(product->k);
    if (p->device->settings.shape == TFM__CL_GROUP) {
        launch->operands[launch->n_operands++] = tfm__cl_operand_workspace(0);
        launch->kernel = (struct tfm__cl_kernel){product->group_file, product->group, NULL};
        return tfm__cl_plan_group(p, launch, 0, 1);
    }
    launch->kernel = (struct tfm__cl_kernel){product->file, product->wide, TFM__CL_MATRIX_OPTIONS};
    if (product->both)
        status = round_both(p, launch, product, &rounded);
    else if (product->bf16)
        status = tfm__cl_matrix_rounded(product, &rounded)
                     ? tfm__cl_matrix_round(p, launch, product, 0)
                     : too_large(p);
    if (status != TFM_STATUS_OK)
        return status;
    launch->operands[launch->n_operands++] = tfm__cl_operand_workspace(rounded);
    tfm__cl_plan_workspace(p, rounded + launch->step.scratch * p->device->parts * sizeof(float));
    return tfm__cl_plan_launch(p, launch);
}
