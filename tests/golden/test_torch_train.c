/* SPDX-License-Identifier: MIT
 * PyTorch's training on the reference backend. */
#include "tests/golden/torch_train_cases.h"

int main(void)
{
    return torch_train_cases_run("reference");
}
