/* SPDX-License-Identifier: MIT
 * `tfm curve`: the losses of training runs in one picture, from their metrics.jsonl. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/tools/curve.h"
#include "lib/tools/message.h"
#include "lib/tools/metrics.h"
#include "lib/tools/options.h"

enum { NAME_SIZE = 128, PATH_SIZE = 4096 };

struct run {
    char name[NAME_SIZE], held[NAME_SIZE + 16]; /* for the legend */
    struct tfm__metrics_columns columns;
};

struct drawing {
    const struct tfm__options *options;
    struct run *runs;                 /* [n] */
    struct tfm__curve_series *series; /* [2 n] */
    size_t n_series;
};

/* NAME=FILE; a name without one is that of the file. A folder stands for its metrics.jsonl. */
static int split(const char *item, char name[NAME_SIZE], char path[PATH_SIZE])
{
    const char *equal = strchr(item, '='), *file = equal ? equal + 1 : item;
    const size_t size = equal ? (size_t)(equal - item) : strlen(item);
    struct stat info;

    if (size == 0 || size >= NAME_SIZE || !*file)
        return tfm__usage("--run %s: NAME=FILE, with a name of at most %d bytes", item,
                          NAME_SIZE - 1);
    memcpy(name, item, size);
    name[size] = 0;
    const int folder = stat(file, &info) == 0 && S_ISDIR(info.st_mode);
    if (snprintf(path, PATH_SIZE, "%s%s", file, folder ? "/metrics.jsonl" : "") >= PATH_SIZE)
        return tfm__usage("--run %.60s...: the name is too long", item);
    return TFM__EXIT_OK;
}

static void add(struct drawing *d, const char *name, const double *x, const double *y, size_t n,
                int dashed)
{
    d->series[d->n_series++] =
        (struct tfm__curve_series){.name = name, .x = x, .y = y, .n = n, .dashed = dashed};
}

static int load(struct drawing *d, const char *item, struct run *run)
{
    const int tokens = strcmp(d->options->axis, "tokens") == 0;
    const int training = strcmp(d->options->losses, "validation") != 0;
    const int validation = strcmp(d->options->losses, "training") != 0;
    const struct tfm__metrics_columns *c = &run->columns;
    char path[PATH_SIZE];
    struct tfm_error err;

    const int code = split(item, run->name, path);
    if (code != TFM__EXIT_OK)
        return code;
    if (tfm__metrics_load(path, &run->columns, &err) != TFM_STATUS_OK)
        return tfm__failed("%s", err.text);
    if (!training && c->n_validation == 0)
        return tfm__failed("%s: no step of it has a validation loss", path);
    if (training)
        add(d, run->name, tokens ? c->tokens : c->step, c->loss, c->n, 0);
    if (!validation || c->n_validation == 0)
        return TFM__EXIT_OK;
    snprintf(run->held, sizeof run->held, training ? "%s, validation" : "%s", run->name);
    add(d, run->held, tokens ? c->validation_tokens : c->validation_step, c->validation,
        c->n_validation, training);
    return TFM__EXIT_OK;
}

int tfm__verb_curve(const struct tfm__options *options)
{
    const size_t n = options->runs.n;
    struct drawing d = {.options = options};
    struct tfm_error err;
    int code = TFM__EXIT_OK;

    if (!options->out || n == 0)
        return tfm__usage("%s is missing", n ? "--out FILE" : "--run NAME=FILE");
    d.runs = calloc(n, sizeof *d.runs);
    d.series = calloc(2 * n, sizeof *d.series);
    if (!d.runs || !d.series)
        code = tfm__failed("out of memory");
    for (size_t i = 0; i < n && code == TFM__EXIT_OK; i++)
        code = load(&d, options->runs.items[i], &d.runs[i]);
    const struct tfm__curve curve = {.title = options->title,
                                     .x_label = options->axis,
                                     .y_label = "loss",
                                     .series = d.series,
                                     .n = d.n_series};
    if (code == TFM__EXIT_OK && tfm__curve_write(options->out, &curve, &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    for (size_t i = 0; d.runs && i < n; i++)
        tfm__metrics_columns_deinit(&d.runs[i].columns);
    free(d.runs);
    free(d.series);
    return code;
}
