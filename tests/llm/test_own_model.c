/* SPDX-License-Identifier: MIT
 * Models of our own kinds, trained, exported and read back, on the reference. */
#include "tests/llm/own_model_cases.h"

int main(void)
{
    return own_model_cases_run("reference");
}
