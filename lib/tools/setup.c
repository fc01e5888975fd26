/* SPDX-License-Identifier: MIT
 * Opens model, devices and session from the common options; says under -v what it got. */
#include "lib/tools/setup.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/tools/clock.h"
#include "lib/tools/kernel_cache.h"
#include "lib/tools/log.h"
#include "lib/tools/message.h"
#include "lib/tools/place.h"
#include "lib/tools/progress.h"

int tfm__verbose_wanted(const struct tfm__options *options)
{
    const char *value = getenv("TFM_VERBOSE");
    return options->verbose || (value && *value && strcmp(value, "0") != 0);
}

size_t tfm__peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (size_t)usage.ru_maxrss * 1024;
}

int tfm__backend_help_wanted(const struct tfm__options *options)
{
    const char *spec = options->backend ? options->backend : secure_getenv("TFM_BACKEND");
    return spec && strcmp(spec, "help") == 0;
}

/* ---- model
 * ----------------------------------------------------------------------------------------- */

/* The file that -m, TFM_MODEL or the places of models name; NULL after it has said that there is none.
 * *prefix stands in front of errors about it. */
static const char *model_path(const struct tfm__options *options, char found[PATH_MAX],
                              const char **prefix)
{
    const char *variable = secure_getenv("TFM_MODEL");

    *prefix = "";
    if (options->model)
        return options->model;
    if (variable && *variable) {
        *prefix = "TFM_MODEL: ";
        return variable;
    }
    if (tfm__place_find_model(found))
        return found;
    tfm__failed("no model found: ./quickstart smollm2 fetches one, or name one with -m FILE");
    return NULL;
}

static void begin_devices(const struct tfm__options *options, struct tfm__setup *setup);

static int open_model(const struct tfm__options *options, int devices_too, struct tfm__setup *setup)
{
    char found[PATH_MAX];
    const char *prefix, *path = model_path(options, found, &prefix);
    struct tfm_error err;

    if (!path)
        return TFM__EXIT_FAILED;
    const double start = tfm__seconds();
    if (devices_too)
        begin_devices(options, setup);
    if (tfm_model_open(path, &setup->model, &err))
        return tfm__failed("%s%s", prefix, err.text);
    setup->load_seconds += tfm__seconds() - start;
    return TFM__EXIT_OK;
}

int tfm__setup_model(const struct tfm__options *options, struct tfm__setup *setup)
{
    return open_model(options, 0, setup);
}

int tfm__setup_model_and_devices(const struct tfm__options *options, struct tfm__setup *setup)
{
    return open_model(options, 1, setup);
}

int tfm__setup_tokenizer(const struct tfm__options *options, struct tfm_tokenizer **tokenizer)
{
    char found[PATH_MAX];
    const char *prefix, *path = model_path(options, found, &prefix);
    struct tfm_error err;

    if (!path)
        return TFM__EXIT_FAILED;
    if (tfm_tokenizer_open(path, tokenizer, &err))
        return tfm__failed("%s%s", prefix, err.text);
    return TFM__EXIT_OK;
}

/* ---- backends
 * -------------------------------------------------------------------------------------- */

static int same_file(const char *a, const char *b)
{
    struct stat first, second;
    if (strcmp(a, b) == 0)
        return 1;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* The first plugin that was asked for by name and refused, with its row; NULL = none was. */
static const struct tfm_backend_row *refused(const struct tfm__options *options,
                                             struct tfm_registry *registry, const char **asked)
{
    for (size_t i = 0; i < options->plugins.n; i++)
        for (size_t k = 0; k < tfm_registry_count(registry); k++) {
            const struct tfm_backend_row *row = tfm_registry_row(registry, k);
            *asked = options->plugins.items[i];
            if (row->status == TFM_STATUS_PLUGIN && same_file(row->file, *asked))
                return row;
        }
    return NULL;
}

/* It is an error, as a missing model would be. */
static int check_plugins(const struct tfm__options *options, struct tfm_registry *registry)
{
    const char *asked;
    const struct tfm_backend_row *row = refused(options, registry, &asked);

    return row ? tfm__failed("--plugin %s: %s", asked, row->reason) : TFM__EXIT_OK;
}

/* What must be known before the registry is made: variables that plugins and drivers read, how much is told. */
static void prepare(const struct tfm__options *options)
{
    if (options->verbose)
        setenv("TFM_VERBOSE", "1", 1);
    tfm__log_begin(tfm__verbose_wanted(options));
    if (options->threads > 0)
        tfm_threads_set((uint32_t)options->threads);
    tfm__place_add_plugins();
    tfm__kernel_cache_init();
    /* OpenBLAS's threads wait for their first product in a loop; the processors are needed elsewhere.
     * 2^22 cycles: about a millisecond. */
    setenv("OPENBLAS_THREAD_TIMEOUT", "22", 0);
}

int tfm__setup_registry(const struct tfm__options *options, struct tfm__setup *setup)
{
    struct tfm_error err;

    prepare(options);
    if (tfm_registry_create(options->plugins.items, options->plugins.n, &setup->registry, &err))
        return tfm__failed("%s", err.text);
    return TFM__EXIT_OK;
}

/* ---- in a thread, while the model is opened ---- */

struct opening {
    const struct tfm__options *options;
    struct tfm__setup *setup;
};

static void *open_early(void *data)
{
    const struct opening *o = data;
    struct tfm__setup *setup = o->setup;
    const char *asked;

    setup->opened = tfm_registry_create(o->options->plugins.items, o->options->plugins.n,
                                        &setup->registry, &setup->why);
    if (setup->opened == TFM_STATUS_OK && !refused(o->options, setup->registry, &asked))
        setup->opened = tfm_devices_open(setup->registry, o->options->backend, -1, setup->devices,
                                         TFM__SETUP_DEVICES, &setup->n_devices, &setup->why);
    free(data);
    return NULL;
}

/* Does nothing where that cannot be. A driver may set variables in that thread, so nobody reads any here until
 * it has ended. */
static void begin_devices(const struct tfm__options *options, struct tfm__setup *setup)
{
    struct opening *o = malloc(sizeof *o);

    if (!o)
        return;
    *o = (struct opening){options, setup};
    prepare(options);
    setup->begun = pthread_create(&setup->opener, NULL, open_early, o) == 0;
    if (!setup->begun)
        free(o);
}

static void wait_for_opener(struct tfm__setup *setup)
{
    if (setup->begun)
        pthread_join(setup->opener, NULL);
    setup->begun = 0;
}

/* ---- session
 * --------------------------------------------------------------------------------------- */

/* The library itself tells the plan and each fallback under TFM_VERBOSE. */
static void tell_setup(const struct tfm__setup *setup)
{
    struct tfm_plan_summary summary;

    for (size_t i = 0; i < setup->n_devices; i++)
        tfm__message("device %zu: %s: %s", i, tfm_device_backend(setup->devices[i]),
                     tfm_device_name(setup->devices[i]));
    tfm_plan_summarize(tfm_session_plan(setup->session), &summary);
    tfm__message("memory: model file %.1f MB, arena %.1f MB, KV cache %.1f MB, peak %.1f MB",
                 1e-6 * (double)tfm_model_bytes(setup->model), 1e-6 * (double)summary.arena_bytes,
                 1e-6 * (double)summary.state_bytes, 1e-6 * (double)tfm__peak_bytes());
}

static int is_auto(const struct tfm__options *options)
{
    const char *spec = options->backend ? options->backend : secure_getenv("TFM_BACKEND");
    return !spec || !*spec || strcmp(spec, "auto") == 0;
}

/* A kernel that does not build shows only when a plan is made: `auto` then takes the next device, one that was
 * named is an error. */
static enum tfm_status open_on_devices(const struct tfm__options *options, tfm__setup_open *open,
                                       void *context, struct tfm__setup *setup,
                                       struct tfm_error *err)
{
    for (;;) {
        enum tfm_status status =
            setup->n_devices > 0
                ? TFM_STATUS_OK
                : tfm_devices_open(setup->registry, options->backend, -1, setup->devices,
                                   TFM__SETUP_DEVICES, &setup->n_devices, err);
        if (status != TFM_STATUS_OK)
            return status;
        status = open(context, setup, err);
        if (status != TFM_STATUS_BUILD || !is_auto(options))
            return status;
        tfm__message("warning: %s: %s; auto takes the next", tfm_device_backend(setup->devices[0]),
                     err->text);
        tfm_device_reject(setup->devices[0], err);
        while (setup->n_devices > 0)
            tfm_device_release(setup->devices[--setup->n_devices]);
    }
}

int tfm__setup_on_devices(const struct tfm__options *options, tfm__setup_open *open, void *context,
                          struct tfm__setup *setup)
{
    struct tfm_error err;
    const int early = setup->begun;
    int code = TFM__EXIT_OK;

    wait_for_opener(setup);
    if (!early)
        code = tfm__setup_registry(options, setup);
    else if (setup->opened != TFM_STATUS_OK)
        code = tfm__failed("%s", setup->why.text);
    if (code == TFM__EXIT_OK)
        code = check_plugins(options, setup->registry);
    if (code == TFM__EXIT_OK &&
        open_on_devices(options, open, context, setup, &err) != TFM_STATUS_OK)
        code = tfm__failed("%s", err.text);
    if (code == TFM__EXIT_OK)
        tfm__kernel_cache_tell();
    return code;
}

static enum tfm_status open_session(void *context, struct tfm__setup *setup, struct tfm_error *err)
{
    return tfm_session_create(setup->model, setup->devices, setup->n_devices, context,
                              &setup->session, err);
}

int tfm__setup_session(const struct tfm__options *options, int64_t context,
                       struct tfm__setup *setup)
{
    struct tfm_session_options session;
    struct tfm__progress progress;
    const double start = tfm__seconds();

    tfm__progress_init(&progress);
    tfm_session_defaults(&session);
    session.context = options->given.context ? options->context : context;
    session.chunk = options->chunk;
    if (setup->rows > 0 && setup->rows < session.chunk)
        session.chunk = setup->rows;
    session.sequences = setup->sequences;
    session.outputs = setup->outputs;
    tfm_dtype_parse(options->cache,
                    &session.cache); /* the option table lets pass only what parses */
    session.progress = tfm__progress_show;
    session.progress_context = &progress;
    const int code = tfm__setup_on_devices(options, open_session, &session, setup);
    tfm__progress_clear(&progress);
    if (code != TFM__EXIT_OK)
        return code;
    setup->load_seconds += tfm__seconds() - start;
    if (tfm__verbose_wanted(options))
        tell_setup(setup);
    return TFM__EXIT_OK;
}

static void put_line(void *context, const char *text)
{
    (void)context;
    tfm__message("%s", text);
}

/* TFM_PROFILE: where the time went on a device whose backend can tell. */
static void tell_profile(struct tfm_device *device)
{
    struct tfm_error err;
    if (tfm_device_profile(device, put_line, NULL, &err))
        tfm__message("%s", err.text);
}

void tfm__setup_close(struct tfm__setup *setup)
{
    wait_for_opener(setup);
    tfm_session_destroy(setup->session);
    for (size_t i = 0; i < setup->n_devices; i++) {
        tell_profile(setup->devices[i]);
        tfm_device_release(setup->devices[i]);
    }
    tfm_registry_destroy(setup->registry);
    tfm_model_close(setup->model);
    tfm__kernel_cache_deinit();
}
