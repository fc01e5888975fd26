/* SPDX-License-Identifier: MIT
 * The host thread pool: parks at once when idle, never spins. */
#ifndef TFM__CORE_POOL_H
#define TFM__CORE_POOL_H

#include <stddef.h>

/* As tfm_host.parallel_for. Calls from several threads take turns: one loop at a time uses the
 * pool, the others run alone on their caller's thread. */
void tfm__parallel_for(size_t n, void (*body)(void *context, size_t begin, size_t end),
                       void *context);

#endif
