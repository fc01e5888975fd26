/* SPDX-License-Identifier: MIT
 * The golden logits on OpenCL (PoCL) in the group shape, nothing falling back. Catches sums over local
 * memory that are right op by op but not behind one another. */
#include "tests/llm/golden_cases.h"

#include <stdlib.h>

int main(void)
{
    setenv("TFM_OPENCL_SHAPE", "group", 1);
    return golden_cases_run("opencl");
}
