/* SPDX-License-Identifier: MIT
 * A bar that is drawn over itself and leaves the line empty. */
#include "lib/tools/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/tools/clock.h"

enum { BAR_CELLS = 30, LABEL_CELLS = 24, LEFT_CELLS = 16 };

void tfm__progress_init(struct tfm__progress *progress)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    progress->on = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    progress->colour = progress->on && !(no_colour && *no_colour);
    progress->shown = -1;
    progress->label = "loading";
    progress->began = 0;
}

void tfm__progress_begin(struct tfm__progress *progress, const char *label)
{
    tfm__progress_clear(progress);
    progress->label = label;
    progress->began = tfm__seconds();
}

/* " 1:05 left", "" while nothing can be said */
static void time_left(const struct tfm__progress *progress, size_t done, size_t total,
                      char text[LEFT_CELLS])
{
    text[0] = 0;
    if (progress->began <= 0 || done == 0 || done > total)
        return;
    const double rate = (tfm__seconds() - progress->began) / (double)done;
    const double left = rate * (double)(total - done);
    if (left < 5940) /* 99 minutes */
        snprintf(text, LEFT_CELLS, " %u:%02u left", (unsigned)left / 60 % 100, (unsigned)left % 60);
    else
        snprintf(text, LEFT_CELLS, " hours left");
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
    char left[LEFT_CELLS];
    time_left(progress, done, total, left);
    fprintf(stderr, "\r%.*s [%s%.*s%s%*s] %3d%%%-*s", LABEL_CELLS, progress->label,
            progress->colour ? "\033[32m" : "", full, "##############################",
            progress->colour ? "\033[0m" : "", BAR_CELLS - full, "", percent,
            progress->began > 0 ? LEFT_CELLS - 1 : 0, left);
    fflush(stderr);
}

void tfm__progress_clear(struct tfm__progress *progress)
{
    if (progress->on && progress->shown >= 0)
        fprintf(stderr, "\r%*s\r", LABEL_CELLS + BAR_CELLS + 8 + LEFT_CELLS, "");
    progress->shown = -1;
}
