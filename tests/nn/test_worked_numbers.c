/* SPDX-License-Identifier: MIT
 * The worked numbers on the reference backend. */
#include "tests/nn/worked_cases.h"

int main(void)
{
    return worked_cases_run("reference");
}
