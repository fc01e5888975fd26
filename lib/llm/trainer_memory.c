/* SPDX-License-Identifier: MIT
 * Refuses what this machine has no memory for before any of it is touched. Linux promises more than there is: without
 * this a configuration that is too large ends half-way, without a word, this process or another one. */
#include <unistd.h>

#include "lib/core/checked.h"
#include "lib/llm/trainer_internal.h"

/* Bytes of the machine; 0 = it does not say. */
static size_t machine_bytes(void)
{
#ifdef _SC_PHYS_PAGES
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes = 0;

    if (pages > 0 && page > 0 && !tfm__mul_size((size_t)pages, (size_t)page, &bytes))
        return bytes;
#endif
    return 0;
}

static double gb(size_t bytes)
{
    return (double)bytes / 1e9;
}

/* 1 if what is trained lies in the memory of this machine. */
static int is_here(const struct tfm_trainer *trainer)
{
    return trainer->n_devices == 0 || tfm_device_kind(trainer->devices[0]) == TFM_DEVICE_CPU;
}

enum tfm_status tfm__trainer_run_fits(const struct tfm_trainer *trainer, struct tfm_error *err)
{
    const size_t rows = (size_t)trainer->settings.length * (size_t)trainer->settings.sequences;
    const size_t most = machine_bytes();
    size_t values = 0, bytes;

    /* the least that backward needs of each token: what every block begins with. Beside it ids, position, target, loss and
     * the slope of the loss */
    if (most &&
        ((is_here(trainer) &&
          tfm__mul_size((size_t)trainer->model.width, (size_t)trainer->model.layers, &values)) ||
         tfm__add_size(values, 5, &values) || tfm__mul_size(values, sizeof(float), &values) ||
         tfm__mul_size(rows, values, &bytes) || bytes > most))
        return tfm_error_set(err, TFM_STATUS_NOMEM,
                             "train: a run of %zu tokens does not fit the %.1f GB of this machine: "
                             "make \"sequences\" or \"length\" smaller",
                             rows, gb(most));
    return TFM_STATUS_OK;
}

static enum tfm_status add(void *context, const struct tfm_tensor *tensor)
{
    size_t *n = context;

    if (tfm__add_size(*n, tfm__trainer_elements(tensor), n))
        *n = SIZE_MAX;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__trainer_fits(const struct tfm_trainer *trainer, const struct tfm_graph *graph,
                                  size_t arena, struct tfm_error *err)
{
    const size_t most = machine_bytes();
    const int narrow = trainer->settings.compute != TFM_DTYPE_F32;
    /* where they begin; on a processor all: weights (and exact values beside narrow ones), gradients, two moments */
    const size_t each = !is_here(trainer) ? tfm_dtype_info(trainer->settings.compute)->bytes
                        : narrow          ? 18
                                          : 16;
    size_t parameters = 0, bytes, all;

    (void)tfm_graph_parameters(graph, add, &parameters);
    if (!is_here(trainer))
        arena = 0;
    if (!most || (!tfm__mul_size(parameters, each, &bytes) && !tfm__add_size(bytes, arena, &all) &&
                  all <= most))
        return TFM_STATUS_OK;
    if (arena == 0)
        return tfm_error_set(err, TFM_STATUS_NOMEM,
                             "train: %zu parameters take %zu bytes each, this machine has %.1f GB: "
                             "make \"vocab\", \"width\", \"ffn_width\" or \"layers\" smaller",
                             parameters, each, gb(most));
    return tfm_error_set(
        err, TFM_STATUS_NOMEM,
        "train: %zu parameters of %zu bytes each and %.1f GB of activations do not "
        "fit the %.1f GB of this machine: make \"sequences\" smaller, or set "
        "\"recompute\"",
        parameters, each, gb(arena), gb(most));
}
