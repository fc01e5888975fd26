/* SPDX-License-Identifier: MIT
 * Losses, gradients and ten steps of AdamW as PyTorch makes them, for every backend. */
#ifndef TESTS_GOLDEN_TORCH_TRAIN_CASES_H
#define TESTS_GOLDEN_TORCH_TRAIN_CASES_H

/* The main of a test program. */
int torch_train_cases_run(const char *backend);

#endif
