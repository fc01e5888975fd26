/* SPDX-License-Identifier: MIT
 * Many runs and a long one on the reference. */
#include "tests/llm/endurance_cases.h"

int main(void)
{
    return endurance_cases_run("reference");
}
