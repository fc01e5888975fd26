/* SPDX-License-Identifier: MIT
 * linear with many rows by our own matrix product: one launch that unpacks pairs of panels and sweeps the
 * rows over them (kernels/linear_panels.cl). */
#include "backends/opencl/internal.h"

enum tfm_status tfm__cl_linear_panels_plan(struct tfm__cl_planner *p,
                                           const struct tfm__cl_launch *vector)
{
    const uint32_t depth =
        vector->step.width < TFM__CL_PANELS_DEPTH ? vector->step.width : TFM__CL_PANELS_DEPTH;
    struct tfm__cl_launch panels = *vector;

    panels.kernel = (struct tfm__cl_kernel){"linear_panels.cl", "tfm_run_linear_panels", NULL};
    panels.step.scratch = depth * 2 * TFM_PANEL;
    tfm__cl_plan_workspace(p, (size_t)panels.step.scratch * p->device->parts * sizeof(float));
    return tfm__cl_plan_launch(p, &panels);
}
