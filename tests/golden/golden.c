/* SPDX-License-Identifier: MIT
 * Reads the golden files of this folder and compares logits with them. */
#include "tests/golden/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* The numbers of an array, malloc'ed; NULL when it is none. */
static double *numbers(const json_t *array, size_t *n)
{
    *n = json_array_size(array); /* 0 for anything else */
    double *values = *n ? calloc(*n, sizeof *values) : NULL;
    for (size_t i = 0; values && i < *n; i++) {
        const json_t *item = json_array_get(array, i);
        if (!json_is_number(item)) {
            free(values);
            return NULL;
        }
        values[i] = json_number_value(item);
    }
    return values;
}

static int32_t *integers(const json_t *array, size_t *n)
{
    double *values = numbers(array, n);
    int32_t *ids = values ? calloc(*n, sizeof *ids) : NULL;
    for (size_t i = 0; ids && i < *n; i++)
        ids[i] = (int32_t)values[i];
    free(values);
    return ids;
}

static int read_top(const json_t *pairs, size_t n, struct golden_top *top)
{
    if (json_array_size(pairs) != GOLDEN_TOP)
        return 0;
    top->n = n;
    for (size_t i = 0; i < GOLDEN_TOP; i++) {
        size_t two;
        double *pair = numbers(json_array_get(pairs, i), &two);
        if (!pair || two != 2) {
            free(pair);
            return 0;
        }
        top->id[i] = (int32_t)pair[0];
        top->logit[i] = pair[1];
        free(pair);
    }
    return 1;
}

/* {"ids", "top", "greedy", "margin"}, or {"ids", "at": [{"n", "top"}]} */
static int read_case(const json_t *json, struct golden_case *c)
{
    const json_t *at = json_object_get(json, "at");
    const char *text = json_string_value(json_object_get(json, "text"));
    c->text = text ? strdup(text) : NULL;
    c->ids = integers(json_object_get(json, "ids"), &c->n);
    c->n_top = at ? json_array_size(at) : 1;
    c->top = calloc(c->n_top + 1, sizeof *c->top);
    if (!c->ids || !c->top || c->n_top == 0)
        return 0;
    for (size_t i = 0; at && i < c->n_top; i++) {
        const json_t *mark = json_array_get(at, i);
        json_int_t n = json_integer_value(json_object_get(mark, "n"));
        if (n < 1 || n > (json_int_t)c->n ||
            !read_top(json_object_get(mark, "top"), (size_t)n, &c->top[i]))
            return 0;
    }
    if (at)
        return 1;
    size_t n_margin;
    c->greedy = integers(json_object_get(json, "greedy"), &c->n_greedy);
    c->margin = numbers(json_object_get(json, "margin"), &n_margin);
    return c->greedy && c->margin && n_margin == c->n_greedy &&
           read_top(json_object_get(json, "top"), c->n, &c->top[0]);
}

void golden_free(struct golden *golden)
{
    for (size_t i = 0; golden && i < golden->n; i++) {
        free(golden->cases[i].text);
        free(golden->cases[i].ids);
        free(golden->cases[i].top);
        free(golden->cases[i].greedy);
        free(golden->cases[i].margin);
    }
    if (golden)
        free(golden->cases);
    free(golden);
}

struct golden *golden_read(const char *name)
{
    const char *folder = getenv("TFM_TEST_GOLDEN");
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/golden", name);
    json_error_t why;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!json) {
        fprintf(stderr, "%s:%d: %s\n", path, why.line, why.text);
        return NULL;
    }
    const json_t *list = json_object_get(json, "logits");
    struct golden *golden = calloc(1, sizeof *golden);
    int ok = golden != NULL;
    if (ok) {
        golden->n = list ? json_array_size(list) : 1;
        golden->cases = calloc(golden->n + 1, sizeof *golden->cases);
        ok = golden->n > 0 && golden->cases;
    }
    for (size_t i = 0; ok && i < golden->n; i++)
        ok = read_case(list ? json_array_get(list, i) : json, &golden->cases[i]);
    json_decref(json);
    if (ok)
        return golden;
    fprintf(stderr, "%s: not a golden file as tests/golden/README.md describes it\n", path);
    golden_free(golden);
    return NULL;
}

double golden_distance(const struct golden_top *top, const float *logits, size_t vocab)
{
    double worst = 0;
    for (size_t i = 0; i < vocab; i++) {
        size_t k = 0;
        while (k < GOLDEN_TOP && (size_t)top->id[k] != i)
            k++;
        double over = k < GOLDEN_TOP ? fabs(logits[i] - top->logit[k])
                                     : logits[i] - top->logit[GOLDEN_TOP - 1];
        if (!isfinite(logits[i]))
            return INFINITY;
        if (over > worst)
            worst = over;
    }
    return worst;
}
