/* SPDX-License-Identifier: MIT
 * GGUF files that lie, one a row: what is made, and what the error must say. */
#ifndef TESTS_LLM_GGUF_HOSTILE_H
#define TESTS_LLM_GGUF_HOSTILE_H

#include "tests/llm/gguf_builder.h"

struct gguf_hostile {
    const char *what; /* the fault that it catches */
    void (*make)(struct gguf_builder *builder);
    /* parts of the error text besides file name and byte offset; NULL, NULL = the file is fine */
    const char *says[2];
};

extern const struct gguf_hostile gguf_hostile[];
extern const size_t gguf_hostile_count;

#endif
