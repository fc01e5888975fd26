/* SPDX-License-Identifier: MIT
 * What the verbs have in common: model, registry, devices, session, as the common options say. */
#ifndef TFM__TOOLS_SETUP_H
#define TFM__TOOLS_SETUP_H

#include <pthread.h>

#include <tfm/session.h>

#include "lib/tools/options.h"

enum { TFM__SETUP_DEVICES = 16 };

struct tfm__setup {
    struct tfm_model *model;
    struct tfm_registry *registry;
    struct tfm_device *devices[TFM__SETUP_DEVICES];
    size_t n_devices;
    struct tfm_session *session;
    double load_seconds; /* of the calls below */
    /* of the session, set before it is made; 0 = its own defaults */
    int64_t sequences, outputs;
    /* most that a run will have, if that is known: what only longer ones need is not built */
    int64_t rows;
    /* what tfm__setup_model_and_devices has started; all of it belongs to that thread until it is waited for */
    int begun;
    pthread_t opener;
    enum tfm_status opened; /* of registry and devices */
    struct tfm_error why;
};

/* Each returns an exit code after it has said what is wrong, and is released with tfm__setup_close,
 * which takes a half-filled or zeroed struct. */
int tfm__setup_model(const struct tfm__options *options, struct tfm__setup *setup);
/* Also begins to open registry and devices, in a thread of its own, to save that time; tfm__setup_session goes
 * on from there. */
int tfm__setup_model_and_devices(const struct tfm__options *options, struct tfm__setup *setup);
/* Only the tokenizer of the model, or of a file that has nothing else: destroy it. */
int tfm__setup_tokenizer(const struct tfm__options *options, struct tfm_tokenizer **tokenizer);
/* Only the registry, for `tfm backends`. */
int tfm__setup_registry(const struct tfm__options *options, struct tfm__setup *setup);
/* Registry, devices, session; `context` is used when -c was not given (0 = the session's own).
 * Needs the model. */
int tfm__setup_session(const struct tfm__options *options, int64_t context,
                       struct tfm__setup *setup);
/* The same for anything else that is compiled for devices: registry, devices, then open(), again with the next
 * device where `auto` may take it. */
typedef enum tfm_status tfm__setup_open(void *context, struct tfm__setup *setup,
                                        struct tfm_error *err);
int tfm__setup_on_devices(const struct tfm__options *options, tfm__setup_open *open, void *context,
                          struct tfm__setup *setup);
void tfm__setup_close(struct tfm__setup *setup);

/* 1 under -v and TFM_VERBOSE. */
int tfm__verbose_wanted(const struct tfm__options *options);
/* Peak memory of this process in bytes. */
size_t tfm__peak_bytes(void);

/* 1 if the user asks for the list instead of a backend (--backend help, TFM_BACKEND=help). */
int tfm__backend_help_wanted(const struct tfm__options *options);

#endif
