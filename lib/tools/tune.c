/* SPDX-License-Identifier: MIT
 * `tfm tune`: times the ways in which a backend can compute, with the shapes of a model, and keeps the fastest
 * in the file that the backend reads when it opens the device. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tools/file.h"
#include "lib/tools/message.h"
#include "lib/tools/progress.h"
#include "lib/tools/setup.h"
#include "lib/tools/tune_work.h"

static const double least_gain = 0.03; /* below this a change is noise */

enum { KEPT = 4096 };

/* Of the backend, copied: its device is closed while candidates are tried. */
struct area {
    char *name, *forced, *given; /* forced may be NULL */
    char **names, **lines;       /* [n] */
    uint32_t work, n;
};

struct tune {
    struct tfm__tune_work work;
    struct area *areas; /* [n] */
    size_t n, done, total;
    char variable[64], path[PATH_MAX], head[1024], device[160];
    char kept[KEPT], gains[KEPT]; /* lines of the areas so far; what they brought */
    char trial[PATH_MAX];         /* a file of one candidate */
    struct tfm__progress progress;
};

/* ---- what there is to choose ---- */

static int copy_area(struct area *a, const struct tfm_tune_area *from)
{
    a->name = strdup(from->name);
    a->given = strdup(from->given);
    a->forced = from->forced ? strdup(from->forced) : NULL;
    a->names = calloc(from->n, sizeof *a->names);
    a->lines = calloc(from->n, sizeof *a->lines);
    a->work = from->work;
    if (!a->name || !a->given || (from->forced && !a->forced) || !a->names || !a->lines)
        return tfm__failed("out of memory");
    for (; a->n < from->n; a->n++) {
        a->names[a->n] = strdup(from->candidates[a->n].name);
        a->lines[a->n] = strdup(from->candidates[a->n].lines);
        if (!a->names[a->n] || !a->lines[a->n]) {
            a->n++;
            return tfm__failed("out of memory");
        }
    }
    return TFM__EXIT_OK;
}

static void free_areas(struct tune *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct area *a = &t->areas[i];
        for (uint32_t k = 0; k < a->n; k++) {
            free(a->names[k]);
            free(a->lines[k]);
        }
        free(a->names);
        free(a->lines);
        free(a->name);
        free(a->given);
        free(a->forced);
    }
    free(t->areas);
}

/* Areas that a variable decides are left out, with a line each. */
static int copy_areas(struct tune *t, const struct tfm_tune *from)
{
    const char *forced = NULL;
    int code = TFM__EXIT_OK;

    t->areas = calloc(from->n, sizeof *t->areas);
    if (!t->areas)
        return tfm__failed("out of memory");
    for (uint32_t i = 0; i < from->n && code == TFM__EXIT_OK; i++) {
        const struct tfm_tune_area *area = &from->areas[i];
        if (area->forced || area->work >= TFM__TUNE_WORKS || area->n < 2) {
            forced = area->forced ? area->forced : forced;
            if (area->forced)
                printf("%s: not tuned, %s is set and decides\n", area->name, area->forced);
            continue;
        }
        code = copy_area(&t->areas[t->n++], area);
        t->total += area->n;
    }
    if (code == TFM__EXIT_OK && t->n == 0)
        code = forced ? tfm__failed("%s is set and would decide: unset it first", forced)
                      : tfm__failed("%s: this backend has nothing to tune", t->device);
    snprintf(t->variable, sizeof t->variable, "%s", from->variable);
    snprintf(t->path, sizeof t->path, "%s", from->path);
    snprintf(t->head, sizeof t->head, "%s", from->head);
    return code;
}

static int look(struct tune *t)
{
    struct tfm__setup setup = {0};
    int code = tfm__setup_model(t->work.options, &setup);

    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(t->work.options, 0, &setup);
    if (code == TFM__EXIT_OK) {
        const struct tfm_tune *from = tfm_device_extension(setup.devices[0], TFM_TUNE);
        snprintf(t->device, sizeof t->device, "%s: %.120s", tfm_device_backend(setup.devices[0]),
                 tfm_device_name(setup.devices[0]));
        t->work.context = tfm_session_context(setup.session);
        tfm__tune_add_shapes(&t->work, tfm_plan_graph(tfm_session_plan(setup.session)));
        if (!from || from->struct_size < sizeof *from || from->n == 0)
            code = tfm__failed("%s: this backend has nothing to tune", t->device);
        else
            code = copy_areas(t, from);
    }
    tfm__setup_close(&setup);
    if (code == TFM__EXIT_OK && t->work.n_shapes == 0)
        code = tfm__failed("the model has no linear layers");
    return code;
}

/* ---- one candidate ---- */

static int write_trial(const struct tune *t, const struct area *a, uint32_t k)
{
    const struct tfm__file_part parts[] = {{t->head, strlen(t->head)},
                                           {t->kept, strlen(t->kept)},
                                           {a->given, strlen(a->given)},
                                           {a->lines[k], strlen(a->lines[k])}};
    return tfm__file_write(t->trial, parts, 4) ? TFM__EXIT_FAILED : TFM__EXIT_OK;
}

/* *seconds: 0 = it does not count, which is said. What cannot be opened does not count either, unless it is what
 * is shipped. */
static int try_candidate(struct tune *t, const struct area *a, uint32_t k, const char *note,
                         double *seconds)
{
    char why[256] = "";
    int code = write_trial(t, a, k);

    *seconds = 0;
    if (code != TFM__EXIT_OK)
        return code;
    tfm__progress_show(&t->progress, t->done, t->total);
    code = tfm__tune_time(&t->work, a->work, seconds, why);
    tfm__progress_clear(&t->progress);
    if (code != TFM__EXIT_OK && k == 0)
        return code;
    if (code != TFM__EXIT_OK)
        snprintf(why, sizeof why, "it cannot be opened here");
    if (why[0])
        *seconds = 0;
    if (why[0])
        printf("  %-46s does not count: %s\n", a->names[k], why);
    else
        printf("  %-46s %9.3f ms%s\n", a->names[k], 1e3 * *seconds, note);
    fflush(stdout);
    return TFM__EXIT_OK;
}

/* ---- one area ---- */

static int keep_lines(struct tune *t, const struct area *a, uint32_t best, double gain)
{
    const size_t used = strlen(t->kept), told = strlen(t->gains);

    if (used + strlen(a->lines[best]) >= sizeof t->kept)
        return tfm__failed("the choices are longer than a file may be");
    snprintf(t->kept + used, sizeof t->kept - used, "%s", a->lines[best]);
    snprintf(t->gains + told, sizeof t->gains - told, "%s%s: %s (%.2f times as fast)",
             told ? "; " : "", a->name, a->names[best], gain);
    return TFM__EXIT_OK;
}

/* Two that were measured minutes apart are measured once more, one after the other: a gain that is not seen
 * twice is none. */
static int confirm(struct tune *t, const struct area *a, uint32_t best, double *gain)
{
    double shipped = 0, other = 0;
    int code = try_candidate(t, a, 0, ", again", &shipped);

    if (code == TFM__EXIT_OK)
        code = try_candidate(t, a, best, ", again", &other);
    if (code != TFM__EXIT_OK)
        return code;
    const double again = other > 0 ? shipped / other : 0;
    *gain = again < *gain ? again : *gain;
    return TFM__EXIT_OK;
}

static int tune_area(struct tune *t, const struct area *a)
{
    double shipped = 0, least = 0, gain = 0;
    uint32_t best = 0;
    char text[160];
    int code = TFM__EXIT_OK;

    tfm__tune_describe(&t->work, a->work, text);
    printf("%s: %s\n", a->name, text);
    for (uint32_t k = 0; k < a->n && code == TFM__EXIT_OK; k++, t->done++) {
        double seconds;
        code = try_candidate(t, a, k, "", &seconds);
        if (code == TFM__EXIT_OK && k == 0 && seconds <= 0) {
            printf("  best: as shipped; its time could not be measured, so there is nothing to "
                   "compare with\n");
            t->done += a->n;
            return TFM__EXIT_OK;
        }
        shipped = k == 0 ? seconds : shipped;
        if (k > 0 && seconds > 0 && seconds < (1 - least_gain) * shipped &&
            (best == 0 || seconds < least)) {
            best = k;
            least = seconds;
        }
    }
    if (code == TFM__EXIT_OK && best) {
        gain = shipped / least;
        code = confirm(t, a, best, &gain);
    }
    if (code != TFM__EXIT_OK)
        return code;
    if (gain * (1 - least_gain) > 1) {
        printf("  best: %s, %.2f times as fast as shipped\n", a->names[best], gain);
        return keep_lines(t, a, best, gain);
    }
    printf("  best: as shipped; nothing is faster by %.0f%%%s\n", 100 * least_gain,
           best ? " twice" : "");
    return TFM__EXIT_OK;
}

static int tune_all(struct tune *t)
{
    const char *tmp = getenv("TMPDIR");
    int code = TFM__EXIT_OK;

    snprintf(t->trial, sizeof t->trial, "%.3000s/tfm-tune-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const int fd = mkstemp(t->trial);
    if (fd < 0)
        return tfm__failed("%s: %s", t->trial, strerror(errno));
    close(fd);
    if (setenv(t->variable, t->trial, 1))
        code = tfm__failed("%s", strerror(errno));
    printf("%s\n", t->device);
    tfm__progress_begin(&t->progress, "tuning");
    for (size_t i = 0; i < t->n && code == TFM__EXIT_OK; i++)
        code = tune_area(t, &t->areas[i]);
    tfm__progress_clear(&t->progress);
    unlink(t->trial);
    return code;
}

/* ---- the file ---- */

/* Makes the folders above a file. */
static int make_folders(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0777) && errno != EEXIST)
            return tfm__failed("%s: %s", folder, strerror(errno));
        *slash = '/';
    }
    return TFM__EXIT_OK;
}

static int keep(const struct tune *t)
{
    const struct tfm__file_part parts[] = {{t->head, strlen(t->head)}, {t->kept, strlen(t->kept)}};

    printf("chosen: %s\n", t->gains[0] ? t->gains : "as shipped");
    if (t->work.options->dry_run)
        return TFM__EXIT_OK;
    if (!t->path[0])
        return tfm__failed("no folder for the file is known: set XDG_DATA_HOME or HOME to an "
                           "absolute path");
    int code = make_folders(t->path);
    if (code == TFM__EXIT_OK && tfm__file_write(t->path, parts, 2))
        code = TFM__EXIT_FAILED;
    if (code == TFM__EXIT_OK)
        printf("written: %s\n", t->path);
    return code;
}

int tfm__verb_tune(const struct tfm__options *options)
{
    struct tune t = {.work = {.options = options, .rows = (uint32_t)options->chunk}};

    tfm__progress_init(&t.progress);
    int code = look(&t);
    if (code == TFM__EXIT_OK)
        code = tfm__tune_want(&t.work);
    if (code == TFM__EXIT_OK)
        code = tune_all(&t);
    if (code == TFM__EXIT_OK)
        code = keep(&t);
    tfm__tune_work_deinit(&t.work);
    free_areas(&t);
    return code;
}
