/* SPDX-License-Identifier: MIT
 * The worked numbers on the OpenCL backend (PoCL). */
#include "tests/nn/worked_cases.h"

int main(void)
{
    return worked_cases_run("opencl");
}
