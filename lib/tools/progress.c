/* SPDX-License-Identifier: MIT
 * A bar that is drawn over itself and leaves the line empty. */
#include "lib/tools/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/tools/clock.h"
#include "lib/tools/interrupt.h"

enum {
    COLUMNS = 80, /* of a terminal that does not say */
    MOST_COLUMNS = 240,
    FREE_COLUMNS =
        3, /* at the right: ^C, and the last one, behind which some terminals begin a line */
    LEAST_CELLS = 5, /* of a bar; in a narrower terminal there is none, but numbers */
    MOST_CELLS = 60,
    LEFT_SIZE = 24,
};

/* There is one standard error, so one bar: the columns in which something may stand, 0 = there is none. */
static volatile sig_atomic_t drawn;

static int columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS;
    return size.ws_col < MOST_COLUMNS ? size.ws_col : MOST_COLUMNS;
}

/* Overwrites the bar and what was typed behind it. Blanks, not an escape sequence: NO_COLOR has none. */
void tfm__progress_hide(void)
{
    char line[MOST_COLUMNS + 2];
    const int n = drawn, now = columns();
    const size_t blanks = (size_t)(n < now ? n : now - 1); /* it may have become narrower */

    if (n == 0)
        return;
    line[0] = line[blanks + 1] = '\r';
    memset(line + 1, ' ', blanks);
    drawn = 0;
    /* a signal may end the program in the midst of a call of stdio; nothing is to be done about a short write */
    if (write(STDERR_FILENO, line, blanks + 2) < 0)
        return;
}

void tfm__progress_init(struct tfm__progress *progress)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    progress->on = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    progress->colour = progress->on && !(no_colour && *no_colour);
    progress->shown = -1;
    progress->label = "loading";
    progress->began = 0;
    if (progress->on)
        tfm__ending_catch(tfm__progress_hide);
}

void tfm__progress_begin(struct tfm__progress *progress, const char *label)
{
    tfm__progress_clear(progress);
    progress->label = label;
    progress->began = tfm__seconds();
}

/* " 1:05 left", " 2:01:05 left"; "" while nothing can be said */
static void time_left(const struct tfm__progress *progress, size_t done, size_t total,
                      char text[LEFT_SIZE])
{
    text[0] = 0;
    if (progress->began <= 0 || done == 0 || done > total)
        return;
    const double rate = (tfm__seconds() - progress->began) / (double)done;
    const double left = rate * (double)(total - done);
    const unsigned seconds = left < 3.6e6 ? (unsigned)left : 0;
    if (left >= 3.6e6)
        snprintf(text, LEFT_SIZE, " weeks left");
    else if (seconds >= 3600)
        snprintf(text, LEFT_SIZE, " %u:%02u:%02u left", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
    else
        snprintf(text, LEFT_SIZE, " %u:%02u left", seconds / 60, seconds % 60);
}

/* "label [####    ]  50% 0:12 left" in at most `room` columns; without the bar where there is no room for one. */
static void draw(const struct tfm__progress *progress, int percent, const char *left, int room)
{
    char line[MOST_COLUMNS + 1], bar[MOST_CELLS + 1];
    const int others = (int)(strlen(progress->label) + strlen(" [] 100%") + strlen(left));
    const int cells = room - others < MOST_CELLS ? room - others : MOST_CELLS;
    const int full = percent * cells / 100;

    if (cells < LEAST_CELLS) {
        snprintf(line, sizeof line, "%s %3d%%%s", progress->label, percent, left);
        fprintf(stderr, "\r%.*s", room, line);
        return;
    }
    memset(bar, '#', sizeof bar);
    fprintf(stderr, "\r%s [%s%.*s%s%*s] %3d%%%s", progress->label,
            progress->colour ? "\033[32m" : "", full, bar, progress->colour ? "\033[0m" : "",
            cells - full, "", percent, left);
}

void tfm__progress_show(void *context, size_t done, size_t total)
{
    struct tfm__progress *progress = context;
    char left[LEFT_SIZE];

    if (!progress->on)
        return;
    const int percent = total ? (int)(100.0 * (double)done / (double)total) : 100;
    if (percent == progress->shown && drawn)
        return;
    const int width = columns();
    time_left(progress, done, total, left);
    tfm__progress_hide(); /* a shorter one must not leave the end of a longer one */
    progress->shown = percent;
    if (width <= FREE_COLUMNS)
        return;
    drawn = width - 1;
    draw(progress, percent, left, width - FREE_COLUMNS);
    fflush(stderr);
}

void tfm__progress_clear(struct tfm__progress *progress)
{
    if (progress->on)
        tfm__progress_hide();
    progress->shown = -1;
}
