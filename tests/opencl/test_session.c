/* SPDX-License-Identifier: MIT
 * Sessions on OpenCL (PoCL), nothing falling back. */
#include "tests/llm/session_cases.h"

int main(void)
{
    return session_cases_run("opencl");
}
