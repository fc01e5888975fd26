/* SPDX-License-Identifier: MIT
 * The golden logits on OpenCL (PoCL), nothing falling back. */
#include "tests/llm/golden_cases.h"

int main(void)
{
    return golden_cases_run("opencl");
}
