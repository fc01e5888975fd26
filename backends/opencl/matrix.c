/* SPDX-License-Identifier: MIT
 * Products of matrices that lie row-major (kernels/matrix.cl, matrix_group.cl): linear with a trainable weight
 * and the gradients of linear share how they are planned. */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Values of k that are packed at once; passed to the kernel with -D. Columns of a tile, TFM_MATRIX_WIDTH. */
#define DEPTH      2048
#define TEXT(x)    TEXT_OF(x)
#define TEXT_OF(x) #x
enum { WIDTH = 32 };

static size_t tile_floats(size_t k)
{
    return (k < DEPTH ? k : DEPTH) * WIDTH;
}

int tfm__cl_matrix_fits(const struct tfm__cl_device *d, const struct tfm_tensor *vectors,
                        const struct tfm_capacity *capacity, char *reason, size_t size)
{
    size_t bytes;

    if (!tfm__cl_vectors_fit(vectors, capacity, reason, size))
        return 0;
    if (tfm__mul_size(tile_floats(DEPTH) * sizeof(float), d->parts, &bytes) ||
        (d->max_alloc && bytes > d->max_alloc))
        return tfm__cl_refuse(reason, size, "the tiles of %u parts do not fit a buffer", d->parts);
    return 1;
}

enum tfm_status tfm__cl_matrix_plan(struct tfm__cl_planner *p, struct tfm__cl_launch *launch,
                                    const struct tfm__cl_matrix *names, size_t k)
{
    launch->step.scratch = (uint32_t)tile_floats(k);
    launch->operands[launch->n_operands++] = tfm__cl_operand_workspace(0);
    if (p->device->settings.shape == TFM__CL_GROUP) {
        launch->kernel = (struct tfm__cl_kernel){"matrix_group.cl", names->group, NULL};
        return tfm__cl_plan_group(p, launch, 0, 1);
    }
    launch->kernel =
        (struct tfm__cl_kernel){"matrix.cl", names->wide, "-DTFM_MATRIX_DEPTH=" TEXT(DEPTH)};
    tfm__cl_plan_workspace(p, launch->step.scratch * p->device->parts * sizeof(float));
    return tfm__cl_plan_launch(p, launch);
}
