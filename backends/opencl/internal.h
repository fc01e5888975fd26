/* SPDX-License-Identifier: MIT
 * What the files of the opencl backend share: the device (device.h), the pool of packed weights, programs and
 * execs. Nothing of libtfm is linked: everything comes through struct tfm_host. */
#ifndef TFM_OPENCL_INTERNAL_H
#define TFM_OPENCL_INTERNAL_H

#include "backends/opencl/device.h"
#include "kernels/step.h"

/* ---- errors (status.c) ------------------------------------------------------------------------ */

/* "CL_OUT_OF_RESOURCES"; "unknown code" for a foreign value. */
const char *tfm__cl_code_name(cl_int code);

/* Records "opencl: CALL: NAME (code)" and returns the status that goes with the code. */
enum tfm_status tfm__cl_fail(const struct tfm_host *host, struct tfm_error *err, const char *call,
                             cl_int code);
/* The same for a call about a kernel, which is named too. */
enum tfm_status tfm__cl_fail_kernel(const struct tfm_host *host, struct tfm_error *err,
                                    const char *call, const char *kernel, cl_int code);

/* ---- buffers (buffer.c); a handle is a cl_mem --------------------------------------------------- */

enum tfm_status tfm__cl_alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err);
enum tfm_status tfm__cl_alloc_zeroed(void *device, size_t bytes, void **buffer,
                                     struct tfm_error *err);
void tfm__cl_free(void *device, void *buffer);

/* DENSE: all of a buffer will be used. SPARSE: perhaps little of it, as of caches. */
enum tfm__cl_filling { TFM__CL_DENSE, TFM__CL_SPARSE };

/* A buffer that may be large: on a processor it then has memory of ours (host_memory.c), in huge pages if it is
 * dense. *zeroed: 1 if it holds zeros, else its contents are undefined. */
enum tfm_status tfm__cl_buffer_create(const struct tfm__cl_device *device, cl_mem_flags flags,
                                      size_t bytes, enum tfm__cl_filling filling, cl_mem *made,
                                      int *zeroed, struct tfm_error *err);
/* What is kept of a sparse buffer while it lives; NULL for others. */
void *tfm__cl_sparse_find(cl_mem buffer);
/* More of it is used than was thought: each call gives it so many huge pages, until it has no others. Any thread. */
void tfm__cl_sparse_fill(void *place, size_t pages);
/* Much is about to be written: what is not there yet comes in huge pages. Nothing for other buffers. */
void tfm__cl_sparse_used(cl_mem buffer);
enum tfm_status tfm__cl_upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                               struct tfm_error *err);
enum tfm_status tfm__cl_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                 struct tfm_error *err);
enum tfm_status tfm__cl_copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                             size_t bytes, struct tfm_error *err);

/* ---- kernels (sources.c: their text, program.c) --------------------------------------------------- */

/* All files of kernels/: embedded, or read from TFM_KERNEL_PATH. IO: that folder lacks a file. */
struct tfm__cl_sources;
enum tfm_status tfm__cl_sources_open(const struct tfm_host *host, struct tfm__cl_sources **sources,
                                     struct tfm_error *err);
void tfm__cl_sources_close(struct tfm__cl_sources *sources);
/* What the program of `file` is compiled from, for clCreateProgramWithSource; NULL = the common program,
 * all files of ops that want no program of their own, and with `proof` int8.cl. Free `strings` with host->free; the texts are the
 * sources' own. */
enum tfm_status tfm__cl_sources_gather(const struct tfm__cl_sources *sources, const char *file,
                                       int proof, const char ***strings, size_t *n,
                                       struct tfm_error *err);

/* Constants of kernels/gqa_attention.cl that the host counts with; passed to it with -D. */
enum {
    TFM__CL_ATTENTION_QUERIES = 96,
    TFM__CL_ATTENTION_KEYS = 64,
};

/* Values of k that kernels/linear_panels.cl unpacks at once; passed to it with -D. */
enum { TFM__CL_PANELS_DEPTH = 2048 };

/* A kernel: the file in kernels/ whose program it is in, NULL = the common program; its name; options of
 * that program beside the usual ones, NULL = none. Even a program that a driver has cached costs time,
 * and one that is compiled costs by its length: what compiles quickly is one program, what compiles
 * slowly or in variants has its own. */
struct tfm__cl_kernel {
    const char *file, *name, *options;
};

/* Reads the sources of all kernels and builds the common program. IO: TFM_KERNEL_PATH lacks a file; BUILD: as below. */
enum tfm_status tfm__cl_programs_open(struct tfm__cl_device *device, struct tfm_error *err);
void tfm__cl_programs_close(struct tfm__cl_device *device);

/* The program of a kernel, owned by the device, built on first use. Several threads may ask. BUILD: with
 * device, driver, options and the log's first error (the log itself goes to host->log). */
enum tfm_status tfm__cl_program_of(struct tfm__cl_device *device,
                                   const struct tfm__cl_kernel *kernel, cl_program *program,
                                   struct tfm_error *err);

/* ---- proofs (proof.c) ---------------------------------------------------------------------------- */

enum { TFM__CL_PROOF_BUFFERS = 6 };

/* One launch of one part: the arguments are n buffers, filled from host[i], and `words`; what they hold then goes
 * back to host[i]. */
struct tfm__cl_proof {
    const struct tfm__cl_kernel *kernel;
    const char *what; /* for the error */
    cl_uint n, words;
    void *host[TFM__CL_PROOF_BUFFERS];
    size_t bytes[TFM__CL_PROOF_BUFFERS];
};

enum tfm_status tfm__cl_proof_run(struct tfm__cl_device *device, const struct tfm__cl_proof *proof,
                                  struct tfm_error *err);

/* ---- packed weights (pack.c: the form, pool.c: where they lie) ----------------------------------- */

/* Bytes of a panel of 16 rows of `columns` values; 0 for a dtype that has no packed form. */
size_t tfm__cl_panel_bytes(enum tfm_dtype dtype, size_t columns);
/* Panels [begin, end) of rows [rows, columns] as a file stores them; unpack is the inverse. The
 * padding rows of the last panel are packed as zeros. */
void tfm__cl_pack(enum tfm_dtype dtype, const void *file, size_t rows, size_t columns, size_t begin,
                  size_t end, void *packed);
void tfm__cl_unpack(enum tfm_dtype dtype, const void *packed, size_t rows, size_t columns,
                    size_t begin, size_t end, void *file);

enum tfm__cl_form { TFM__CL_RAW, TFM__CL_PANELS };

struct tfm__cl_pool;

/* A tensor and the form in which a node wants it. */
struct tfm__cl_need {
    const struct tfm_tensor *tensor;
    enum tfm__cl_form form;
};

/* Packs what of needs [n] is not in the pool of `weights` yet (made on first use). */
enum tfm_status tfm__cl_pool_take(struct tfm__cl_device *device, struct tfm_weights *weights,
                                  const struct tfm__cl_need *needs, size_t n,
                                  struct tfm__cl_pool **pool, struct tfm_error *err);
/* Where a tensor lies; {NULL, 0} if it was never taken. */
struct tfm_memory tfm__cl_pool_find(const struct tfm__cl_pool *pool,
                                    const struct tfm_tensor *tensor, enum tfm__cl_form form);

/* ---- programs (plan.c) -------------------------------------------------------------------------- */

enum tfm__cl_place {
    TFM__CL_ABSENT,
    TFM__CL_MEMORY,    /* memory[tensor] of the exec */
    TFM__CL_POOL,      /* offset in `pool` */
    TFM__CL_WORKSPACE, /* offset in the exec's workspace */
    TFM__CL_SCRATCH,   /* of phases only, until they are laid out: what each part has for itself */
    TFM__CL_PARTIAL,   /* ... and the splits of attention */
    TFM__CL_GEMM_X,    /* the matrices of a GEMM */
    TFM__CL_GEMM_WEIGHT,
    TFM__CL_GEMM_PRODUCT,
};

struct tfm__cl_operand {
    enum tfm__cl_place place;
    uint32_t type; /* dtype id for the kernel, TFM_STEP_NONE when absent */
    uint32_t tensor;
    cl_mem pool;
    size_t offset;
};

/* One launch of one kernel: arguments are the operands, then step table, index, rows. */
struct tfm__cl_launch {
    struct tfm__cl_kernel kernel;
    struct tfm_step step; /* all but at[] and type[] */
    uint32_t n_operands;
    struct tfm__cl_operand operands[TFM_STEP_OPERANDS];
    uint64_t cost; /* of a row, about in element operations; decides the number of parts */
};

struct tfm__cl_op;

/* What became of a node: launches [first, first + count) of its program. */
struct tfm__cl_node {
    const struct tfm__cl_op *op;
    const struct tfm_node *node;
    uint32_t first, count;
    uint32_t
        turned; /* linear: 1 = the node before has left the same x turned, or as integers, in the
                      * workspace */
};

/* Largest matrices of all GEMMs of a program, bytes; they lie in this order at the beginning of the
 * workspace. All 0 when there is none. */
struct tfm__cl_gemm_sizes {
    size_t x, weight, product, temp;
};

/* What kernels/persistent.cl goes through for few rows: steps in order, the last of each phase with
 * step.barrier = 1 (phases.c, phase_rules.c). Operands: TFM__CL_MEMORY, _POOL, _WORKSPACE. */
struct tfm__cl_phases {
    struct tfm__cl_launch *steps;    /* without kernels; cost of a row */
    uint32_t n, room, count;         /* steps, 0 = there are none; phases */
    uint32_t kinds, types;           /* bits: TFM_PHASE_* that occur, dtypes of weights */
    uint32_t dim, share, cache_type; /* attention: d, H/G, dtype; 0 = none */
    size_t workspace;
    char options[300]; /* of the kernel's program */
    char reason[200];  /* why there are none */
};

/* Most rows of a run that goes through phases; most buffers that their operands may lie in. */
enum { TFM__CL_FEW_ROWS = 8, TFM__CL_FEW_BUFFERS = 8 };

struct tfm__cl_program {
    struct tfm__cl_device *device;
    struct tfm_capacity capacity;
    struct tfm__cl_launch *launches;
    struct tfm__cl_node *nodes;
    uint32_t n_launches, n_nodes, room; /* room: of launches, while it is made */
    size_t workspace;                   /* alignment included */
    struct tfm__cl_gemm_sizes gemm;
    struct tfm__cl_phases phases;
    int nodes_run; /* 0 = every run is one of phases, so kernels of nodes are neither built nor made */
};

/* While a segment is compiled. */
struct tfm__cl_planner {
    struct tfm__cl_device *device;
    struct tfm__cl_program *program;
    const struct tfm__cl_pool *pool;
    const struct tfm_segment *segment;
    const struct tfm_capacity *capacity;
    struct tfm_error *err;
};

enum tfm_status tfm__cl_compile(void *device, struct tfm_weights *weights,
                                const struct tfm_segment *segment,
                                const struct tfm_capacity *capacity, struct tfm_program *program,
                                struct tfm_error *err);
void tfm__cl_release(void *device, struct tfm_program *program);

/* What the extension TFM_NOTES_EXTENSION returns. */
extern const struct tfm_notes tfm__cl_notes;

/* For the ops. */
struct tfm__cl_operand tfm__cl_operand_of(const struct tfm__cl_planner *planner,
                                          const struct tfm_tensor *tensor, enum tfm__cl_form form);
struct tfm__cl_operand tfm__cl_operand_workspace(size_t offset);
enum tfm_status tfm__cl_plan_launch(struct tfm__cl_planner *planner,
                                    const struct tfm__cl_launch *launch);
/* The workspace of the program holds at least `bytes`. */
void tfm__cl_plan_workspace(struct tfm__cl_planner *planner, size_t bytes);
/* The phases of the program, whose launches are planned. NOMEM only; without phases there is a reason. */
enum tfm_status tfm__cl_phases_make(struct tfm__cl_planner *planner, struct tfm__cl_phases *phases);
/* A step with op and rows of the node's first output, or without one of its first activation, filled in. */
struct tfm_step tfm__cl_step(const struct tfm_node *node);

/* ---- TFM_PROFILE (profile.c) ---------------------------------------------------------------------- */

struct tfm__cl_exec;
struct tfm__cl_profile;

/* Properties of a queue whose launches are timed. */
cl_command_queue_properties tfm__cl_profile_queue(const struct tfm__cl_device *device);
/* Sets exec->profile if TFM_PROFILE asks for it; the queue is there. */
enum tfm_status tfm__cl_profile_open(struct tfm__cl_exec *exec, struct tfm_error *err);
void tfm__cl_profile_close(struct tfm__cl_exec *exec);
/* Around a run; end: the queue is empty. */
void tfm__cl_profile_begin(struct tfm__cl_exec *exec, const struct tfm_rows *rows);
void tfm__cl_profile_end(struct tfm__cl_exec *exec);
/* Where the event of a launch goes, while exec->profile is not NULL. May be NULL. */
cl_event *tfm__cl_profile_launch(struct tfm__cl_exec *exec, uint32_t index, size_t parts);
cl_event *tfm__cl_profile_gemm(struct tfm__cl_exec *exec, size_t m, size_t n, size_t k);
/* Of one phase: steps [n]. */
cl_event *tfm__cl_profile_phase(const struct tfm__cl_exec *exec, const struct tfm__cl_launch *steps,
                                uint32_t n, size_t parts);

/* ---- execs (exec.c) ------------------------------------------------------------------------------ */

struct tfm__cl_few; /* few.c */

struct tfm__cl_exec {
    struct tfm__cl_device *device;
    const struct tfm__cl_program *program;
    cl_command_queue queue;
    cl_mem steps, rows;
    int32_t *staging; /* what goes to `rows` */
    size_t staging_bytes;
    int nodes_run;      /* 0 = `steps` and `kernels` are not there */
    cl_kernel *kernels; /* [n_launches] with all arguments set */
    cl_mem gemm_x, gemm_weight, gemm_product, gemm_temp; /* of the workspace, or NULL */
    struct tfm__cl_few *few;                             /* NULL = no phases */
    struct tfm__cl_profile *profile;                     /* NULL = off */
    void *sparse[TFM__CL_FEW_BUFFERS]; /* [n_sparse] of its operands, those that were found first */
    uint32_t n_sparse;
};

enum tfm_status tfm__cl_exec_open(void *device, const struct tfm_program *program,
                                  const struct tfm_exec_memory *memory, void **exec,
                                  struct tfm_error *err);
enum tfm_status tfm__cl_exec_run(void *exec, const struct tfm_rows *rows, struct tfm_error *err);
void tfm__cl_exec_close(void *exec);

/* For the ops: enqueues launch number `index` for `rows` rows. */
enum tfm_status tfm__cl_launch(struct tfm__cl_exec *exec, uint32_t index, uint64_t rows,
                               struct tfm_error *err);

/* The memory of an operand. workspace: offset of the program's workspace in that buffer. */
struct tfm_memory tfm__cl_resolve(const struct tfm__cl_exec *exec, const struct tfm__cl_operand *o,
                                  const struct tfm_exec_memory *memory, size_t workspace);
/* The step table of launches [n] in a buffer: at[], type[], and if `buffers` [n_buffers] is not NULL
 * buffer[]. */
enum tfm_status tfm__cl_steps_create(const struct tfm__cl_exec *exec,
                                     const struct tfm__cl_launch *launches, uint32_t n,
                                     const struct tfm_exec_memory *memory, size_t workspace,
                                     const cl_mem *buffers, uint32_t n_buffers, cl_mem *steps,
                                     struct tfm_error *err);
/* The rows of a run as kernels read them, to `to` [.staging_bytes of the exec]. */
void tfm__cl_rows_write(const struct tfm__cl_exec *exec, const struct tfm_rows *rows, int32_t *to);

/* ---- few rows: phases, in one launch or one by one (few.c) ---------------------------------------- */

/* Sets exec->few, unless the phases cannot be used; says so in the log then. */
enum tfm_status tfm__cl_few_open(struct tfm__cl_exec *exec, const struct tfm_exec_memory *memory,
                                 size_t workspace, struct tfm_error *err);
enum tfm_status tfm__cl_few_run(struct tfm__cl_exec *exec, const struct tfm_rows *rows,
                                struct tfm_error *err);
void tfm__cl_few_close(struct tfm__cl_exec *exec);

/* For tests: before the barrier behind step number `step` - 1 (0 = never, negative = each) part `part` polls
 * `polls` times before it arrives; in every run, of every exec. eager: a bail-out makes no run wait. */
struct tfm__cl_stall {
    atomic_int step, part, polls, eager;
};
extern struct tfm__cl_stall tfm__cl_stall;

extern atomic_uint_fast64_t tfm__cl_persistent_runs, tfm__cl_persistent_bails;
extern atomic_uint_fast64_t tfm__cl_sgemm_calls, tfm__cl_kernel_launches;

/* ---- GEMM (gemm.c) -------------------------------------------------------------------------------- */

/* Rows from which a linear goes through CLBlast, where it is chosen. */
enum { TFM__CL_GEMM_ROWS = 48 };

/* Applies and proves the overrides, once a device; compiles CLBlast's kernels. */
enum tfm_status tfm__cl_gemm_prepare(struct tfm__cl_device *device, struct tfm_error *err);
/* The two steps of it. set: values of CLBlast's Xgemm parameters, as in gemm.c; 0 = refused.
 * prove: one GEMM whose result is known; *right = 1 when it came out exactly so. */
int tfm__cl_gemm_set(struct tfm__cl_device *device, const size_t *values);
enum tfm_status tfm__cl_gemm_prove(struct tfm__cl_device *device, int *right,
                                   struct tfm_error *err);
/* Bytes of scratch that CLBlast wants for product [n][m] = x[n][k] weight[k][m], padded sizes. */
enum tfm_status tfm__cl_gemm_temp(struct tfm__cl_device *device, size_t m, size_t n, size_t k,
                                  size_t *bytes, struct tfm_error *err);
/* product [n][m] = x [k][n] turned, times weight [k][m]; all multiples of 16. */
enum tfm_status tfm__cl_gemm(struct tfm__cl_exec *exec, size_t m, size_t n, size_t k,
                             struct tfm_error *err);
/* A device is closed: CLBlast drops the programs that it keeps. */
void tfm__cl_gemm_forget(void);

/* ---- activations of 8 bits (int8.c) ----------------------------------------------------------------- */

/* While a device is opened whose settings ask for them: finds the fastest way of kernels/int8.cl that the device
 * takes and that computes what it must. UNSUPPORTED: there is none. */
enum tfm_status tfm__cl_int8_open(struct tfm__cl_device *device, struct tfm_error *err);
/* Options of the way whose proof the common program is to hold, where that saves a program; NULL = of none. */
const char *tfm__cl_int8_guess(const struct tfm__cl_device *device);
/* With AUTO: the fastest such way, or f32 where none is fast; logs which. Found out once, by the first
 * linear. */
void tfm__cl_int8_settle(const struct tfm__cl_device *device);

/* ---- products of bf16 (bf16.c) ------------------------------------------------------------------------ */

/* While a device is opened that TFM_ACT=bf16 is said to: finds the fastest way of kernels/bf16.cl that the device
 * takes and that computes what it must. UNSUPPORTED: there is none. */
enum tfm_status tfm__cl_bf16_open(struct tfm__cl_device *device, struct tfm_error *err);
/* With FAST: such a way that is fast, or f32; logs which. */
void tfm__cl_bf16_settle(const struct tfm__cl_device *device);
/* 1 = trained BF16 weights are multiplied as bf16; settles it. */
int tfm__cl_bf16_is_on(const struct tfm__cl_device *device);

/* ---- linear with many rows (linear_panels.c: our own kernel, linear_gemm.c: CLBlast, linear_int8.c) --- */

/* Rows from which a linear goes through our own matrix product, where that is chosen. */
enum { TFM__CL_PANELS_ROWS = 32 };

/* y [rows, out] = x [rows, in] W^T, rows at full capacity. */
struct tfm__cl_linear {
    size_t in, out, rows;
};

/* The launch for many rows; it has the operands of the one for few, `vector`. */
enum tfm_status tfm__cl_linear_panels_plan(struct tfm__cl_planner *planner,
                                           const struct tfm__cl_launch *vector);

/* 1 = a linear with this type of weight multiplies x as integers. */
int tfm__cl_linear_int8_takes(const struct tfm__cl_device *device, enum tfm_dtype weight);
/* Rows from which they are unpacked first; fewer go straight, in phases or kernels/linear_int8_few.cl. */
enum { TFM__CL_INT8_ROWS = 9 };
/* Floats of workspace that a part wants for up to that many rows of `in` values as integers. */
size_t tfm__cl_linear_int8_few_floats(size_t in, size_t rows);
/* fits: 1 if the workspace can be allocated. plan: appends the launches, quantizing x, then the product. */
int tfm__cl_linear_int8_fits(const struct tfm__cl_device *device, const struct tfm__cl_linear *l);
enum tfm_status tfm__cl_linear_int8_plan(struct tfm__cl_planner *planner,
                                         const struct tfm__cl_linear *l,
                                         const struct tfm__cl_launch *vector);
enum tfm_status tfm__cl_linear_int8_run(struct tfm__cl_exec *exec, const struct tfm__cl_node *node,
                                        uint32_t first, uint32_t rows, struct tfm_error *err);

/* fits: 1 if the matrices can be allocated. plan: appends the launches, `step` is that of few rows. run:
 * enqueues them, from number `first` to the node's last. */
int tfm__cl_linear_gemm_fits(const struct tfm__cl_device *device, const struct tfm__cl_linear *l);
enum tfm_status tfm__cl_linear_gemm_plan(struct tfm__cl_planner *planner,
                                         const struct tfm_node *node,
                                         const struct tfm__cl_linear *l, struct tfm_step step);
enum tfm_status tfm__cl_linear_gemm_run(struct tfm__cl_exec *exec, const struct tfm__cl_node *node,
                                        uint32_t first, uint32_t rows, struct tfm_error *err);

/* ---- row-major products (matrix.c) ------------------------------------------------------------------- */

/* Values of k that kernels/matrix.cl packs at once; passed to it with -D. Columns of a tile. */
#define TFM__CL_MATRIX_OPTIONS "-DTFM_MATRIX_DEPTH=2048"
enum { TFM__CL_MATRIX_DEPTH = 2048, TFM__CL_MATRIX_WIDTH = 32 };

/* A product as matrix.cl has it: the file and the kernels of the two shapes; which of the operands is a, whether it
 * lies turned, its extents at most. */
struct tfm__cl_matrix {
    const char *file, *wide, *group_file, *group;
    uint32_t a;
    int turned;
    size_t m, k;
    int bf16;    /* 1 = a is rounded to bf16 before, by a launch of its own */
    int rounded; /* ... which a launch before has done */
    int both; /* ... straight and turned at once: the product before or behind takes the other form */
};

/* 1 = a product with this trained weight is one of bf16. */
int tfm__cl_matrix_is_bf16(const struct tfm__cl_device *device, const struct tfm_tensor *weight);
/* fits: 1 if as many vectors as `vectors` has can be counted, and the workspace allocated; else 0 with the reason.
 * width: of a vector, what of it is rounded to bf16; 0 = nothing is. */
int tfm__cl_matrix_fits(const struct tfm__cl_device *device, const struct tfm_tensor *vectors,
                        const struct tfm_capacity *capacity, size_t width, char *reason,
                        size_t size);
/* 1 = two nodes that follow one another are the gradients of a linear, both products of bf16: dy is rounded for both
 * at once. */
int tfm__cl_matrix_shares(const struct tfm__cl_device *device, const struct tfm_node *grad_x,
                          const struct tfm_node *grad_w);
int tfm__cl_linear_grad_w_is_bf16(const struct tfm__cl_device *device, const struct tfm_node *node);
/* Bytes of a as bf16. 0 on overflow. */
int tfm__cl_matrix_rounded(const struct tfm__cl_matrix *product, size_t *bytes);
/* A launch of a product of bf16 gets the options and the cost of one, and as operand a the place `at` of the
 * workspace. Appends the launch that rounds what it had there to that place, of file, a, turned, m and k. */
enum tfm_status tfm__cl_matrix_round(struct tfm__cl_planner *planner, struct tfm__cl_launch *launch,
                                     const struct tfm__cl_matrix *product, size_t at);
/* Adds the workspace as last operand, and appends the launches. */
enum tfm_status tfm__cl_matrix_plan(struct tfm__cl_planner *planner, struct tfm__cl_launch *launch,
                                    const struct tfm__cl_matrix *product);

/* linear with a trainable weight (linear_rows.c). */
int tfm__cl_linear_rows_supports(const struct tfm__cl_device *device, const struct tfm_node *node,
                                 const struct tfm_capacity *capacity, char *reason, size_t size);
enum tfm_status tfm__cl_linear_rows_plan(struct tfm__cl_planner *planner,
                                         const struct tfm_node *node);

/* ---- ops (<stem>.c) -------------------------------------------------------------------------------- */

struct tfm__cl_op {
    /* 1 = yes for every N up to capacity; 0 = no, with the reason. Arity, F64 and extents past 31
     * bits are checked before. */
    int (*supports)(const struct tfm__cl_device *device, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size);
    /* Appends the node's launches. */
    enum tfm_status (*plan)(struct tfm__cl_planner *planner, const struct tfm_node *node);
    /* Enqueues them; NULL = each once. With rows->n = 0 every launch is to be made (warm-up). */
    enum tfm_status (*run)(struct tfm__cl_exec *exec, const struct tfm__cl_node *node,
                           const struct tfm_rows *rows, struct tfm_error *err);
    uint32_t panels; /* bit i: input i is wanted in panels, not raw */
    uint32_t
        trains; /* bit i: ... and if it is trainable, as it lies in memory: row-major; one that is
                      * wanted raw always may be trainable */
    int alone;  /* 1 = its kernels are in programs of their own */
};

/* Without holes: an op of ops.def that has no file here does not link. One that has no kernel yet is
 * {0} there, and supports() says so. */
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    extern const struct tfm__cl_op tfm__cl_op_##stem;
#include <tfm/ops.def>
#undef TFM_OP

/* NULL for an op without kernels, or younger than this module. */
const struct tfm__cl_op *tfm__cl_op(enum tfm_op op);

/* "x is q4_0, the kernel takes f32, f16 and bf16"; returns 0 so that supports can return it. */
int tfm__cl_refuse(char *reason, size_t size, const char *format, ...) TFM_PRINTF(3, 4);
/* NULL for an optional input that is absent, also behind the last. */
static inline const struct tfm_tensor *tfm__cl_input(const struct tfm_node *node, uint32_t i)
{
    return i < node->n_inputs ? node->inputs[i] : NULL;
}

/* 1 if a parameter is trainable: its values lie in memory of the exec. A library of ABI minor 1 has no such
 * thing, nor room for the answer. */
static inline int tfm__cl_is_trainable(const struct tfm__cl_device *device,
                                       const struct tfm_tensor *tensor)
{
    return device->host->abi_minor >= 2 && tensor->is_trainable;
}

/* 1 if `tensor` is F32, F16 or BF16; else 0 with the reason. */
int tfm__cl_is_activation(const struct tfm__cl_device *device, const struct tfm_tensor *tensor,
                          char *reason, size_t size);

/* Extents between the first and the last, multiplied: vectors that an op on the last extent has in a row.
 * fit: 1 if those of all rows can be counted in 31 bits; else 0 with the reason. */
uint32_t tfm__cl_vectors(const struct tfm_tensor *tensor);
int tfm__cl_vectors_fit(const struct tfm_tensor *tensor, const struct tfm_capacity *capacity,
                        char *reason, size_t size);

/* 1 if the elements of a state or parameter can be counted in 31 bits; else 0 with the reason. */
int tfm__cl_elements_fit(const struct tfm_tensor *tensor, char *reason, size_t size);

/* The gradients of norms (norm_grad.c): kernels for dx and for the sums over the rows. */
struct tfm__cl_norm_grad {
    const char *file, *rows, *columns;
};
int tfm__cl_norm_grad_supports(const struct tfm__cl_device *device, const struct tfm_node *node,
                               const struct tfm_capacity *capacity, char *reason, size_t size);
enum tfm_status tfm__cl_norm_grad_plan(struct tfm__cl_planner *planner, const struct tfm_node *node,
                                       const struct tfm__cl_norm_grad *names);

/* The ops that compute element by element (elementwise.c). cost: of an element. */
int tfm__cl_elementwise_supports(const struct tfm__cl_device *device, const struct tfm_node *node,
                                 const struct tfm_capacity *capacity, char *reason, size_t size);
enum tfm_status tfm__cl_elementwise_plan(struct tfm__cl_planner *planner,
                                         const struct tfm_node *node, struct tfm__cl_kernel kernel,
                                         uint32_t cost);

/* The module's one exported symbol (backend.c). */
TFM_API extern const struct tfm_backend tfm_backend_v1;

#endif
