/* SPDX-License-Identifier: MIT
 * The backend ABI: the only header that a plugin needs. A plugin is a shared object that exports
 * one data symbol, `tfm_backend_v1`, of type `const struct tfm_backend`. It links against nothing
 * of TFM: what it needs of the library arrives in `struct tfm_host`.
 *
 * Two ways to be complete: `run_node` alone (the simple way: one call a node), or `compile`,
 * `release`, `exec_open`, `exec_run`, `exec_close` (the fast way: whole segments). docs/backend-abi.md
 * is the long form of this header, docs/add-a-backend.md walks through a new one. */
#ifndef TFM_BACKEND_H
#define TFM_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/dtype.h>
#include <tfm/op.h>
#include <tfm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFM_BACKEND_ABI_MAJOR 1u
#define TFM_BACKEND_ABI_MINOR 2u
#define TFM_BACKEND_SYMBOL    "tfm_backend_v1"

#define TFM_MAX_RANK    4
#define TFM_MAX_INPUTS  8
#define TFM_MAX_OUTPUTS 4
#define TFM_ALIGNMENT   128 /* of every offset that the core hands out, bytes */

/* ---- tensors and nodes (memory of the graph; valid while the plan lives) -------------------- */

enum tfm_tensor_kind {
    TFM_TENSOR_PARAMETER,    /* weight; its values come from struct tfm_weights */
    TFM_TENSOR_BUFFER,       /* constant beside them (cos/sin tables); an optimizer never sees it */
    TFM_TENSOR_INPUT,        /* written by the caller before a run */
    TFM_TENSOR_OUTPUT,       /* read by the caller after a run */
    TFM_TENSOR_STATE,        /* lives as long as its exec: KV cache */
    TFM_TENSOR_INTERMEDIATE, /* lives in the arena */
};

/* What the outermost extent of a tensor is. */
enum tfm_extent {
    TFM_EXTENT_FIXED,    /* shape[0] */
    TFM_EXTENT_ROWS,     /* N = rows.n of this run;      shape[0] is 0 and means nothing */
    TFM_EXTENT_OUT_ROWS, /* R = rows.n_out of this run;  shape[0] is 0 and means nothing */
};

/* Dense, row-major, outermost extent first (as PyTorch prints it). */
struct tfm_tensor {
    uint32_t id; /* index in its graph */
    enum tfm_tensor_kind kind;
    enum tfm_dtype dtype;
    enum tfm_extent extent;
    int32_t rank; /* 1..TFM_MAX_RANK */
    int64_t shape[TFM_MAX_RANK];
    const char *name;
    const struct tfm_tensor *view_of; /* a reshape of this root tensor (same bytes), or NULL */
    int64_t limit;                    /* I32: values lie in [0, limit); inputs are checked before a
                                         run, weights at compile; 0 = no check */
    int32_t is_position;              /* I32: the values are positions: one at or past the limit is
                                         CONTEXT_FULL instead of OUT_OF_RANGE (ABI minor 1) */
    int32_t is_trainable; /* PARAMETER: 1 = its values change. They lie row-major, as the
                                         graph has them, in memory of each exec, like a state's; they
                                         are no weights for compile (ABI minor 2) */
    int32_t may_be_none;  /* I32: 1 = -1 is a value too and means none (ABI minor 2) */
};

/* The layer that a node belongs to: kind "attention", name "blk.3.attn". */
struct tfm_scope {
    const char *kind;
    const char *name;
    const struct tfm_scope *parent; /* NULL at the root */
};

struct tfm_node {
    uint32_t id; /* index in its graph, in execution order */
    enum tfm_op op;
    uint32_t n_inputs, n_outputs;
    const struct tfm_tensor *inputs[TFM_MAX_INPUTS]; /* an absent optional input is NULL */
    const struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];
    const struct tfm_scope *scope; /* may be NULL */
    struct tfm_attrs attrs;        /* last: it grows */
};

/* The rows of one run. Rows of a sequence are adjacent; there are no padding rows. Row start[s] + i
 * belongs to sequence s, has position (cell) past[s] + i in cache slot slot[s]; sequence s ends
 * where s + 1 starts, the last at n. A row sees the cells <= its own position of its slot, unless
 * attributes of the attention say otherwise; an attention without caches keeps nothing: past is 0.
 * Lengths live with the caller: running the same rows again overwrites the same cells. */
struct tfm_rows {
    uint32_t n;           /* N, 0..capacity; 0 warms everything and computes nothing */
    uint32_t n_seq;       /* sequences in this run */
    uint32_t n_out;       /* R, rows that take_rows keeps */
    const int32_t *slot;  /* [n_seq] cache slot */
    const int32_t *start; /* [n_seq] first row; start[0] = 0, ascending */
    const int32_t *past;  /* [n_seq] cells already filled */
    const int32_t *out;   /* [n_out] row numbers in [0, n) */
};

/* Upper bounds of every run of a plan. */
struct tfm_capacity {
    uint32_t rows, sequences, out_rows;
};

/* Elements of one outermost slice, e.g. D of [N, D], H*d of [N, H, d]. */
static inline int64_t tfm_tensor_row_elements(const struct tfm_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 1; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* All elements of a tensor of fixed extent: a parameter, a buffer, a state. */
static inline int64_t tfm_tensor_elements(const struct tfm_tensor *t)
{
    return t->shape[0] * tfm_tensor_row_elements(t);
}

/* Outermost extent in this run. */
static inline int64_t tfm_tensor_rows(const struct tfm_tensor *t, const struct tfm_rows *rows)
{
    if (t->extent == TFM_EXTENT_ROWS)
        return rows->n;
    return t->extent == TFM_EXTENT_OUT_ROWS ? rows->n_out : t->shape[0];
}

/* The same at full capacity: the most that a run may have. */
static inline int64_t tfm_tensor_rows_most(const struct tfm_tensor *t,
                                           const struct tfm_capacity *capacity)
{
    if (t->extent == TFM_EXTENT_ROWS)
        return capacity->rows;
    return t->extent == TFM_EXTENT_OUT_ROWS ? capacity->out_rows : t->shape[0];
}

/* ---- what the library gives a plugin --------------------------------------------------------- */

enum tfm_log_level { TFM_LOG_ERROR, TFM_LOG_WARN, TFM_LOG_INFO, TFM_LOG_DEBUG };

struct tfm_weights; /* the parameters and buffers of a model on one device */

/* One parameter or buffer as its owner stores it: dense, dtype as in `tensor->dtype`. */
struct tfm_weight {
    const void
        *data; /* host memory, maybe a mapped file: unaligned; valid while the weights live */
    size_t bytes;
};

/* Version and size first; append only. Read a member only if struct_size covers it. */
struct tfm_host {
    uint32_t abi_major, abi_minor;
    size_t struct_size;

    /* Counted allocation, 64-byte aligned. alloc returns NULL when out of memory. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *memory);

    void (*log)(enum tfm_log_level level, const char *backend, const char *text);

    /* As tfm_error_set: keeps the first error, returns `status`. */
    enum tfm_status (*error)(struct tfm_error *err, enum tfm_status status, const char *format, ...)
        TFM_PRINTF(3, 4);

    /* Threads that the user allows (-t, TFM_THREADS, else the CPUs of the affinity mask). */
    uint32_t (*threads)(void);

    /* Calls body(context, begin, end) over [0, n) split among the host pool; returns when all ran.
     * Not to be called from inside body. The split never shows in results: each index is
     * computed whole. */
    void (*parallel_for)(size_t n, void (*body)(void *context, size_t begin, size_t end),
                         void *context);

    /* As in tfm/dtype.h. */
    const struct tfm_dtype_info *(*dtype_info)(enum tfm_dtype dtype);
    void (*to_f32)(enum tfm_dtype dtype, const void *src, size_t first, size_t n, float *dst);
    void (*from_f32)(enum tfm_dtype dtype, const float *src, void *dst, size_t first, size_t n);

    /* Weights, during compile only (the core holds the lock of `weights`).
     * weight: the bytes of a PARAMETER or BUFFER tensor, looked up by its name.
     * weight_taken: the backend has made its own copy; the owner may drop the mapped pages.
     * private_get / private_set: one pointer of the backend kept with the weights, shared by all
     * plans over them: packed forms, device pool. destroy runs when the weights go. */
    enum tfm_status (*weight)(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                              struct tfm_weight *weight, struct tfm_error *err);
    void (*weight_taken)(struct tfm_weights *weights, const struct tfm_tensor *tensor);
    void *(*private_get)(struct tfm_weights *weights);
    void (*private_set)(struct tfm_weights *weights, void *data, void (*destroy)(void *data));
};

/* ---- what a plugin gives the library --------------------------------------------------------- */

#define TFM_PROBE_DEVICES 16

enum tfm_device_kind { TFM_DEVICE_CPU, TFM_DEVICE_GPU, TFM_DEVICE_ACCELERATOR };

struct tfm_probe {
    int32_t usable; /* 1 = open may be tried */
    int32_t score;  /* `auto` takes the highest; the reference has 0, a CPU device 50, a GPU 100 */
    uint32_t n_devices;
    char reason[512]; /* why not usable, or a remark; one line */
    struct {
        char name[128];     /* "pthread-skylake-avx512" */
        char platform[128]; /* "Portable Computing Language"; may be "" */
        enum tfm_device_kind kind;
    } devices[TFM_PROBE_DEVICES];
};

struct tfm_device_caps {
    int32_t host_memory;    /* 1 = a buffer handle is a host address (the core then passes pointers
                                through and copies with memcpy) */
    int32_t whole_segments; /* 1 = use compile; 0 = node by node through run_node */
    size_t max_alloc;       /* largest single buffer in bytes, 0 = no limit known */
    char description[256];  /* one line for `tfm run -v` */
};

/* Memory of one tensor: a buffer handle of the device and a byte offset into it. */
struct tfm_memory {
    void *buffer;
    size_t offset;
};

/* Consecutive nodes of one backend. `tensors` lists every tensor that they touch (views too);
 * index[tensor->id] is its place in that list, -1 for a tensor of other segments. */
struct tfm_segment {
    uint32_t n_nodes, n_tensors;
    const struct tfm_node *const *nodes;
    const struct tfm_tensor *const *tensors;
    const int32_t *index;
    const uint8_t *read_later; /* [n_tensors] 1 = read after this segment (by another segment or the
                                  caller): must really be written */
};

/* What compile hands back. */
struct tfm_program {
    void *impl;
    size_t workspace;     /* bytes of scratch that each exec needs on the device */
    uint8_t *not_written; /* [n_tensors], set by compile to 1 for internal tensors that this program
                             never touches (fused away): they get no memory; starts all 0 */
};

/* What exec_open gets. memory[i] belongs to segment->tensors[i]; buffers, and parameters that are not
 * trainable, have {NULL, 0} here (whole-segment backends took them at compile). */
struct tfm_exec_memory {
    const struct tfm_memory *memory;
    struct tfm_memory workspace;
};

/* Rules for every slot: no exit, no abort, no output but through host->log; results by out-pointer,
 * untouched on failure; a failure records one line in err. Device calls are thread-safe; an exec is
 * used by one thread at a time. "required" slots may not be NULL. */
struct tfm_backend {
    uint32_t abi_major, abi_minor; /* major must equal the library's; minor only appends */
    size_t struct_size;            /* members past it count as NULL */
    const char *name;              /* required: [a-z0-9_]+ */
    const char *version, *license; /* required */

    /* required. Looks whether the backend can work here; fills the device list; leaves nothing
     * behind. params is reserved (NULL). */
    enum tfm_status (*probe)(const struct tfm_host *host, const char *params,
                             struct tfm_probe *report, struct tfm_error *err);

    /* required. Opens device number `index` of the probe's list. */
    enum tfm_status (*open)(const struct tfm_host *host, uint32_t index, void **device,
                            struct tfm_error *err);
    /* required. */
    void (*close)(void *device);
    /* required. */
    void (*caps)(void *device, struct tfm_device_caps *caps);

    /* required. Buffers of the device; contents undefined after alloc. bytes > 0. */
    enum tfm_status (*alloc)(void *device, size_t bytes, void **buffer, struct tfm_error *err);
    void (*free)(void *device, void *buffer);
    /* required. Blocking; complete when they return. */
    enum tfm_status (*upload)(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                              struct tfm_error *err);
    enum tfm_status (*download)(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                struct tfm_error *err);
    /* optional: within the device; NULL = through host memory. */
    enum tfm_status (*copy)(void *device, struct tfm_memory src, struct tfm_memory dst,
                            size_t bytes, struct tfm_error *err);
    /* optional, both or none. */
    enum tfm_status (*map)(void *device, struct tfm_memory memory, size_t bytes, void **pointer,
                           struct tfm_error *err);
    enum tfm_status (*unmap)(void *device, struct tfm_memory memory, void *pointer,
                             struct tfm_error *err);

    /* required. Can this node run here, for every N up to `capacity`? Answered truthfully: a yes is
     * a promise. A no writes its reason in one line of at most `size` bytes. */
    int32_t (*supports)(void *device, const struct tfm_node *node,
                        const struct tfm_capacity *capacity, char *reason, size_t size);

    /* required unless the five below are there. inputs[i] of an absent optional input is
     * {NULL, 0}. Complete when it returns. */
    enum tfm_status (*run_node)(void *device, const struct tfm_node *node,
                                const struct tfm_memory *inputs, const struct tfm_memory *outputs,
                                const struct tfm_rows *rows, struct tfm_error *err);

    /* all or none. Programs are immutable and shared by threads. */
    enum tfm_status (*compile)(void *device, struct tfm_weights *weights,
                               const struct tfm_segment *segment,
                               const struct tfm_capacity *capacity, struct tfm_program *program,
                               struct tfm_error *err);
    void (*release)(void *device, struct tfm_program *program);
    enum tfm_status (*exec_open)(void *device, const struct tfm_program *program,
                                 const struct tfm_exec_memory *memory, void **exec,
                                 struct tfm_error *err);
    /* Complete when it returns: the caller may download at once. Allocates nothing after a first
     * run with rows->n = 0. */
    enum tfm_status (*exec_run)(void *exec, const struct tfm_rows *rows, struct tfm_error *err);
    void (*exec_close)(void *exec);

    /* optional: waits until the device is idle. */
    enum tfm_status (*sync)(void *device, struct tfm_error *err);
    /* optional: a named table or NULL: "opencl.counters-1". device may be NULL. */
    const void *(*extension)(void *device, const char *name);
    /* optional: as alloc, but it holds zeros. For memory of which perhaps little is ever used, as that of
     * caches: pages that nobody touches need not be there. NULL = alloc, then zeros are uploaded. */
    enum tfm_status (*alloc_zeroed)(void *device, size_t bytes, void **buffer,
                                    struct tfm_error *err);
};

/* ---- an extension: objects and memory that belong to the program ------------------------------ */

/* What is done with memory that the program lends. */
enum {
    TFM_ACCESS_READ = 1,       /* kernels read it */
    TFM_ACCESS_WRITE = 2,      /* kernels write it */
    TFM_ACCESS_HOST_READ = 4,  /* it is downloaded */
    TFM_ACCESS_HOST_WRITE = 8, /* it is uploaded to */
};

/* Whose bytes a lent buffer holds: two regions overlap if their storage is the same and their places
 * do. A part of another buffer has that one's storage. */
struct tfm_storage {
    const void *storage;
    size_t at; /* of the region, bytes from the storage's beginning */
};

/* What extension(device or NULL, "opencl.interop-1") returns; other backends choose a name of their own.
 * What `objects` points to belongs to the name. Append only: read a member only if struct_size covers
 * it. */
struct tfm_interop {
    size_t struct_size;

    /* As `open`, on objects of the program. Retains what it keeps; `close` releases it. name [size] gets
     * the device's. A run must see what the program gave its queue to do before. */
    enum tfm_status (*wrap)(const struct tfm_host *host, const void *objects, void **device,
                            char *name, size_t size, struct tfm_error *err);

    /* The objects of an open device, borrowed. */
    enum tfm_status (*objects)(void *device, void *objects, struct tfm_error *err);

    /* Checks that `bytes` of a buffer of the program can be used so (TFM_ACCESS_*) and retains the
     * buffer; `free` of the backend's table releases it. Offsets in it are multiples of the element
     * size, not of TFM_ALIGNMENT. Fills in `storage`. */
    enum tfm_status (*take)(void *device, struct tfm_memory memory, size_t bytes, uint32_t access,
                            struct tfm_storage *storage, struct tfm_error *err);
};

/* ---- an extension: where the time went ---------------------------------------------------------- */

/* What extension(device, TFM_PROFILE_EXTENSION) returns. Append only. */
#define TFM_PROFILE_EXTENSION "profile-1"

struct tfm_profile {
    size_t struct_size;

    /* Ends what the environment asked for with TFM_PROFILE=FILE: writes the file and calls `line` for each
     * line of a table of the device's work. Nothing when it was not asked for. No exec is running.
     * IO: the file cannot be written (named, with the reason). */
    enum tfm_status (*finish)(void *device, void (*line)(void *context, const char *text),
                              void *context, struct tfm_error *err);
};

/* ---- an extension: what there is to say about a program ------------------------------------------ */

/* What extension(device, TFM_NOTES_EXTENSION) returns. Append only. */
#define TFM_NOTES_EXTENSION "notes-1"

struct tfm_notes {
    size_t struct_size;

    /* Calls `line` for each line about how the program will run, for `tfm plan`: what was fused, what was
     * not and why. */
    void (*tell)(void *device, const struct tfm_program *program,
                 void (*line)(void *context, const char *text), void *context);
};

#ifdef __cplusplus
}
#endif
#endif
