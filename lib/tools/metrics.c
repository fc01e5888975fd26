/* SPDX-License-Identifier: MIT
 * Appends to metrics.jsonl, repairs it after a kill, and reads it back for curves. */
#include "lib/tools/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/checked.h"

struct tfm__metrics {
    int fd;
    off_t end; /* of the last whole line */
    char *path;
};

static enum tfm_status io_error(const char *path, const char *what, int error,
                                struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_IO, "%s: cannot be %s: %s", path, what, strerror(error));
}

/* ---- reading ---- */

/* The whole file with a 0 behind it. */
static enum tfm_status read_all(int fd, const char *path, char **text, size_t *size,
                                struct tfm_error *err)
{
    struct stat info;
    size_t have = 0;

    if (fstat(fd, &info) != 0)
        return io_error(path, "read", errno, err);
    if (!S_ISREG(info.st_mode))
        return tfm_error_set(err, TFM_STATUS_IO, "%s: is no regular file", path);
    char *data = malloc((size_t)info.st_size + 1);
    if (!data)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    while (have < (size_t)info.st_size) {
        const ssize_t got = pread(fd, data + have, (size_t)info.st_size - have, (off_t)have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            const int error = errno;
            free(data);
            return io_error(path, "read", error, err);
        }
        if (got == 0)
            break;
        have += (size_t)got;
    }
    data[have] = 0;
    *text = data;
    *size = have;
    return TFM_STATUS_OK;
}

/* A line of ours, to be released; NULL when it is none. */
static json_t *parse(const char *line, size_t size, uint64_t *step)
{
    json_t *object = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *value = json_object_get(object, "step");

    if (!json_is_integer(value) || json_integer_value(value) < 1) {
        json_decref(object);
        return NULL;
    }
    *step = (uint64_t)json_integer_value(value);
    return object;
}

typedef enum tfm_status visit(void *context, const json_t *line, struct tfm_error *err);

struct extent {
    size_t bytes; /* of the lines up to step `keep` */
    int open;     /* the last of them lacks its line end */
};

/* Calls `each` (may be NULL) for the lines before the first one of a step above `keep`. */
static enum tfm_status walk(const char *path, const char *text, size_t size, uint64_t keep,
                            visit *each, void *context, struct extent *extent,
                            struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    size_t at = 0, number = 0;

    *extent = (struct extent){0, 0};
    while (at < size && status == TFM_STATUS_OK) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - text) - at : size - at;
        uint64_t step = 0;
        json_t *line = parse(text + at, length, &step);
        number++;
        if (!line && !end)
            break; /* what a killed process has left */
        if (!line)
            return tfm_error_set(err, TFM_STATUS_FORMAT,
                                 "%s: line %zu is no line of metrics: move the file away", path,
                                 number);
        if (step <= keep && each)
            status = each(context, line, err);
        json_decref(line);
        if (step > keep)
            break;
        at += length + (end != NULL);
        *extent = (struct extent){at, !end};
    }
    return status;
}

/* ---- writing ---- */

static int put_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t put = write(fd, data, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? errno : EIO;
        data += put;
        size -= (size_t)put;
    }
    return 0;
}

/* Appends, or leaves the file as it was. */
static enum tfm_status append(struct tfm__metrics *m, const char *data, size_t size,
                              struct tfm_error *err)
{
    const int error = lseek(m->fd, m->end, SEEK_SET) < 0 ? errno : put_all(m->fd, data, size);

    if (error) {
        /* a part of a line would be repaired at the next open at the latest */
        if (ftruncate(m->fd, m->end) != 0)
            return io_error(m->path, "written to, nor shortened again", error, err);
        return io_error(m->path, "written to", error, err);
    }
    m->end += (off_t)size;
    return TFM_STATUS_OK;
}

static enum tfm_status repair(struct tfm__metrics *m, uint64_t keep, struct tfm_error *err)
{
    struct extent extent;
    char *text = NULL;
    size_t size = 0;
    enum tfm_status status = read_all(m->fd, m->path, &text, &size, err);

    if (status != TFM_STATUS_OK)
        return status;
    status = walk(m->path, text, size, keep, NULL, NULL, &extent, err);
    free(text);
    if (status != TFM_STATUS_OK)
        return status;
    m->end = (off_t)extent.bytes;
    if (extent.bytes < size && ftruncate(m->fd, m->end) != 0)
        return io_error(m->path, "shortened", errno, err);
    return extent.open ? append(m, "\n", 1, err) : TFM_STATUS_OK;
}

enum tfm_status tfm__metrics_open(const char *path, uint64_t keep, struct tfm__metrics **metrics,
                                  struct tfm_error *err)
{
    struct tfm__metrics *m = calloc(1, sizeof *m);
    enum tfm_status status = TFM_STATUS_OK;

    tfm_error_clear(err);
    if (!m || !(m->path = strdup(path))) {
        free(m);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    }
    m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    status = m->fd < 0 ? io_error(path, "opened", errno, err) : repair(m, keep, err);
    if (status == TFM_STATUS_OK)
        *metrics = m;
    else
        tfm__metrics_close(m);
    return status;
}

void tfm__metrics_close(struct tfm__metrics *metrics)
{
    if (!metrics)
        return;
    if (metrics->fd >= 0)
        close(metrics->fd);
    free(metrics->path);
    free(metrics);
}

static int set_number(json_t *object, const char *key, double value)
{
    return isfinite(value) ? json_object_set_new(object, key, json_real(value)) : 0;
}

static json_t *line_object(const struct tfm__metrics_line *line)
{
    json_t *object =
        json_pack("{s:I, s:I}", "step", (json_int_t)line->step, "tokens", (json_int_t)line->tokens);
    if (object &&
        (set_number(object, "loss", line->loss) ||
         set_number(object, "validation_loss", line->validation) ||
         set_number(object, "rate", line->rate) || set_number(object, "norm", line->norm) ||
         set_number(object, "tok_s", line->tok_s) || set_number(object, "ms", line->ms) ||
         json_object_set_new(object, "backend", json_string(line->backend)) ||
         json_object_set_new(object, "device", json_string(line->device)) ||
         set_number(object, "fallback", line->fallback))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum tfm_status tfm__metrics_add(struct tfm__metrics *metrics, const struct tfm__metrics_line *line,
                                 struct tfm_error *err)
{
    json_t *object = line_object(line);
    char *text = object ? json_dumps(object, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
    const size_t size = text ? strlen(text) : 0;
    enum tfm_status status;

    tfm_error_clear(err);
    json_decref(object);
    if (text) {
        text[size] = '\n'; /* in the place of the 0: one write a line */
        status = append(metrics, text, size + 1, err);
    } else
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", metrics->path);
    free(text);
    return status;
}

/* ---- columns ---- */

struct filling {
    struct tfm__metrics_columns columns;
    size_t room;
};

static double number_or_nan(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int grow(struct filling *f)
{
    struct tfm__metrics_columns *c = &f->columns;
    double **const all[] = {
        &c->step, &c->tokens, &c->loss, &c->validation_step, &c->validation_tokens, &c->validation};
    const size_t room = f->room ? 2 * f->room : 256;
    size_t bytes;

    if (tfm__mul_size(room, sizeof(double), &bytes))
        return 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double *more = realloc(*all[i], bytes);
        if (!more)
            return 1;
        *all[i] = more;
    }
    f->room = room;
    return 0;
}

static enum tfm_status fill(void *context, const json_t *line, struct tfm_error *err)
{
    struct filling *f = context;
    struct tfm__metrics_columns *c = &f->columns;
    const double validation = number_or_nan(line, "validation_loss");

    if (c->n == f->room && grow(f))
        return tfm_error_set(err, TFM_STATUS_NOMEM, "metrics: out of memory");
    c->step[c->n] = number_or_nan(line, "step");
    c->tokens[c->n] = number_or_nan(line, "tokens");
    c->loss[c->n] = number_or_nan(line, "loss");
    if (isfinite(validation)) {
        c->validation_step[c->n_validation] = c->step[c->n];
        c->validation_tokens[c->n_validation] = c->tokens[c->n];
        c->validation[c->n_validation++] = validation;
    }
    c->n++;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__metrics_load(const char *path, struct tfm__metrics_columns *columns,
                                  struct tfm_error *err)
{
    struct filling filling = {0};
    struct extent extent;
    char *text = NULL;
    size_t size = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum tfm_status status;

    tfm_error_clear(err);
    status = fd < 0 ? io_error(path, "opened", errno, err) : read_all(fd, path, &text, &size, err);

    if (status == TFM_STATUS_OK)
        status = walk(path, text, size, UINT64_MAX, fill, &filling, &extent, err);
    if (fd >= 0)
        close(fd);
    free(text);
    if (status == TFM_STATUS_OK)
        *columns = filling.columns;
    else
        tfm__metrics_columns_deinit(&filling.columns);
    return status;
}

void tfm__metrics_columns_deinit(struct tfm__metrics_columns *columns)
{
    free(columns->step);
    free(columns->tokens);
    free(columns->loss);
    free(columns->validation_step);
    free(columns->validation_tokens);
    free(columns->validation);
    *columns = (struct tfm__metrics_columns){0};
}
