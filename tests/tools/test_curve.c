/* SPDX-License-Identifier: MIT
 * Curves as SVG: points stand where their numbers say, axes carry round numbers, names cannot break the file, points
 * that are not finite break the line, many points become few. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "lib/tools/curve.h"
#include "tests/folder.h"

static char *text; /* of the file */

static void leave_folder(void)
{
    free(text);
    folder_leave((const char *const[]){"a.svg"}, 1);
}

static void read_back(void)
{
    FILE *file = fopen("a.svg", "rb");
    size_t size;

    ck_assert_ptr_nonnull(file);
    free(text);
    text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(text);
    size = fread(text, 1, (1 << 20) - 1, file);
    ck_assert(size > 0 && size < (1 << 20) - 1);
    fclose(file);
}

static void draw(const struct tfm__curve_series *series, size_t n)
{
    const struct tfm__curve curve = {"a title", "steps", "loss", series, n};
    struct tfm_error err = {0};

    ck_assert_msg(tfm__curve_write("a.svg", &curve, &err) == TFM_STATUS_OK, "%s", err.text);
    read_back();
}

static int holds(const char *what)
{
    return strstr(text, what) != NULL;
}

static size_t count(const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

START_TEST(points_stand_where_they_should)
{
    const double x[] = {0, 50, 100}, y[] = {5, 2.5, 0};
    const double y2[] = {0, 2.5, 5};
    const struct tfm__curve_series series[] = {{"down", x, y, 3, 0}, {"up", x, y2, 3, 0}};

    draw(series, 2);
    ck_assert(holds("<path class=\"line c0\" clip-path=\"url(#inside)\" "
                    "d=\"M64.0 40.0L404.0 216.0L744.0 392.0\"/>"));
    ck_assert(holds("<path class=\"line c1\" clip-path=\"url(#inside)\" "
                    "d=\"M64.0 392.0L404.0 216.0L744.0 40.0\"/>"));
    ck_assert(holds(">down</text>") && holds(">up</text>") && holds(">steps</text>") &&
              holds(">loss</text>") && holds(">a title</text>"));
    ck_assert(holds("<circle class=\"d0\" clip-path=\"url(#inside)\" cx=\"404.0\" cy=\"216.0\""));
}
END_TEST

/* Lowest and highest label of each axis, and one between, for a line from (x0, y0) to (x1, y1). */
static const struct {
    double x0, x1, y0, y1;
    const char *labels[4];
} axes[] = {
    {0, 3117, 3.2, 8.3, {">0</text>", ">3000</text>", ">3</text>", ">9</text>"}},
    {2048, 6383616, 4.21, 4.38, {">0 M</text>", ">7 M</text>", ">4.20</text>", ">4.40</text>"}},
    {1, 60, 0.001, 0.0042, {">0</text>", ">60</text>", ">0.001</text>", ">0.005</text>"}},
    {1, 40000, -1, 1, {">0 k</text>", ">40 k</text>", ">-1.0</text>", ">0.5</text>"}},
    {7, 7, 2, 2, {">3</text>", ">11</text>", ">1.0</text>", ">3.0</text>"}},
};

START_TEST(axes_carry_round_numbers)
{
    const double x[] = {axes[_i].x0, axes[_i].x1}, y[] = {axes[_i].y1, axes[_i].y0};
    /* the last point twice: both ends of y lie behind the first twentieth */
    const double x3[] = {x[0], x[0] + (x[1] - x[0]) / 2, x[1]}, y3[] = {y[0], y[0], y[1]};
    const struct tfm__curve_series series = {"a", x3, y3, 3, 0};

    draw(&series, 1);
    for (size_t i = 0; i < 4; i++)
        ck_assert_msg(holds(axes[_i].labels[i]), "case %d lacks %s in\n%s", _i, axes[_i].labels[i],
                      text);
    ck_assert_msg(count("</text>") <= 4 + 14 + 14, "too many labels in\n%s", text);
}
END_TEST

START_TEST(the_fall_from_chance_leaves_the_picture)
{
    double x[1000], y[1000];
    for (int i = 0; i < 1000; i++) {
        x[i] = i + 1;
        y[i] = i < 10 ? 100 - i : 4 - i / 1000.0;
    }
    const struct tfm__curve_series series = {"a", x, y, 1000, 0};
    draw(&series, 1);
    ck_assert(holds(">4.0</text>") && !holds(">100</text>") && !holds(">20</text>"));
    ck_assert(holds("clip-path=\"url(#inside)\""));
}
END_TEST

START_TEST(points_that_are_not_finite)
{
    const double x[] = {0, 1, 2, 3, 4, NAN, 6}, y[] = {1, 2, NAN, 2, INFINITY, 1, 0};
    const struct tfm__curve_series series = {"a", x, y, 7, 0};

    draw(&series, 1);
    const char *line = strstr(text, "clip-path=\"url(#inside)\" d=\"");
    ck_assert_ptr_nonnull(line);
    size_t moves = 0, lines = 0;
    for (const char *c = line + 27; *c != '/'; c++) {
        moves += *c == 'M';
        lines += *c == 'L';
    }
    ck_assert_uint_eq(moves, 3); /* 0-1, 3, 6 */
    ck_assert_uint_eq(lines, 1);
    ck_assert(!holds("nan") && !holds("inf ") && !holds("inf\""));
    ck_assert_uint_eq(count("<circle"), 4);
}
END_TEST

START_TEST(without_points)
{
    const double x = NAN, y = 1;
    const struct tfm__curve_series series[] = {{"none", NULL, NULL, 0, 0}, {"nan", &x, &y, 1, 0}};

    draw(series, 2);
    ck_assert(holds("no points yet") && holds(">none</text>"));
    draw(NULL, 0);
    ck_assert(holds("no points yet") && holds("</svg>"));
}
END_TEST

START_TEST(names_are_text)
{
    const double x[] = {0, 1}, y[] = {0, 1};
    const struct tfm__curve_series series = {"<script>&\n]]> \xc3\xa9", x, y, 2, 0};

    draw(&series, 1);
    ck_assert(holds(">&lt;script&gt;&amp; ]]&gt; \xc3\xa9</text>"));
    ck_assert(!holds("<script"));
    ck_assert_uint_eq(count("http"), 1); /* the name space: nothing is loaded */
}
END_TEST

START_TEST(many_points_become_few)
{
    enum { N = 100000 };
    double *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    ck_assert(x && y);
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = 3 + (i & 1); /* noise whose mean is 3.5 */
    }
    const struct tfm__curve_series series = {"a", x, y, N, 0};
    draw(&series, 1);
    ck_assert(strlen(text) < 12000);
    const char *line = strstr(text, "clip-path=\"url(#inside)\" d=\"M");
    double px, py;
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line + 29, "%lf %lf", &px, &py), 2);
    ck_assert_double_eq_tol(py, 216, 1.01); /* the middle, not an end */
    ck_assert_uint_eq(count("<circle"), 0);
    free(x);
    free(y);
}
END_TEST

START_TEST(a_dashed_series_has_the_colour_before_it)
{
    const double x[] = {0, 1}, y[] = {0, 1};
    const struct tfm__curve_series series[] = {{"a", x, y, 2, 0},
                                               {"a held out", x, y, 2, 1},
                                               {"b", x, y, 2, 0},
                                               {"b held out", x, y, 2, 1}};

    draw(series, 4);
    ck_assert_uint_eq(count("<path class=\"line c0\""), 4);
    ck_assert_uint_eq(count("<path class=\"line c0\" stroke-dasharray"), 2);
    ck_assert_uint_eq(count("<path class=\"line c1\""), 4);
    ck_assert_uint_eq(count("<path class=\"line c2\""), 0);
}
END_TEST

/* There are more series than colours: two that look alike could not be told apart. */
START_TEST(many_series_stay_apart)
{
    const double x[] = {0, 1}, y[] = {0, 1};
    struct tfm__curve_series series[12];
    char *seen[12], *at, *end;
    size_t n = 0;

    for (size_t k = 0; k < 12; k++)
        series[k] = (struct tfm__curve_series){"s", x, y, 2, 0};
    draw(series, 12);
    for (at = text; n < 12 && (at = strstr(at, "<path class=\"line ")) != NULL; at = end + 1) {
        end = strstr(at, " d=\"");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        if (!strstr(at, "clip-path")) /* of the legend */
            continue;
        for (size_t k = 0; k < n; k++)
            ck_assert_msg(strcmp(seen[k], at) != 0, "series %zu looks like %zu: %s", n, k, at);
        seen[n++] = at;
    }
    ck_assert_uint_eq(n, 12);
}
END_TEST

/* The last label of the x axis, drawn around its line, would leave the page. */
START_TEST(the_last_label_is_whole)
{
    const double x[] = {0, 2400000}, y[] = {0, 1};
    const struct tfm__curve_series series = {"s", x, y, 2, 0};

    draw(&series, 1);
    ck_assert(holds("<text x=\"756.0\" y=\"410.0\" text-anchor=\"end\">2.5 M</text>"));
}
END_TEST

START_TEST(same_points_same_bytes)
{
    const double x[] = {0, 1, 2}, y[] = {3, 1.0 / 3, 2.0 / 7};
    const struct tfm__curve_series series = {"a", x, y, 3, 0};

    draw(&series, 1);
    char *first = strdup(text);
    draw(&series, 1);
    ck_assert_str_eq(first, text);
    free(first);
}
END_TEST

START_TEST(a_file_that_cannot_be_written)
{
    const struct tfm__curve curve = {"t", "x", "y", NULL, 0};
    struct tfm_error err = {TFM_STATUS_FORMAT, "of an earlier call"};

    ck_assert_int_eq(tfm__curve_write("nowhere/a.svg", &curve, &err), TFM_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "nowhere/a.svg"));
    ck_assert_int_eq(tfm__curve_write(".", &curve, &err), TFM_STATUS_IO);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("curve");
    TCase *tcase = tcase_create("curve");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_test(tcase, points_stand_where_they_should);
    tcase_add_loop_test(tcase, axes_carry_round_numbers, 0, (int)(sizeof axes / sizeof *axes));
    tcase_add_test(tcase, the_fall_from_chance_leaves_the_picture);
    tcase_add_test(tcase, points_that_are_not_finite);
    tcase_add_test(tcase, without_points);
    tcase_add_test(tcase, names_are_text);
    tcase_add_test(tcase, many_points_become_few);
    tcase_add_test(tcase, a_dashed_series_has_the_colour_before_it);
    tcase_add_test(tcase, many_series_stay_apart);
    tcase_add_test(tcase, the_last_label_is_whole);
    tcase_add_test(tcase, same_points_same_bytes);
    tcase_add_test(tcase, a_file_that_cannot_be_written);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
