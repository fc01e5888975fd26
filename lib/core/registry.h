/* SPDX-License-Identifier: MIT
 * What registry, devices and the choice among them share: the entries of a registry. */
#ifndef TFM__CORE_REGISTRY_H
#define TFM__CORE_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <tfm/device.h>

/* One backend, accepted or refused. Held by its registry and by each of its open devices.
 * Everything but what `lock` guards is constant once the entry is in the registry. */
struct tfm__entry {
    atomic_uint references;
    struct tfm_backend table; /* the library's copy; all zero when refused */
    char *file, *name, *version, *license;
    int accepted;
    int builtin;       /* the reference */
    int asked;         /* the user pointed at the file */
    char *shadowed_by; /* complete, but the one of this file has its name; or NULL */
    dev_t device;      /* identity of the file: found by two ways it is listed once */
    ino_t inode;

    pthread_mutex_t lock; /* guards all below, and each device's reference count */
    int probed;
    int warned; /* its refusal was told */
    struct tfm_backend_row row;
    struct tfm_probe probe;
    char reason[1000];
    struct tfm_device *devices;    /* open ones, shared by all who ask for them */
    uint32_t rejected;             /* bit i: `auto` passes over device i */
    struct tfm_error why_rejected; /* the first of them */
};

/* ---- entry.c ------------------------------------------------------------------------------------
 */

/* An entry in no list yet, with one reference. NULL when out of memory. */
struct tfm__entry *tfm__entry_create(const char *file);
struct tfm__entry *tfm__entry_retain(struct tfm__entry *entry);
void tfm__entry_release(struct tfm__entry *entry); /* NULL is fine */

/* Marks it as refused: no table, the reason in one line. */
void tfm__entry_refuse(struct tfm__entry *entry, const char *reason);
/* Fills the row; name and version may be NULL. The entry may not move afterwards. NOMEM. */
enum tfm_status tfm__entry_describe(struct tfm__entry *entry, const char *name,
                                    const char *version);
/* The one that took its name: its file is copied. NOMEM. */
enum tfm_status tfm__entry_shadow(struct tfm__entry *entry, const struct tfm__entry *first);

/* Its row, probed on first use. Never probe before somebody asks: a process that has seen its
 * OpenCL devices may not fork any more (PoCL hangs in the child). */
const struct tfm_backend_row *tfm__entry_row(struct tfm__entry *entry);

/* ---- registry.c ---------------------------------------------------------------------------------
 */

/* Entry by number without probing it; NULL past the end. Lives as long as the registry. */
struct tfm__entry *tfm__registry_entry(struct tfm_registry *registry, size_t index);

/* ---- device.c -----------------------------------------------------------------------------------
 */

/* Opens device `index` of the probe's list, or shares the one that is open. NOMEM, or what the
 * backend says; the text begins with backend and device. */
enum tfm_status tfm__device_open(struct tfm__entry *entry, uint32_t index,
                                 struct tfm_device **device, struct tfm_error *err);

/* A device of a handle that the backend made otherwise; its last release closes the handle, and so does a
 * failure. NOMEM, or BACKEND: its caps contradict the table. */
enum { TFM__DEVICE_NAME = 128 };
enum tfm_status tfm__device_adopt(struct tfm__entry *entry, void *handle, const char *name,
                                  struct tfm_device **device, struct tfm_error *err);

#endif
