/* SPDX-License-Identifier: MIT
 * Moving weights, and the memory of attention, on the OpenCL backend (PoCL). */
#include "tests/nn/weights_cases.h"

int main(void)
{
    return weights_cases_run("opencl");
}
