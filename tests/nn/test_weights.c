/* SPDX-License-Identifier: MIT
 * Moving weights, and the memory of attention, on the reference backend. */
#include "tests/nn/weights_cases.h"

int main(void)
{
    return weights_cases_run("reference");
}
