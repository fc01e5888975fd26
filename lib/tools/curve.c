/* SPDX-License-Identifier: MIT
 * Writes curves as SVG 1.1 (https://www.w3.org/TR/SVG11/). */
#include "lib/tools/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/save.h"
#include "lib/tools/interrupt.h"

/* The picture in units of its viewBox, and the rectangle that the curves are drawn in. */
enum { WIDTH = 760, HEIGHT = 440, LEFT = 64, RIGHT = 744, TOP = 40, BOTTOM = 392 };
enum { COLUMNS = 340, COLOURS = 8, LEGEND_ROW = 18, LEGEND_ROWS = (BOTTOM - TOP) / LEGEND_ROW - 1 };

struct axis {
    double low, high, step; /* low and high are multiples of step */
    int decimals;
    double unit;        /* labels are values / unit */
    const char *suffix; /* "k", "M" */
};

struct picture {
    FILE *out;
    struct axis x, y;
};

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, so that about `wanted` of them fill the span. */
static double round_step(double span, int wanted)
{
    const double raw = span / wanted, power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}

static struct axis axis_make(double low, double high, int wanted)
{
    struct axis a = {.unit = 1, .suffix = ""};

    /* a span that vanishes beside its values would give equal labels and steps of nothing */
    if (!(high - low > 1e-6 * fmax(fabs(low), fabs(high))) || high - low < 1e-12) {
        const double more = fmax(fabs(low), 1) * 0.5;
        low -= more;
        high += more;
    }
    a.step = round_step(high - low, wanted);
    a.low = floor(low / a.step + 1e-9) * a.step;
    a.high = ceil(high / a.step - 1e-9) * a.step;
    const double most = fmax(fabs(a.low), fabs(a.high));
    if (most >= 1e9) {
        a.unit = 1e9;
        a.suffix = " G";
    } else if (most >= 1e6) {
        a.unit = 1e6;
        a.suffix = " M";
    } else if (most >= 1e4) {
        a.unit = 1e3;
        a.suffix = " k";
    }
    a.decimals = (int)fmin(9, fmax(0, -floor(log10(a.step / a.unit) + 1e-9)));
    return a;
}

static double place_x(const struct picture *p, double x)
{
    return LEFT + (x - p->x.low) / (p->x.high - p->x.low) * (RIGHT - LEFT);
}

static double place_y(const struct picture *p, double y)
{
    return BOTTOM - (y - p->y.low) / (p->y.high - p->y.low) * (BOTTOM - TOP);
}

static int drawn(const struct tfm__curve_series *s, size_t i)
{
    return isfinite(s->x[i]) && isfinite(s->y[i]);
}

/* Smallest and largest of the points from `from` on; 0 when there is none. */
static int range(const struct tfm__curve *curve, double from, double x[2], double y[2])
{
    int any = 0;

    for (size_t k = 0; k < curve->n; k++)
        for (size_t i = 0; i < curve->series[k].n; i++) {
            const struct tfm__curve_series *s = &curve->series[k];
            if (!drawn(s, i) || s->x[i] < from)
                continue;
            x[0] = any ? fmin(x[0], s->x[i]) : s->x[i];
            x[1] = any ? fmax(x[1], s->x[i]) : s->x[i];
            y[0] = any ? fmin(y[0], s->y[i]) : s->y[i];
            y[1] = any ? fmax(y[1], s->y[i]) : s->y[i];
            any = 1;
        }
    return any;
}

static int make_axes(const struct tfm__curve *curve, struct picture *p)
{
    double x[2] = {0, 1}, y[2] = {0, 1}, behind[2] = {0, 0};
    const int any = range(curve, -INFINITY, x, y);

    if (any)
        range(curve, x[0] + (x[1] - x[0]) / 20, behind, y);
    /* steps count from the beginning even when the first point is number 1 */
    if (x[0] > 0 && x[0] < x[1] / 10)
        x[0] = 0;
    p->x = axis_make(x[0], x[1], 8);
    p->y = axis_make(y[0], y[1], 6);
    return any;
}

/* ---- text ---- */

static void put_text(FILE *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '&')
            fputs("&amp;", out);
        else if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '>')
            fputs("&gt;", out);
        else
            fputc(*c < ' ' ? ' ' : *c, out);
}

static void put_label(const struct picture *p, double x, double y, const char *style,
                      const char *text)
{
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, style);
    put_text(p->out, text);
    fputs("</text>\n", p->out);
}

static void put_head(const struct picture *p, const struct tfm__curve *curve)
{
    /* legible on white and on near-black alike; Okabe and Ito's colours, which differ for the colour-blind */
    static const char *const colours[COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#b8860b", "#3a9fdb", "#7a5cc4", "#7f7f7f"};

    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n<title>",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_text(p->out, curve->title ? curve->title : curve->y_label);
    fputs("</title>\n<style>\n"
          "text { font: 13px sans-serif; fill: #24292f; }\n"
          ".page { fill: #ffffff; }\n"
          ".grid { stroke: #d0d7de; stroke-width: 1; }\n"
          ".line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }\n",
          p->out);
    for (int i = 0; i < COLOURS; i++)
        fprintf(p->out, ".c%d { stroke: %s; } .d%d { fill: %s; }\n", i, colours[i], i, colours[i]);
    fprintf(p->out,
            "@media (prefers-color-scheme: dark) {\n"
            "text { fill: #e6edf3; }\n.page { fill: #0d1117; }\n.grid { stroke: #30363d; }\n"
            ".c0 { stroke: #4aa3e0; } .d0 { fill: #4aa3e0; }\n}\n</style>\n"
            "<clipPath id=\"inside\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
            "</clipPath>\n<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n",
            LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP, WIDTH, HEIGHT);
}

static void put_axes(const struct picture *p, const struct tfm__curve *curve, int any)
{
    char text[64];

    for (int i = 0; p->x.low + i * p->x.step <= p->x.high + p->x.step / 2; i++) {
        const double value = p->x.low + i * p->x.step, x = place_x(p, value);
        fprintf(p->out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP, BOTTOM);
        snprintf(text, sizeof text, "%.*f%s", p->x.decimals, value / p->x.unit + 0.0, p->x.suffix);
        /* in the middle below its line, but for the last, which would not fit the page */
        if (x < RIGHT - 1)
            put_label(p, x, BOTTOM + 18, " text-anchor=\"middle\"", text);
        else
            put_label(p, WIDTH - 4, BOTTOM + 18, " text-anchor=\"end\"", text);
    }
    for (int i = 0; p->y.low + i * p->y.step <= p->y.high + p->y.step / 2; i++) {
        const double value = p->y.low + i * p->y.step, y = place_y(p, value);
        fprintf(p->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, RIGHT);
        snprintf(text, sizeof text, "%.*f%s", p->y.decimals, value / p->y.unit + 0.0, p->y.suffix);
        put_label(p, LEFT - 8, y + 4, " text-anchor=\"end\"", text);
    }
    put_label(p, (LEFT + RIGHT) / 2.0, HEIGHT - 10, " text-anchor=\"middle\"", curve->x_label);
    put_label(p, LEFT - 8, TOP - 14, " text-anchor=\"end\"", curve->y_label);
    if (curve->title)
        put_label(p, (LEFT + RIGHT) / 2.0, TOP - 14, " text-anchor=\"middle\" font-weight=\"bold\"",
                  curve->title);
    if (!any)
        put_label(p, (LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0, " text-anchor=\"middle\"",
                  "no points yet");
}

/* ---- curves ---- */

static int column(const struct picture *p, double x)
{
    const double at = floor((x - p->x.low) / (p->x.high - p->x.low) * COLUMNS);
    return (int)fmin(COLUMNS - 1, fmax(0, at));
}

/* The points that begin at `first` and are drawn as one: those of its column, up to one that is not finite. */
static size_t gather(const struct picture *p, const struct tfm__curve_series *s, size_t first,
                     double *x, double *y)
{
    double sum_x = s->x[first], sum_y = s->y[first];
    size_t end = first + 1;

    while (s->n > COLUMNS && end < s->n && drawn(s, end) &&
           column(p, s->x[end]) == column(p, s->x[first])) {
        sum_x += s->x[end];
        sum_y += s->y[end++];
    }
    *x = sum_x / (double)(end - first);
    *y = sum_y / (double)(end - first);
    return end;
}

/* Number `turn` of what has the same colour. */
static const char *dashes(const struct tfm__curve_series *s, unsigned turn)
{
    if (turn)
        return s->dashed ? " stroke-dasharray=\"6 3 2 3\"" : " stroke-dasharray=\"2 3\"";
    return s->dashed ? " stroke-dasharray=\"6 4\"" : "";
}

static void put_series(const struct picture *p, const struct tfm__curve_series *s, unsigned number)
{
    const unsigned colour = number % COLOURS;
    int pen_down = 0, begun = 0;
    double x, y;

    for (size_t i = 0; i < s->n;) {
        if (!drawn(s, i)) {
            pen_down = 0;
            i++;
            continue;
        }
        i = gather(p, s, i, &x, &y);
        if (!begun)
            fprintf(p->out, "<path class=\"line c%u\"%s clip-path=\"url(#inside)\" d=\"", colour,
                    dashes(s, number / COLOURS));
        begun = 1;
        fprintf(p->out, "%s%.1f %.1f", pen_down ? "L" : "M", place_x(p, x), place_y(p, y));
        pen_down = 1;
    }
    if (begun)
        fputs("\"/>\n", p->out);
    /* few points are seen as points: one alone would be no line at all */
    for (size_t i = 0; i < s->n && s->n <= 40; i++)
        if (drawn(s, i))
            fprintf(p->out,
                    "<circle class=\"d%u\" clip-path=\"url(#inside)\" cx=\"%.1f\" cy=\"%.1f\" "
                    "r=\"2.5\"/>\n",
                    colour, place_x(p, s->x[i]), place_y(p, s->y[i]));
}

/* At the top right, where falling curves leave room; names end at one line, so that no width is guessed. */
static void put_legend(const struct picture *p, const struct tfm__curve_series *s, unsigned number,
                       size_t row)
{
    const double y = TOP + 16 + (double)row * LEGEND_ROW;

    fprintf(p->out, "<path class=\"line c%u\"%s d=\"M%d %.1fH%d\"/>\n", number % COLOURS,
            dashes(s, number / COLOURS), RIGHT - 40, y, RIGHT - 8);
    put_label(p, RIGHT - 46, y + 4, " text-anchor=\"end\"", s->name);
}

static void put_all(struct picture *p, const struct tfm__curve *curve)
{
    const int any = make_axes(curve, p);
    unsigned number = 0, next = 0; /* of what has a colour of its own */

    put_head(p, curve);
    put_axes(p, curve, any);
    for (size_t k = 0; k < curve->n; k++) {
        if (!curve->series[k].dashed || k == 0)
            number = next++;
        put_series(p, &curve->series[k], number);
        if (k < LEGEND_ROWS)
            put_legend(p, &curve->series[k], number, k);
    }
    fputs("</svg>\n", p->out);
}

enum tfm_status tfm__curve_write(const char *path, const struct tfm__curve *curve,
                                 struct tfm_error *err)
{
    struct tfm__signals held;
    struct tfm__save save;
    char *text = NULL;
    size_t size = 0;
    struct picture p = {.out = open_memstream(&text, &size)};
    enum tfm_status status = TFM_STATUS_OK;

    tfm_error_clear(err);
    if (p.out)
        put_all(&p, curve);
    /* the text is whole only when nothing ran out of memory on the way */
    const int broken = !p.out || ferror(p.out);
    if ((p.out && fclose(p.out) != 0) || broken)
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    /* no temporary file stays behind when the user ends the program just now */
    tfm__signals_hold(&held);
    if (status == TFM_STATUS_OK)
        status = tfm__save_begin(&save, path, err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_put(&save, text, size, err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_finish(&save, err);
    tfm__signals_release(&held);
    free(text);
    return status;
}
