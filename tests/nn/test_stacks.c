/* SPDX-License-Identifier: MIT
 * Stacks on the reference backend. */
#include "tests/nn/stack_cases.h"

int main(void)
{
    return stack_cases_run("reference");
}
