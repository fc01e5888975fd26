/* SPDX-License-Identifier: MIT
 * Sessions on the reference backend. */
#include "tests/llm/session_cases.h"

int main(void)
{
    return session_cases_run("reference");
}
