/* SPDX-License-Identifier: MIT
 * The optimizer on `reference`. */
#include "tests/train/optimizer_cases.h"

int main(void)
{
    return optimizer_cases_run("reference");
}
