/* SPDX-License-Identifier: MIT
 * Curves of a training run as one SVG picture: axes with round numbers, a legend, readable on light and dark
 * pages; no script, no font or file from elsewhere. */
#ifndef TFM__TOOLS_CURVE_H
#define TFM__TOOLS_CURVE_H

#include <stddef.h>

#include <tfm/status.h>

/* Points that are not finite are left out, and the line is broken there. */
struct tfm__curve_series {
    const char *name;    /* for the legend; UTF-8, any character */
    const double *x, *y; /* [n], x ascending */
    size_t n;
    int dashed; /* validation beside training: the colour of the series before it */
};

struct tfm__curve {
    const char *title;             /* above the picture; NULL = none */
    const char *x_label, *y_label; /* "steps", "loss" */
    const struct tfm__curve_series *series;
    size_t n;
};

/* A series with more points than the picture has columns is drawn by the mean of each column. The vertical axis holds
 * what lies behind the first twentieth of the x axis: the fall from chance would flatten all that follows it. Without
 * any point the axes say so. The same points give the same bytes. The file is old or new, never half. IO; NOMEM. */
enum tfm_status tfm__curve_write(const char *path, const struct tfm__curve *curve,
                                 struct tfm_error *err);

#endif
