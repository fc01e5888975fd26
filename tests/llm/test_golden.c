/* SPDX-License-Identifier: MIT
 * The golden logits on the reference backend. */
#include "tests/llm/golden_cases.h"

int main(void)
{
    return golden_cases_run("reference");
}
