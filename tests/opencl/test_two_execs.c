/* SPDX-License-Identifier: MIT
 * Two execs over one plan on OpenCL (PoCL). */
#include "tests/core/two_execs_cases.h"

int main(void)
{
    return two_execs_cases_run("opencl");
}
