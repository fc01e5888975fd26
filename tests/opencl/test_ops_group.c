/* SPDX-License-Identifier: MIT
 * The ops on OpenCL (PoCL) in the group shape, against the reference. */
#include "tests/ops/ops_cases.h"

#include <stdlib.h>

int main(void)
{
    setenv("TFM_OPENCL_SHAPE", "group", 1);
    return ops_cases_run("opencl");
}
