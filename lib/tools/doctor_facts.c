/* SPDX-License-Identifier: MIT
 * Facts of a backend, through a child that may crash: each fact is a line of JSON in a pipe. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tfm/device.h>

#include "lib/tools/doctor.h"
#include "lib/tools/json_text.h"

enum { SECONDS = 30 };

/* ---- a tree ------------------------------------------------------------------------------------- */

static void tree_item(void *context, const char *list)
{
    struct tfm__doctor_tree *tree = context;
    json_t *items = json_object_get(tree->object, list), *item = json_object();

    if (!items && json_object_set_new(tree->object, list, items = json_array()))
        items = NULL;
    tree->item = items && !json_array_append_new(items, item) ? item : NULL;
}

static void tree_add(void *context, const char *key, json_t *value)
{
    const struct tfm__doctor_tree *tree = context;
    json_object_set_new(tree->item ? tree->item : tree->object, key, value);
}

static void tree_text(void *context, const char *key, const char *value)
{
    tree_add(context, key, tfm__json_string(value, strlen(value)));
}

static void tree_number(void *context, const char *key, uint64_t value, enum tfm_doctor_unit unit)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", key, unit == TFM_DOCTOR_BYTES ? "_bytes" : "");
    tree_add(context, name, json_integer((json_int_t)(value > INT64_MAX ? INT64_MAX : value)));
}

static void tree_flag(void *context, const char *key, int32_t value)
{
    tree_add(context, key, json_boolean(value));
}

struct tfm_doctor_sink tfm__doctor_sink(struct tfm__doctor_tree *tree)
{
    return (struct tfm_doctor_sink){.struct_size = sizeof(struct tfm_doctor_sink),
                                    .context = tree,
                                    .item = tree_item,
                                    .text = tree_text,
                                    .number = tree_number,
                                    .flag = tree_flag};
}

/* ---- the child ---------------------------------------------------------------------------------- */

/* ["list"] begins an item, ["key", value] is a fact of it. At once: the next question may be the last. */
static void send(FILE *to, json_t *record)
{
    if (record && !json_dumpf(record, to, JSON_COMPACT)) {
        putc('\n', to);
        fflush(to);
    }
    json_decref(record);
}

static void send_item(void *context, const char *list)
{
    send(context, json_pack("[s]", list));
}

static void send_text(void *context, const char *key, const char *value)
{
    send(context, json_pack("[s, o]", key, tfm__json_string(value, strlen(value))));
}

static void send_number(void *context, const char *key, uint64_t value, enum tfm_doctor_unit unit)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", key, unit == TFM_DOCTOR_BYTES ? "_bytes" : "");
    send(context, json_pack("[s, I]", name, (json_int_t)(value > INT64_MAX ? INT64_MAX : value)));
}

static void send_flag(void *context, const char *key, int32_t value)
{
    send(context, json_pack("[s, b]", key, value));
}

_Noreturn static void ask(const char *file, FILE *to)
{
    const struct tfm_doctor_sink sink = {sizeof sink, to,          send_item,
                                         send_text,   send_number, send_flag};
    struct tfm_registry *registry;
    struct tfm_error err;

    /* this process is the trial, and only this file is of interest */
    tfm_plugin_trial_set(TFM_PLUGIN_TRIAL_OFF, 0);
    unsetenv("TFM_PLUGIN_PATH");
    setenv("TFM_PACKAGE_BACKENDS", "/dev/null", 1);
    if (tfm_registry_create(&file, 1, &registry, &err) == TFM_STATUS_OK) {
        for (size_t i = 0; i < tfm_registry_count(registry); i++)
            tfm_registry_doctor(registry, i, &sink);
    }
    fflush(to);
    _exit(0);
}

/* ---- the parent --------------------------------------------------------------------------------- */

static void take_line(struct tfm__doctor_tree *tree, const char *line)
{
    json_t *record = json_loads(line, 0, NULL);
    const char *word = json_string_value(json_array_get(record, 0));

    if (word && json_array_size(record) == 1)
        tree_item(tree, word);
    else if (word)
        tree_add(tree, word, json_incref(json_array_get(record, 1)));
    json_decref(record);
}

/* Until the child closes its end. 0 = it said nothing for too long. */
static int take_all(struct tfm__doctor_tree *tree, FILE *from)
{
    char *line = NULL;
    size_t room = 0;
    int in_time = 1;

    for (;;) {
        struct pollfd wait = {.fd = fileno(from), .events = POLLIN};
        const int ready = poll(&wait, 1, 1000 * SECONDS);
        if (ready < 0 && errno == EINTR)
            continue;
        in_time = ready != 0;
        if (!in_time || getline(&line, &room, from) <= 0)
            break;
        take_line(tree, line);
    }
    free(line);
    return in_time;
}

json_t *tfm__doctor_facts(const char *file, char *why, size_t size)
{
    struct tfm__doctor_tree tree = {json_object(), NULL};
    int ends[2], status = 0;

    why[0] = '\0';
    if (!tree.object || pipe(ends) != 0)
        return tree.object;
    fflush(NULL);
    const pid_t child = fork(); /* no driver was asked anything in this process yet */
    if (child == 0) {
        close(ends[0]);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        FILE *to = fdopen(ends[1], "w");
        if (!to)
            _exit(1);
        ask(file, to);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (from)
        setvbuf(from, NULL, _IONBF, 0); /* poll sees the pipe, not a buffer */
    const int in_time = from && child > 0 ? take_all(&tree, from) : 0;
    if (child > 0) {
        if (!in_time)
            kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (from)
        fclose(from);
    if (child < 0)
        snprintf(why, size, "no process to ask in: %s", strerror(errno));
    else if (!in_time)
        snprintf(why, size, "no answer for %d s", SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(why, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        snprintf(why, size, "exit code %d", WEXITSTATUS(status));
    return tree.object;
}
