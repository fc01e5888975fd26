/* SPDX-License-Identifier: MIT
 * Stacks on the OpenCL backend (PoCL). */
#include "tests/nn/stack_cases.h"

int main(void)
{
    return stack_cases_run("opencl");
}
