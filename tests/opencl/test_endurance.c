/* SPDX-License-Identifier: MIT
 * Many runs and a long one on OpenCL (PoCL). */
#include "tests/llm/endurance_cases.h"

int main(void)
{
    return endurance_cases_run("opencl");
}
