/* SPDX-License-Identifier: MIT
 * The device of the opencl backend: how it is found and opened, what was chosen for it, whether it is still
 * there. Part of internal.h. */
#ifndef TFM_OPENCL_DEVICE_H
#define TFM_OPENCL_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <tfm/backend.h>
#include <tfm/opencl.h>

/* ---- devices (device.c) ----------------------------------------------------------------------- */

struct tfm__cl_found {
    cl_platform_id platform;
    cl_device_id device;
    enum tfm_device_kind kind;
    char name[128], platform_name[128];
};

/* Something that could be done in several ways on a device. */
struct tfm__cl_choice {
    const char *what; /* "matrix product of many rows" */
    char choice[96], why[160];
};
enum { TFM__CL_CHOICES = 16 };

/* What the environment asks for, read when a device is opened. */
enum tfm__cl_gemm_choice { TFM__CL_GEMM_OWN, TFM__CL_GEMM_CLBLAST };

enum tfm__cl_act_choice { TFM__CL_ACT_F32, TFM__CL_ACT_INT8, TFM__CL_ACT_AUTO };

/* What is multiplied by a trained BF16 weight, and what its gradient is made of, rounded to bf16. */
enum tfm__cl_bf16_choice {
    TFM__CL_BF16_OFF,
    TFM__CL_BF16_FAST, /* where the device is fast at it: replaced by ON or OFF by tfm__cl_bf16_settle */
    TFM__CL_BF16_ANY, /* in any way: replaced by ON when the device is opened */
    TFM__CL_BF16_ON,
};

/* How the kernels that sum over a row are written: for processors that want wide vectors, or for those
 * that want many work-items that share local memory. */
enum tfm__cl_shape { TFM__CL_WIDE, TFM__CL_GROUP };

enum tfm__cl_persistent {
    TFM__CL_PERSISTENT_AUTO, /* where a proof went well */
    TFM__CL_PERSISTENT_ON,   /* without one */
    TFM__CL_PERSISTENT_OFF,
};

struct tfm__cl_settings {
    enum tfm__cl_gemm_choice gemm;      /* TFM_OPENCL_GEMM */
    atomic_int act;                     /* TFM_ACT; AUTO is replaced by tfm__cl_int8_settle */
    int act_tuned;                      /* 1 = a tune file says so, TFM_ACT does not */
    const char *int8;                   /* INT8: options of kernels/int8.cl's way */
    atomic_int bf16;                    /* TFM_ACT */
    const char *bf16_options;           /* ON: options of matrix.cl with kernels/bf16.cl's way */
    enum tfm__cl_persistent persistent; /* TFM_OPENCL_PERSISTENT */
    enum tfm__cl_shape shape;           /* TFM_OPENCL_SHAPE */
    int narrow;                         /* wide shape: its compiler takes vectors apart */
    int pin;                            /* TFM_OPENCL_PIN: threads to processors, if it can be */
    uint32_t group;                     /* work-items of a group at most, a power of two */
    uint32_t split, few;                /* cells of a split of attention: of launches, of phases */
};

/* What a file of `tfm tune` says about the device (tune.c). */
enum { TFM__CL_GEMM_PARAMETERS = 16 };
enum tfm__cl_tune_key {
#define TFM_TUNE_KEY(ID, name, first, second, least, most, step) TFM__CL_TUNE_##ID,
#include "backends/opencl/tune_keys.def"
#undef TFM_TUNE_KEY
    TFM__CL_TUNE_KEYS
};
struct tfm__cl_tuned {
    uint32_t has; /* bits of keys */
    uint32_t values[TFM__CL_TUNE_KEYS];
    int has_xgemm;
    size_t xgemm[TFM__CL_GEMM_PARAMETERS]; /* CLBlast's, in the order of tfm__cl_gemm_names */
};
struct tfm__cl_tune_table;

struct tfm__cl_device {
    const struct tfm_host *host;
    struct tfm__cl_settings settings;
    struct tfm__cl_found found;
    cl_device_id id; /* found.device, or a sub-device of it */
    cl_context context;
    cl_command_queue queue; /* for transfers and packing; an exec has its own */
    int pinned;             /* 1 = holds the threads to their processors (workers.c) */
    int lent;               /* 1 = the objects are the caller's; execs run on `queue` too */
    struct tfm__cl_sources *sources; /* of all kernels, as they were when the device was opened */
    cl_mem pulse;      /* one word, to see whether the device still answers (lost.c) */
    atomic_int lost;   /* it did not, once */
    const char *proof; /* options of the int8 way that the common program can prove; NULL = none */
    pthread_mutex_t build_lock;
    struct tfm__cl_built *built; /* under the lock: the programs so far */
    enum tfm_device_kind kind;
    uint32_t units, parts; /* compute units; most parts that a launch is split into */
    size_t max_alloc, base_align;
    char name[128], platform[128], driver[64];

    pthread_mutex_t act_lock; /* of who finds out what `act` is */
    pthread_mutex_t gemm_lock;
    int gemm_ready; /* under the lock: overrides applied and proved, kernels compiled */
    int gemm_used;  /* CLBlast was called, and may hold programs of this device */

    struct tfm__cl_tune_table *tune;
    struct tfm__cl_tuned tuned, shipped; /* tune.h: tfm__cl_tuned */

    uint32_t trace; /* TFM_PROFILE: the number of this device in the timeline; 0 = off */
    int told;       /* its table was asked for, so the file was written */
    struct tfm__cl_choice choices[TFM__CL_CHOICES];
    uint32_t n_choices;

    /* under the lock of persistent kernels (few.c) */
    int few_proven;     /* 1 = a persistent kernel works here */
    uint32_t few_parts; /* of it */
    uint32_t few_polls; /* of a part that waits: about 100 us */
};

/* Keeps for `tfm doctor` what was chosen and why, and logs it; `what` is a constant. While a device is opened,
 * or under act_lock; the latest of a `what` counts. */
void tfm__cl_choose(struct tfm__cl_device *device, const char *what, const char *choice,
                    const char *why);

/* Usable devices of all platforms in flat order, the best first, at most `max`. `remark` [size] gets what was skipped
 * and why, or why there are none. Returns their number. */
uint32_t tfm__cl_list(struct tfm__cl_found *found, uint32_t max, char *remark, size_t size);

/* GPUs and accelerators before CPUs, otherwise as the platforms list them: the first is the one that is
 * taken when none is named. */
void tfm__cl_best_first(struct tfm__cl_found *found, uint32_t n);

enum tfm_status tfm__cl_probe(const struct tfm_host *host, const char *params,
                              struct tfm_probe *report, struct tfm_error *err);
enum tfm_status tfm__cl_open(const struct tfm_host *host, uint32_t index, void **device,
                             struct tfm_error *err);
/* Opens a device on objects of the caller that fit together; retains them. */
enum tfm_status tfm__cl_open_lent(const struct tfm_host *host, cl_platform_id platform,
                                  const struct tfm_opencl_objects *lent, void **device,
                                  struct tfm_error *err);
void tfm__cl_close(void *device);
void tfm__cl_caps(void *device, struct tfm_device_caps *caps);
enum tfm_status tfm__cl_sync(void *device, struct tfm_error *err);

/* ---- a device that is lost (lost.c) -------------------------------------------------------------- */

enum tfm_status tfm__cl_pulse_open(struct tfm__cl_device *device, struct tfm_error *err);
void tfm__cl_pulse_close(struct tfm__cl_device *device);

/* What the table of the backend holds: the functions below of the same names, which are asked only while
 * the device is there. After a failure it is seen whether it still is: if not, DEVICE_LOST, from here on
 * and to everybody. */
enum tfm_status tfm__cl_guard_alloc(void *device, size_t bytes, void **buffer,
                                    struct tfm_error *err);
enum tfm_status tfm__cl_guard_alloc_zeroed(void *device, size_t bytes, void **buffer,
                                           struct tfm_error *err);
enum tfm_status tfm__cl_guard_upload(void *device, const void *src, struct tfm_memory dst,
                                     size_t bytes, struct tfm_error *err);
enum tfm_status tfm__cl_guard_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                       struct tfm_error *err);
enum tfm_status tfm__cl_guard_copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                                   size_t bytes, struct tfm_error *err);
enum tfm_status tfm__cl_guard_compile(void *device, struct tfm_weights *weights,
                                      const struct tfm_segment *segment,
                                      const struct tfm_capacity *capacity,
                                      struct tfm_program *program, struct tfm_error *err);
enum tfm_status tfm__cl_guard_exec_open(void *device, const struct tfm_program *program,
                                        const struct tfm_exec_memory *memory, void **exec,
                                        struct tfm_error *err);
enum tfm_status tfm__cl_guard_exec_run(void *exec, const struct tfm_rows *rows,
                                       struct tfm_error *err);
enum tfm_status tfm__cl_guard_sync(void *device, struct tfm_error *err);

/* What the extension TFM_OPENCL_INTEROP returns (interop.c). */
extern const struct tfm_interop tfm__cl_interop;

/* ---- settings (settings.c) ------------------------------------------------------------------------ */

/* Reads the environment for a device whose facts are known, and logs what was chosen and why.
 * INVALID_ARGUMENT: a variable has a value that is none of its choices; the error lists them. */
enum tfm_status tfm__cl_settings_read(struct tfm__cl_device *device, struct tfm_error *err);

/* ---- the group shape (shape.c) --------------------------------------------------------------------- */

/* A group of fewer work-items has nothing to share: the wide shape does its work, and PoCL's compiler
 * does not survive loops of barriers for one or two. */
enum { TFM__CL_GROUP_LEAST = 4 };

/* Sets settings.group from the limits of the device, and from `cap` if it is not 0. */
enum tfm_status tfm__cl_group_limit(struct tfm__cl_device *device, size_t cap,
                                    struct tfm_error *err);
/* 1 = runs of few rows go through phases and the persistent kernel here: a CPU with vectors, wide. */
static inline int tfm__cl_has_phases(const struct tfm__cl_device *d)
{
    return d->kind == TFM_DEVICE_CPU && d->settings.shape == TFM__CL_WIDE && !d->settings.narrow;
}

struct tfm__cl_planner;
struct tfm__cl_launch;
/* As tfm__cl_plan_launch, with as many work-items a group as device and kernel allow, and local memory of
 * `floats` and `each` for every work-item. UNSUPPORTED: that is more than there is,
 * or the kernel takes fewer work-items than TFM__CL_GROUP_LEAST. */
enum tfm_status tfm__cl_plan_group(struct tfm__cl_planner *planner,
                                   const struct tfm__cl_launch *launch, uint32_t floats,
                                   uint32_t each);

/* Of a kernel that is written once, for parts that share nothing: as tfm__cl_plan_launch in the wide shape, where
 * a part is a group of one; in the group shape as tfm__cl_plan_group, where each work-item is a part. */
enum tfm_status tfm__cl_plan_each(struct tfm__cl_planner *planner,
                                  const struct tfm__cl_launch *launch);

/* Floats of local memory that kernels/linear_group_tile.cl takes, and those for each work-item of
 * kernels/linear_group.cl. */
enum { TFM__CL_TILE_FLOATS = 2 * 64 * 32, TFM__CL_LINEAR_GROUP_ROWS = 4 };

#endif
