/* SPDX-License-Identifier: MIT
 * The ops on OpenCL (PoCL), against the reference. */
#include "tests/ops/ops_cases.h"

int main(void)
{
    return ops_cases_run("opencl");
}
