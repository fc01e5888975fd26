/* SPDX-License-Identifier: MIT
 * PyTorch's results on OpenCL (PoCL). */
#include "tests/golden/torch_cases.h"

int main(void)
{
    return torch_cases_run("opencl");
}
