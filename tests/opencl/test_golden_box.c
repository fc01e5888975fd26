/* SPDX-License-Identifier: MIT
 * The golden logits of the model in the box on OpenCL (PoCL), nothing falling back. Catches what SmolLM2 has
 * none of: Q8_0 in every layer, heads of 32, and widths that few kernels were tuned for. */
#include "tests/llm/golden_cases.h"

int main(void)
{
    return golden_cases_run_box("opencl");
}
