/* SPDX-License-Identifier: MIT
 * Properties of layers on the reference backend. */
#include "tests/nn/stack_cases.h"

int main(void)
{
    return property_cases_run("reference");
}
