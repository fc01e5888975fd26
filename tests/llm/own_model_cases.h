/* SPDX-License-Identifier: MIT
 * Every kind of decoder that can be trained: trained a little, exported, read back and run. */
#ifndef TESTS_LLM_OWN_MODEL_CASES_H
#define TESTS_LLM_OWN_MODEL_CASES_H

/* The main of a program that runs them on a backend. */
int own_model_cases_run(const char *backend);

#endif
