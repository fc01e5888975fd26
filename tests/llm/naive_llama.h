/* SPDX-License-Identifier: MIT
 * The Llama decoder once more, in plain double-precision loops over a GGUF file: no graph, no
 * cache, no chunks, its own dequantization. What sessions are compared with on small models. */
#ifndef TFM_TEST_NAIVE_LLAMA_H
#define TFM_TEST_NAIVE_LLAMA_H

#include <stddef.h>
#include <stdint.h>

struct naive_llama;

/* Ends the test program with a message when the file is not a Llama that it can read. */
struct naive_llama *naive_llama_open(const char *path);
void naive_llama_close(struct naive_llama *model); /* NULL is fine */
size_t naive_llama_vocab(const struct naive_llama *model);

/* Logits [vocab] after ids[n]; token i has RoPE position position + i. */
void naive_llama_logits(const struct naive_llama *model, const int32_t *ids, size_t n,
                        int64_t position, double *logits);

#endif
