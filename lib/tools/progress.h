/* SPDX-License-Identifier: MIT
 * The bar on standard error while something takes long; nothing at all when that is no terminal. */
#ifndef TFM__TOOLS_PROGRESS_H
#define TFM__TOOLS_PROGRESS_H

#include <stddef.h>

struct tfm__progress {
    int on, colour;
    int shown;         /* percent that was drawn last, -1 = nothing */
    const char *label; /* what is going on */
    double began;      /* tfm__seconds(); 0 = the time left is not told */
};

/* Off without a terminal or with TERM=dumb; without colour under NO_COLOR (https://no-color.org). From then on a signal
 * that ends the program takes the bar off first. */
void tfm__progress_init(struct tfm__progress *progress); /* "loading" */
/* Another label, from now on with the time left. */
void tfm__progress_begin(struct tfm__progress *progress, const char *label);
/* As tfm_session_options.progress wants it. The bar is as wide as the terminal is now, and never fills its last columns:
 * a ^C that is typed behind it must not begin a new line. */
void tfm__progress_show(void *progress, size_t done, size_t total);
/* Takes the bar off the screen. */
void tfm__progress_clear(struct tfm__progress *progress);

/* Takes off whatever bar is there, so that a line can be written; the next show draws it again. */
void tfm__progress_hide(void);

#endif
