/* SPDX-License-Identifier: MIT
 * Loading a module and checking its table. Everything in the table comes from a foreign file:
 * nothing is called before all checks have passed. */
#include "lib/core/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/core/elf_file.h"

enum need {
    NEED_ALWAYS,
    NEED_SIMPLE, /* the simple way to be complete */
    NEED_FAST,   /* the fast way: all or none */
    NEED_MAP,    /* both or none */
};

#define SLOT(member) #member, offsetof(struct tfm_backend, member)
static const struct slot {
    const char *name;
    size_t offset;
    enum need need;
} slots[] = {
    {SLOT(name), NEED_ALWAYS},   {SLOT(version), NEED_ALWAYS},  {SLOT(license), NEED_ALWAYS},
    {SLOT(probe), NEED_ALWAYS},  {SLOT(open), NEED_ALWAYS},     {SLOT(close), NEED_ALWAYS},
    {SLOT(caps), NEED_ALWAYS},   {SLOT(alloc), NEED_ALWAYS},    {SLOT(free), NEED_ALWAYS},
    {SLOT(upload), NEED_ALWAYS}, {SLOT(download), NEED_ALWAYS}, {SLOT(map), NEED_MAP},
    {SLOT(unmap), NEED_MAP},     {SLOT(supports), NEED_ALWAYS}, {SLOT(run_node), NEED_SIMPLE},
    {SLOT(compile), NEED_FAST},  {SLOT(release), NEED_FAST},    {SLOT(exec_open), NEED_FAST},
    {SLOT(exec_run), NEED_FAST}, {SLOT(exec_close), NEED_FAST},
};

enum { N_SLOTS = sizeof slots / sizeof *slots };

/* The smallest table that can be complete ends with run_node. */
static const size_t shortest = offsetof(struct tfm_backend, compile);

/* Data and function pointers alike, so compared as bytes. */
static int is_null(const struct tfm_backend *table, const struct slot *slot)
{
    static const unsigned char zero[sizeof(void (*)(void))];
    return memcmp((const unsigned char *)table + slot->offset, zero, sizeof zero) == 0;
}

/* Copies what both sides know. A size that ends inside a member does not cover it: half a pointer
 * is none. */
static void copy_members(const struct tfm_backend *table, struct tfm_backend *copy)
{
    size_t size = table->struct_size < sizeof *copy ? table->struct_size : sizeof *copy;
    size -= size % sizeof(void *);
    memset(copy, 0, sizeof *copy);
    memcpy(copy, table, size);
}

static enum tfm_status check_name(const char *name, struct tfm_error *err)
{
    const size_t length = strnlen(name, TFM__NAME_MAX + 1);

    if (length == 0 || length > TFM__NAME_MAX ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "invalid name \"%.*s\": 1 to %d characters of a-z, 0-9 and _ are "
                             "wanted",
                             TFM__NAME_MAX + 1, name, TFM__NAME_MAX);
    if (strcmp(name, "auto") == 0 || strcmp(name, "help") == 0)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "invalid name \"%s\": it has a meaning of its own in TFM_BACKEND",
                             name);
    return TFM_STATUS_OK;
}

struct group {
    size_t filled, all;
    const struct slot *hole; /* the first that is NULL */
};

static struct group look(const struct tfm_backend *table, enum need need)
{
    struct group group = {0, 0, NULL};
    for (size_t i = 0; i < N_SLOTS; i++) {
        if (slots[i].need != need)
            continue;
        group.all++;
        if (!is_null(table, &slots[i]))
            group.filled++;
        else if (!group.hole)
            group.hole = &slots[i];
    }
    return group;
}

static int is_half(const struct group *group)
{
    return group->filled > 0 && group->filled < group->all;
}

static enum tfm_status check_slots(const struct tfm_backend *table, struct tfm_error *err)
{
    const struct group always = look(table, NEED_ALWAYS), map = look(table, NEED_MAP),
                       simple = look(table, NEED_SIMPLE), fast = look(table, NEED_FAST);

    if (always.hole)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "required member \"%s\" is NULL",
                             always.hole->name);
    if (is_half(&map))
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "member \"%s\" is NULL: map and unmap come together or not at all",
                             map.hole->name);
    if (is_half(&fast))
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "member \"%s\" is NULL: compile, release, exec_open, exec_run and "
                             "exec_close come together or not at all",
                             fast.hole->name);
    if (fast.filled == 0 && simple.filled == 0)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "neither \"run_node\" nor \"compile\" is there: it can run nothing");
    return TFM_STATUS_OK;
}

enum tfm_status tfm__plugin_check(const struct tfm_backend *table, struct tfm_backend *copy,
                                  struct tfm_error *err)
{
    struct tfm_backend mine;
    enum tfm_status status;

    memset(copy, 0, sizeof *copy);
    /* The major first: only the first three members mean the same in every major. */
    if (table->abi_major != TFM_BACKEND_ABI_MAJOR)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "built for backend ABI %u, this library has %u: rebuild it with the "
                             "headers of this library",
                             (unsigned)table->abi_major, (unsigned)TFM_BACKEND_ABI_MAJOR);
    if (table->struct_size < shortest)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "struct_size is %zu, the required members take %zu: set it to sizeof "
                             "(struct tfm_backend)",
                             table->struct_size, shortest);
    copy_members(table, &mine);
    if (mine.name) {
        if ((status = check_name(mine.name, err)) != TFM_STATUS_OK)
            return status;
        copy->name = mine.name;
        copy->version = mine.version;
    }
    if ((status = check_slots(&mine, err)) != TFM_STATUS_OK)
        return status;
    *copy = mine;
    return TFM_STATUS_OK;
}

/* What the loader has to say, without the path in front, which every message has already. */
static const char *loader_text(const char *path)
{
    const char *text = dlerror();
    const size_t length = strlen(path);
    if (!text)
        return "the loader gives no reason";
    return strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0
               ? text + length + 2
               : text;
}

enum tfm_status tfm__plugin_file_check(const char *path, struct tfm_error *err)
{
    struct stat info;

    /* Before dlopen: opening a FIFO would wait for a writer. */
    if (stat(path, &info) != 0)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "cannot be opened: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "not a regular file");
    return tfm__elf_file_check(path, err);
}

enum tfm_status tfm__plugin_load(const char *path, const struct tfm_backend **table,
                                 struct tfm_error *err)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "dlopen: %s", loader_text(path));
    dlerror();
    const void *symbol = dlsym(module, TFM_BACKEND_SYMBOL);
    if (!symbol)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "no symbol " TFM_BACKEND_SYMBOL ", so it is no TFM backend: %s",
                             loader_text(path));
    *table = symbol;
    return TFM_STATUS_OK;
}
