/* SPDX-License-Identifier: MIT
 * The optimizer on the OpenCL backend (PoCL). */
#include "tests/train/optimizer_cases.h"

int main(void)
{
    return optimizer_cases_run("opencl");
}
