/* SPDX-License-Identifier: MIT
 * The memory of a training on the OpenCL backend (PoCL), in both shapes. */
#include "tests/train/memory_cases.h"

int main(void)
{
    return memory_cases_run("opencl");
}
