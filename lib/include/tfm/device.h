/* SPDX-License-Identifier: MIT
 * The backend registry and the devices it opens. Thread-safe.
 *
 * Backends are found, in this order: files given to the call, TFM_PLUGIN_PATH (colon list of folders
 * and files; relative ones are resolved once), the package's folder of backends; never the current
 * folder by itself. The environment is ignored under setuid. `reference` is built in.
 *
 * A module from outside the package's folder is loaded and probed by the helper program `tfm-probe` first:
 * one that crashes, exits or hangs there is refused, and this process never sees it. */
#ifndef TFM_DEVICE_H
#define TFM_DEVICE_H

#include <tfm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_registry;
struct tfm_device;
struct tfm_doctor_sink; /* tfm/doctor.h */

/* One row of `tfm backends`. Strings belong to the registry. */
struct tfm_backend_row {
    const char *name;       /* "" when the file gave none */
    const char *version;    /* "" likewise */
    const char *file;       /* path, or "built in", or "memory" */
    enum tfm_status status; /* OK: usable; PLUGIN: refused at load; BACKEND: probe says no */
    const char *reason;     /* why not usable, or a remark; "" when there is nothing to say */
    const struct tfm_probe *probe; /* NULL when refused at load */
    const char *license;           /* "" when it was refused */
    uint32_t abi_minor;            /* that it was built for: younger nodes are not offered to it */
    const char
        *shadowed_by; /* it is complete, but this file has its name and came first; or NULL */
};

/* Which modules are tried in a process of their own before they are loaded. */
enum tfm_plugin_trial {
    TFM_PLUGIN_TRIAL_ENVIRONMENT = -1, /* what TFM_PLUGIN_TRIAL says: auto, all or off; else AUTO */
    TFM_PLUGIN_TRIAL_AUTO,             /* all but those of the package's folder */
    TFM_PLUGIN_TRIAL_ALL,              /* those too; without the helper all are refused */
    TFM_PLUGIN_TRIAL_OFF,
};
/* For registries made later. `seconds`: that constructors and probe of a module may take together, at
 * most 3600; 0 = TFM_PLUGIN_TRIAL_SECONDS, else 10. */
TFM_API void tfm_plugin_trial_set(enum tfm_plugin_trial trial, uint32_t seconds);

/* Loads what it finds; `plugins` [n] are extra files or folders that come first. A file that cannot be
 * used is no error here: it is a row with its reason. NOMEM; INVALID_ARGUMENT: TFM_PLUGIN_TRIAL or
 * TFM_PLUGIN_TRIAL_SECONDS holds what is none. */
TFM_API enum tfm_status tfm_registry_create(const char *const *plugins, size_t n,
                                            struct tfm_registry **registry, struct tfm_error *err);
/* Devices that are still open keep what they need. Modules are never closed. NULL is fine. */
TFM_API void tfm_registry_destroy(struct tfm_registry *registry);
/* Adds a backend that lives in the program itself. PLUGIN with the reason when it is refused. */
TFM_API enum tfm_status tfm_registry_add(struct tfm_registry *registry,
                                         const struct tfm_backend *backend, struct tfm_error *err);

/* The ageing rule: 1 = a backend that was built for ABI minor `abi_minor` knows all that the node uses
 * and may be asked about it; 0 = it would take the node for another one, reason [size] says why. */
TFM_API int tfm_node_is_known(uint32_t abi_minor, const struct tfm_node *node, char *reason,
                              size_t size);

/* The table of `reference`, which defines what is right: for a program that compares a backend with it
 * slot by slot. Constant. */
TFM_API const struct tfm_backend *tfm_reference_backend(void);

TFM_API size_t tfm_registry_count(const struct tfm_registry *registry);
/* Probes it on first use. NULL when there is no such row. */
TFM_API const struct tfm_backend_row *tfm_registry_row(struct tfm_registry *registry, size_t index);

/* Opens the preference list of devices that a plan is compiled for.
 *   spec    "NAME[:DEVICE][,NAME...]", "auto", or NULL = $TFM_BACKEND, else "auto". DEVICE is an index
 *           or a part of a platform's or device's name. auto = the usable backend of highest score; a
 *           device that does not open is told and the next one taken.
 *   strict  1 leaves out the `reference` that otherwise ends the list; -1 = $TFM_STRICT.
 * devices gets at most `max`, *n their number; each is released with tfm_device_release.
 * NOT_FOUND: no such backend or device (the text lists the choices); PLUGIN/BACKEND: it is there and
 * cannot be used (the text says why). A backend that was named is never replaced by another.
 * A device that is open already is shared, unless it was lost (DEVICE_LOST from a call on it): then this
 * opens it anew; the lost one and what was made on it can only be released. */
TFM_API enum tfm_status tfm_devices_open(struct tfm_registry *registry, const char *spec,
                                         int strict, struct tfm_device **devices, size_t max,
                                         size_t *n, struct tfm_error *err);

/* The file of a row, without probing it. NULL when there is no such row. */
TFM_API const char *tfm_registry_file(struct tfm_registry *registry, size_t index);

/* Facts about what a backend stands on, and about what an open device does; tfm/doctor.h says how they are
 * told. 0 when the backend tells none (or was refused), else 1. */
TFM_API int tfm_registry_doctor(struct tfm_registry *registry, size_t index,
                                const struct tfm_doctor_sink *sink);
TFM_API int tfm_device_doctor(const struct tfm_device *device, const struct tfm_doctor_sink *sink);
/* Where backends are looked for beside the files given to tfm_registry_create, in order, and where the helper
 * is that tries them: `source` is "TFM_PLUGIN_PATH", "package" or "helper". Paths as they were written; none
 * needs to exist. NOMEM. */
TFM_API enum tfm_status tfm_registry_places(void (*place)(void *context, const char *source,
                                                          const char *path),
                                            void *context);

/* Row numbers of the usable backends in the order in which `auto` tries them: highest score first, then
 * the one found first, the reference last of equals; of each, its devices as they are listed. Fills rows
 * [max] and returns how many; probes what was not probed yet. */
TFM_API size_t tfm_auto_order(struct tfm_registry *registry, size_t *rows, size_t max);
/* The device does not work after all (a plan for it failed with BUILD: its compiler refuses a kernel):
 * `auto` passes over it from now on in this registry. It can still be named. */
TFM_API void tfm_device_reject(struct tfm_device *device, const struct tfm_error *why);

TFM_API struct tfm_device *tfm_device_retain(struct tfm_device *device);
TFM_API void tfm_device_release(struct tfm_device *device);              /* NULL is fine */
TFM_API const char *tfm_device_backend(const struct tfm_device *device); /* "opencl" */
TFM_API const char *tfm_device_name(const struct tfm_device *device);    /* "pthread-..." */
TFM_API uint32_t tfm_device_index(const struct tfm_device *device);      /* in the probe's list */
/* ACCELERATOR when it was made of objects of the program (tfm/opencl.h): no list says what it is. */
TFM_API enum tfm_device_kind tfm_device_kind(const struct tfm_device *device);
/* A named table of the backend, or NULL. */
TFM_API const void *tfm_device_extension(const struct tfm_device *device, const char *name);

/* Ends what TFM_PROFILE=FILE asked the backend for: the file is written, and `line` gets each line of a table
 * of the device's work so far. Nothing when it was not set, or the backend has no "profile-1" extension. No
 * exec of the device may be running. IO: the file cannot be written (named, with the reason). */
TFM_API enum tfm_status tfm_device_profile(struct tfm_device *device,
                                           void (*line)(void *context, const char *text),
                                           void *context, struct tfm_error *err);

/* A device of the backend named `backend` on objects that the program has already, as the backend's extension
 * `extension` (struct tfm_interop in tfm/backend.h) takes them; tfm/opencl.h calls it with types. The backend
 * retains what it keeps of them. The device is never shared with another opening, and the backend is not
 * probed. NOT_FOUND, PLUGIN: no such backend; UNSUPPORTED: it has no such extension; what the backend says. */
TFM_API enum tfm_status tfm_device_wrap(struct tfm_registry *registry, const char *backend,
                                        const char *extension, const void *objects,
                                        struct tfm_device **device, struct tfm_error *err);
/* The objects of an open device, borrowed: valid while it is held. UNSUPPORTED: its backend has no such
 * extension; what the backend says. */
TFM_API enum tfm_status tfm_device_objects(const struct tfm_device *device, const char *extension,
                                           void *objects, struct tfm_error *err);

/* Host threads: 0 = TFM_THREADS, else the CPUs of the affinity mask. Takes effect for devices opened
 * and pools started later. */
TFM_API void tfm_threads_set(uint32_t threads);
TFM_API uint32_t tfm_threads(void);

/* Calls of the library's allocator since the process began (tests: a warm run adds none). */
TFM_API uint64_t tfm_allocations(void);

/* Where the library's messages go; NULL = standard error, and only from WARN up unless TFM_VERBOSE. */
TFM_API void tfm_log_set(void (*sink)(void *context, enum tfm_log_level level, const char *backend,
                                      const char *text),
                         void *context);

#ifdef __cplusplus
}
#endif
#endif
