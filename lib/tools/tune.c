/* SPDX-License-Identifier: MIT
 * `tfm tune`: times the ways in which a backend can multiply, for the shapes of a model, and keeps the fastest
 * in the file that the backend reads when it opens the device. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tfm/tune.h>

#include "lib/tools/bench_time.h"
#include "lib/tools/file.h"
#include "lib/tools/message.h"
#include "lib/tools/progress.h"
#include "lib/tools/setup.h"
#include "lib/tools/tune_check.h"

enum { SHAPES_MOST = 32 };
static const double least_gain = 0.03; /* below this a change is noise */

struct shape {
    enum tfm_dtype weight;
    int64_t in, out;
    unsigned count; /* in the model */
    float *want;    /* [rows, out] by the reference */
};

struct tune {
    const struct tfm__options *options;
    uint32_t rows;
    struct shape shapes[SHAPES_MOST];
    size_t n_shapes;
    /* of the backend, copied: its device is closed while candidates are tried */
    char variable[64], path[PATH_MAX], head[1024], device[160];
    char **names, **lines; /* [n] */
    double *seconds;       /* [n]; 0 = it does not count */
    size_t n;
    char trial[PATH_MAX]; /* a file of one candidate */
    struct tfm__progress progress;
};

/* ---- what there is to choose, and for which shapes ---- */

static int add_shape(struct tune *t, const struct tfm_node *node)
{
    const struct tfm_tensor *weight = node->inputs[1];
    if (node->op != TFM_OP_LINEAR || node->outputs[0]->extent != TFM_EXTENT_ROWS)
        return TFM__EXIT_OK;
    for (size_t i = 0; i < t->n_shapes; i++) {
        struct shape *s = &t->shapes[i];
        if (s->weight == weight->dtype && s->in == weight->shape[1] && s->out == weight->shape[0]) {
            s->count++;
            return TFM__EXIT_OK;
        }
    }
    if (t->n_shapes == SHAPES_MOST)
        return TFM__EXIT_OK; /* the first of them stand for the rest */
    t->shapes[t->n_shapes++] = (struct shape){
        .weight = weight->dtype, .in = weight->shape[1], .out = weight->shape[0], .count = 1};
    return TFM__EXIT_OK;
}

static int copy_candidates(struct tune *t, const struct tfm_tune *from)
{
    t->names = calloc(from->n, sizeof *t->names);
    t->lines = calloc(from->n, sizeof *t->lines);
    t->seconds = calloc(from->n, sizeof *t->seconds);
    if (!t->names || !t->lines || !t->seconds)
        return tfm__failed("out of memory");
    for (; t->n < from->n; t->n++) {
        t->names[t->n] = strdup(from->candidates[t->n].name);
        t->lines[t->n] = strdup(from->candidates[t->n].lines);
        if (!t->names[t->n] || !t->lines[t->n]) {
            t->n++;
            return tfm__failed("out of memory");
        }
    }
    snprintf(t->variable, sizeof t->variable, "%s", from->variable);
    snprintf(t->path, sizeof t->path, "%s", from->path);
    snprintf(t->head, sizeof t->head, "%s", from->head);
    return TFM__EXIT_OK;
}

static int look(struct tune *t)
{
    struct tfm__setup setup = {0};
    int code = tfm__setup_model(t->options, &setup);

    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(t->options, 0, &setup);
    if (code == TFM__EXIT_OK) {
        const struct tfm_tune *from = tfm_device_extension(setup.devices[0], TFM_TUNE);
        const struct tfm_graph *graph = tfm_plan_graph(tfm_session_plan(setup.session));
        snprintf(t->device, sizeof t->device, "%s: %.120s", tfm_device_backend(setup.devices[0]),
                 tfm_device_name(setup.devices[0]));
        if (!from || from->struct_size < sizeof *from || from->n == 0)
            code = tfm__failed("%s: this backend has nothing to tune", t->device);
        else if (from->forced)
            code = tfm__failed("%s is set and would decide: unset it first", from->forced);
        else
            code = copy_candidates(t, from);
        for (uint32_t i = 0; i < tfm_graph_node_count(graph) && code == TFM__EXIT_OK; i++)
            code = add_shape(t, tfm_graph_node(graph, i));
    }
    tfm__setup_close(&setup);
    if (code == TFM__EXIT_OK && t->n_shapes == 0)
        code = tfm__failed("the model has no linear layers");
    return code;
}

/* What is right, once: by the reference. */
static int compute_wanted(struct tune *t)
{
    struct tfm__setup setup = {0};
    struct tfm_error err;
    int code = tfm__setup_registry(t->options, &setup);

    if (code == TFM__EXIT_OK && tfm_devices_open(setup.registry, "reference", -1, setup.devices,
                                                 TFM__SETUP_DEVICES, &setup.n_devices, &err))
        code = tfm__failed("%s", err.text);
    for (size_t i = 0; i < t->n_shapes && code == TFM__EXIT_OK; i++) {
        struct shape *s = &t->shapes[i];
        s->want = calloc((size_t)s->out * t->rows, sizeof *s->want);
        if (!s->want)
            code = tfm__failed("out of memory");
        else if (tfm__tune_compute(setup.devices[0], s->weight, s->in, s->out, t->rows, s->want,
                                   &err))
            code = tfm__failed("%s", err.text);
    }
    tfm__setup_close(&setup);
    return code;
}

/* ---- one candidate ---- */

/* "" or why it does not count. */
static const char *refused(const struct tune *t, struct tfm_device *device, const struct shape *s,
                           char why[256])
{
    struct tfm_error err;
    float *have = calloc((size_t)s->out * t->rows, sizeof *have);

    why[0] = 0;
    if (!have)
        snprintf(why, 256, "out of memory");
    else if (tfm__tune_compute(device, s->weight, s->in, s->out, t->rows, have, &err))
        snprintf(why, 256, "%.200s", err.text);
    else if (!tfm__tune_agree(have, s->want, (size_t)s->out * t->rows))
        snprintf(why, 256, "it computes wrong values");
    free(have);
    return why;
}

static double time_of(const struct tune *t, struct tfm_device *device, const struct shape *s,
                      char why[256])
{
    const struct tfm__bench_case c = {.op = TFM_OP_LINEAR,
                                      .dtype = TFM_DTYPE_F32,
                                      .weight = s->weight,
                                      .rows = t->rows,
                                      .d1 = s->in,
                                      .d2 = s->out,
                                      .note = ""};
    struct tfm_error err;
    double seconds = 0;

    if (tfm__bench_time(device, &c, t->options->repetitions, &seconds, &err))
        snprintf(why, 256, "%.200s", err.text);
    else if (seconds <= 0)
        snprintf(why, 256, "its time is lost in the noise");
    return seconds;
}

static int write_trial(const struct tune *t, const char *lines)
{
    const struct tfm__file_part parts[] = {{t->head, strlen(t->head)}, {lines, strlen(lines)}};
    return tfm__file_write(t->trial, parts, 2) ? TFM__EXIT_FAILED : TFM__EXIT_OK;
}

static void measure(struct tune *t, size_t k, struct tfm_device *device, size_t *done)
{
    double sum = 0;
    char why[256] = "";

    for (size_t i = 0; i < t->n_shapes && !why[0]; i++) {
        const struct shape *s = &t->shapes[i];
        refused(t, device, s, why);
        if (!why[0])
            sum += s->count * time_of(t, device, s, why);
        tfm__progress_show(&t->progress, ++*done, t->n * t->n_shapes);
    }
    *done = (k + 1) * t->n_shapes;
    tfm__progress_clear(&t->progress);
    if (why[0])
        printf("%-48s does not count: %s\n", t->names[k], why);
    else
        printf("%-48s %8.2f ms\n", t->names[k], 1e3 * sum);
    fflush(stdout);
    t->seconds[k] = why[0] ? 0 : sum;
}

/* A device of its own, opened with the file of this candidate alone. */
static int try_candidate(struct tune *t, size_t k, size_t *done)
{
    struct tfm__setup setup = {0};
    struct tfm_error err;
    int code = write_trial(t, t->lines[k]);

    if (code == TFM__EXIT_OK)
        code = tfm__setup_registry(t->options, &setup);
    if (code == TFM__EXIT_OK &&
        tfm_devices_open(setup.registry, t->options->backend, -1, setup.devices, TFM__SETUP_DEVICES,
                         &setup.n_devices, &err))
        code = tfm__failed("%s", err.text);
    if (code == TFM__EXIT_OK)
        measure(t, k, setup.devices[0], done);
    tfm__setup_close(&setup);
    return code;
}

static int try_all(struct tune *t)
{
    const char *tmp = getenv("TMPDIR");
    size_t done = 0;
    int code = TFM__EXIT_OK;

    snprintf(t->trial, sizeof t->trial, "%.3000s/tfm-tune-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const int fd = mkstemp(t->trial);
    if (fd < 0)
        return tfm__failed("%s: %s", t->trial, strerror(errno));
    close(fd);
    if (setenv(t->variable, t->trial, 1))
        code = tfm__failed("%s", strerror(errno));
    printf("%s, %" PRIu32 " rows, %zu shapes of linear layers; time of all of them once\n",
           t->device, t->rows, t->n_shapes);
    tfm__progress_begin(&t->progress, "tuning");
    for (size_t k = 0; k < t->n && code == TFM__EXIT_OK; k++)
        code = try_candidate(t, k, &done);
    tfm__progress_clear(&t->progress);
    unlink(t->trial);
    return code;
}

/* ---- the choice ---- */

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

static int keep(const struct tune *t, size_t best)
{
    const struct tfm__file_part parts[] = {{t->head, strlen(t->head)},
                                           {t->lines[best], strlen(t->lines[best])}};
    if (t->options->dry_run)
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

static int choose(const struct tune *t)
{
    size_t best = 0;
    if (t->seconds[0] <= 0)
        return tfm__failed("what is shipped could not be measured: nothing to compare with");
    for (size_t k = 1; k < t->n; k++)
        if (t->seconds[k] > 0 && t->seconds[k] < (1 - least_gain) * t->seconds[0] &&
            (best == 0 || t->seconds[k] < t->seconds[best]))
            best = k;
    if (best)
        printf("best: %s, %.2f times as fast as shipped\n", t->names[best],
               t->seconds[0] / t->seconds[best]);
    else
        printf("best: as shipped; nothing is faster by %.0f%%\n", 100 * least_gain);
    return keep(t, best);
}

int tfm__verb_tune(const struct tfm__options *options)
{
    struct tune t = {.options = options, .rows = (uint32_t)options->chunk};

    tfm__progress_init(&t.progress);
    int code = look(&t);
    if (code == TFM__EXIT_OK)
        code = compute_wanted(&t);
    if (code == TFM__EXIT_OK)
        code = try_all(&t);
    if (code == TFM__EXIT_OK)
        code = choose(&t);
    for (size_t i = 0; i < t.n_shapes; i++)
        free(t.shapes[i].want);
    for (size_t i = 0; i < t.n; i++) {
        free(t.names[i]);
        free(t.lines[i]);
    }
    free(t.names);
    free(t.lines);
    free(t.seconds);
    return code;
}
