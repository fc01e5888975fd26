/* SPDX-License-Identifier: MIT
 * Properties of layers on the OpenCL backend (PoCL). */
#include "tests/nn/stack_cases.h"

int main(void)
{
    return property_cases_run("opencl");
}
