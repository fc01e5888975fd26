/* SPDX-License-Identifier: MIT
 * The two orders of the rows of a head of q and k: rotary pairs adjacent (GGUF's llama), or the halves of the head
 * (Hugging Face). */
#ifndef TFM__LLM_ROPE_ROWS_H
#define TFM__LLM_ROPE_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* The row of the source that stands in row `at` of what is written. pair_rows > 0: heads of so many rows, halves in the
 * source, pairs written; negative: pairs in the source, halves written; 0: the same row. */
static inline size_t tfm__rope_row(int64_t pair_rows, size_t at)
{
    const size_t head = (size_t)(pair_rows < 0 ? -pair_rows : pair_rows), half = head / 2;

    if (head == 0)
        return at;
    const size_t first = at / head * head, i = at % head;
    if (pair_rows < 0)
        return first + (i < half ? 2 * i : 2 * (i - half) + 1);
    return first + i / 2 + i % 2 * half;
}

#endif
