/* SPDX-License-Identifier: MIT
 * The golden logits of the model in the box on the reference backend: no network, and sanitizers too. */
#include "tests/llm/golden_cases.h"

int main(void)
{
    return golden_cases_run_box("reference");
}
