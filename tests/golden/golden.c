/* SPDX-License-Identifier: MIT
 * Reads the golden files of this folder and compares logits with them. */
#include "tests/golden/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/golden/json.h"

/* The numbers of an array, malloc'ed; NULL when it is none. */
static double *numbers(const struct json *array, size_t *n)
{
    if (!array || array->kind != JSON_ARRAY)
        return NULL;
    double *values = calloc(array->n + 1, sizeof *values);
    for (size_t i = 0; values && i < array->n; i++) {
        if (array->items[i].kind != JSON_NUMBER) {
            free(values);
            return NULL;
        }
        values[i] = array->items[i].number;
    }
    *n = array->n;
    return values;
}

static int32_t *integers(const struct json *array, size_t *n)
{
    double *values = numbers(array, n);
    int32_t *ids = values ? calloc(*n + 1, sizeof *ids) : NULL;
    for (size_t i = 0; ids && i < *n; i++)
        ids[i] = (int32_t)values[i];
    free(values);
    return ids;
}

static int read_top(const struct json *pairs, size_t n, struct golden_top *top)
{
    if (!pairs || pairs->kind != JSON_ARRAY || pairs->n != GOLDEN_TOP)
        return 0;
    top->n = n;
    for (size_t i = 0; i < GOLDEN_TOP; i++) {
        size_t two = 0;
        double *pair = numbers(&pairs->items[i], &two);
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
static int read_case(const struct json *json, struct golden_case *c)
{
    const struct json *at = json_get(json, "at");
    c->ids = integers(json_get(json, "ids"), &c->n);
    c->n_top = at ? at->n : 1;
    c->top = calloc(c->n_top, sizeof *c->top);
    if (!c->ids || !c->top)
        return 0;
    for (size_t i = 0; at && i < at->n; i++) {
        const struct json *n = json_get(&at->items[i], "n");
        if (!n || n->number < 1 || n->number > (double)c->n ||
            !read_top(json_get(&at->items[i], "top"), (size_t)n->number, &c->top[i]))
            return 0;
    }
    if (at)
        return 1;
    size_t n_margin = 0;
    c->greedy = integers(json_get(json, "greedy"), &c->n_greedy);
    c->margin = numbers(json_get(json, "margin"), &n_margin);
    return c->greedy && c->margin && n_margin == c->n_greedy &&
           read_top(json_get(json, "top"), c->n, &c->top[0]);
}

void golden_free(struct golden *golden)
{
    for (size_t i = 0; golden && i < golden->n; i++) {
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
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/%s", TFM_TEST_SRCDIR, name);
    struct json *json = json_read(path);
    if (!json)
        return NULL;
    const struct json *list = json_get(json, "logits");
    struct golden *golden = calloc(1, sizeof *golden);
    int ok = golden != NULL;
    if (ok) {
        golden->n = list ? list->n : 1;
        golden->cases = calloc(golden->n, sizeof *golden->cases);
        ok = golden->n > 0 && golden->cases;
    }
    for (size_t i = 0; ok && i < golden->n; i++)
        ok = read_case(list ? &list->items[i] : json, &golden->cases[i]);
    json_free(json);
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
