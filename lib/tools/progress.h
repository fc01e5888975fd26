/* SPDX-License-Identifier: MIT
 * The bar on standard error while something takes long; nothing at all when that is no terminal. */
#ifndef TFM__TOOLS_PROGRESS_H
#define TFM__TOOLS_PROGRESS_H

#include <stddef.h>

struct tfm__progress {
    int on, colour;
    int shown;         /* percent on the screen, -1 = nothing */
    const char *label; /* what is going on */
    double began;      /* tfm__seconds(); 0 = the time left is not told */
};

/* Off without a terminal or with TERM=dumb; without colour under NO_COLOR (https://no-color.org).
 */
void tfm__progress_init(struct tfm__progress *progress); /* "loading" */
/* Another label, from now on with the time left. */
void tfm__progress_begin(struct tfm__progress *progress, const char *label);
/* As tfm_session_options.progress wants it. */
void tfm__progress_show(void *progress, size_t done, size_t total);
/* Takes the bar off the screen. */
void tfm__progress_clear(struct tfm__progress *progress);

#endif
