/* SPDX-License-Identifier: MIT
 * A bar that is drawn over itself and leaves the line empty. */
#include "lib/tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR_CELLS = 30 };

void tfm__progress_init(struct tfm__progress *progress)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    progress->on = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    progress->colour = progress->on && !(no_colour && *no_colour);
    progress->shown = -1;
}

void tfm__progress_show(void *context, size_t done, size_t total)
{
    struct tfm__progress *progress = context;
    if (!progress->on)
        return;
    int percent = total ? (int)(100.0 * (double)done / (double)total) : 100;
    if (percent == progress->shown)
        return;
    progress->shown = percent;
    int full = percent * BAR_CELLS / 100;
    fprintf(stderr, "\rloading [%s%.*s%s%*s] %3d%%", progress->colour ? "\033[32m" : "", full,
            "##############################", progress->colour ? "\033[0m" : "", BAR_CELLS - full,
            "", percent);
    fflush(stderr);
}

void tfm__progress_clear(struct tfm__progress *progress)
{
    if (progress->on && progress->shown >= 0)
        fprintf(stderr, "\r%*s\r", BAR_CELLS + 16, "");
    progress->shown = -1;
}
