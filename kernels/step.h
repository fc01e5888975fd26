/* SPDX-License-Identifier: MIT
 * The step table: what the host writes once for each exec and every kernel reads. Valid C11 and
 * valid OpenCL C; the host checks the dtype ids against tfm/dtypes.def when it is compiled. */
#ifndef TFM_STEP_H
#define TFM_STEP_H

#ifdef __OPENCL_VERSION__
typedef ulong tfm_u64;
typedef uint tfm_u32;
typedef int tfm_i32;
typedef float tfm_f32;
#else
#include <stdint.h>
typedef uint64_t tfm_u64;
typedef uint32_t tfm_u32;
typedef int32_t tfm_i32;
typedef float tfm_f32;
#endif

/* dtype ids, as in tfm/dtypes.def */
#define TFM_STEP_F32  0u
#define TFM_STEP_F16  1u
#define TFM_STEP_BF16 2u
#define TFM_STEP_F64  3u
#define TFM_STEP_I32  4u
#define TFM_STEP_Q4_0 5u
#define TFM_STEP_Q4_1 6u
#define TFM_STEP_Q8_0 7u
#define TFM_STEP_NONE 0xffffffffu /* type of an absent operand */

#define TFM_STEP_OPERANDS 10

/* Packed weights: panels of 16 output rows. Plain types [in][16]; block types [in/32] of: d[16] f16
 * (, m[16] f16), then the quants by fours of k, lane r holding k = 4j..4j+3 of row r: 4-bit
 * qs[4][64] (low nibble k, high nibble k + 16), 8-bit qs[8][64]. */
#define TFM_PANEL      16u
#define TFM_BLOCK      32u  /* values of k in a block */
#define TFM_PANEL_Q4_0 288u /* bytes of a block of 16 rows */
#define TFM_PANEL_Q4_1 320u
#define TFM_PANEL_Q8_0 544u

/* Cells of two bf16 from one row to the next of a matrix with rows of k values: whole vectors, and never a power
 * of two of them, whose rows would meet in few places of a cache. */
#define TFM_BF16_STRIDE(k) (16u * (((k) + 31u) / 32u | 1u))

/* Floats from one row to the next of a chunk of logits, for the same reasons. */
#define TFM_LOGITS_STRIDE(classes) (2u * TFM_BF16_STRIDE(classes))

/* The rows that a step works on. */
#define TFM_STEP_ALL_ROWS 0u /* N of the run */
#define TFM_STEP_OUT_ROWS 1u /* R of the run */

/* What a step of kernels/persistent.cl does. Those up to TFM_PHASE_SWIGLU are the ops of these names. */
#define TFM_PHASE_NOTHING   0u
#define TFM_PHASE_EMBEDDING 1u
#define TFM_PHASE_TAKE_ROWS 2u
#define TFM_PHASE_RMS_NORM  3u
#define TFM_PHASE_ROPE      4u
#define TFM_PHASE_ADD       5u
#define TFM_PHASE_SWIGLU    6u
#define TFM_PHASE_NORM      7u  /* rms_norm of all rows, by each part for itself */
#define TFM_PHASE_MERGE     8u  /* attention splits to rows, by each part for itself */
#define TFM_PHASE_ATTEND    9u  /* attention of few rows, split by split */
#define TFM_PHASE_APPEND    10u /* k and v to the caches */
#define TFM_PHASE_PROJECT   11u /* linear, and what is done with its output at once: */

#define TFM_PROJECT_GATE   1u  /* swiglu of two weights: operands 5, 6 = weight and bias of `up` */
#define TFM_PROJECT_ADD    2u  /* y += operand 5 */
#define TFM_PROJECT_ROPE   4u  /* rope with table and pos: operands 5, 6 */
#define TFM_PROJECT_APPEND 8u  /* also to the cache: operand 7 */
#define TFM_PROJECT_OWN    16u /* x is what this part has in its scratch */
#define TFM_PROJECT_SUMS \
    32u /* first of its phase that needs them: makes the sums of x, or its integers */

struct tfm_step {
    tfm_u64 at[TFM_STEP_OPERANDS];   /* byte offset of each operand in its buffer */
    tfm_u32 type[TFM_STEP_OPERANDS]; /* its dtype id */
    tfm_u32 op;                      /* id in tfm/ops.def */
    tfm_u32 rows;                    /* TFM_STEP_ALL_ROWS or TFM_STEP_OUT_ROWS */
    tfm_u32 vectors;                 /* vectors of `width` in a row, where the op acts on each */
    tfm_u32 width;                   /* elements of a row or vector: D, `in`, H d */
    tfm_u32 out;                     /* rows of the weight: `out`, V */
    tfm_u32 panel, panels;           /* unpack: first panel and count of its block */
    tfm_u32 heads, kv_heads;         /* H, G */
    tfm_u32 head_dim;                /* d */
    tfm_u32 rotated;                 /* rope: r, the elements of a head that turn */
    tfm_u32 halves;                  /* rope: 1 = pairs (i, i + r/2), 0 = pairs (2i, 2i + 1) */
    tfm_u32 tokens;                  /* rope: T of a row, 1 in [N, H, d] */
    tfm_u32 shared;                  /* rope: 1 = pos [T] for all rows */
    tfm_u32 tanh_form;               /* gelu */
    tfm_u32 slots, cells;            /* extents of the caches; cells 0 = no caches */
    tfm_u32 bidirectional, window;   /* attention: as the attributes */
    tfm_u32 span;                    /* attention: M of rel_bucket [2 M + 1] */
    tfm_u32 splits;                  /* attention: splits that the workspace has room for */
    tfm_u32 split;                   /* attention: 1 = keep the splits for merge */
    tfm_u32 scratch;                 /* floats of workspace that a part has for itself */
    tfm_f32 eps, scale, softcap;
    tfm_u32 group;        /* work-items of a group; 0 = one, as the wide shape wants */
    tfm_u32 local_floats; /* local memory of a group, an argument; group shape alone */

    /* persistent.cl only */
    tfm_u32 buffer[TFM_STEP_OPERANDS]; /* number of the buffer that an operand lies in */
    tfm_u32 phase;                     /* TFM_PHASE_* */
    tfm_u32 barrier;                   /* 1 = last step of a phase: all parts wait for each other */
    tfm_u32 patience;                  /* how many times the usual bound a part waits there */
    tfm_u32 project;                   /* TFM_PROJECT_* */
    tfm_u32 panels_a_unit;             /* panels that one part computes together */
    tfm_u32 first_unit, all_units;     /* of this step among the units of its phase */
    tfm_u32 slices;                    /* rope: slices of head_dim that a head is turned in */
    tfm_u32 turns;                     /* rope: elements of a row of the table, pairs times two */
    tfm_u32 cells_a_split;
    tfm_u32 sums_at, raw_at; /* floats of scratch before the sums of x, and before products */

    tfm_u32 inverse;             /* rope: 1 = by the negative angle */
    tfm_u32 bias_at, partial_at; /* attention_grad: floats of workspace before each */
    tfm_u32 sums;                /* attention_grad: TFM_SUMS_* */
    tfm_u32 kept;                /* attention_grad: cells whose weights a part has room for */
    tfm_u32 columns;             /* cross_entropy: classes of a chunk */
    tfm_u32 first, most;         /* ... first of a chunk of rows, most that it has; 0 = all */
};

/* The sums that a launch of attention_grad makes. */
#define TFM_SUMS_ROWS  1u /* of rows, over cells: dq and delta */
#define TFM_SUMS_CELLS 2u /* of cells, over rows: dk and dv */

/* The rows of one run (struct tfm_rows), an array of int: these words, then slot [S], start [S],
 * past [S], out [R at full capacity]. */
#define TFM_ROWS_N     0
#define TFM_ROWS_N_SEQ 1
#define TFM_ROWS_N_OUT 2
#define TFM_ROWS_S     3 /* sequences at full capacity: stride of the three lists */
#define TFM_ROWS_LISTS 4

/* What a run of persistent.cl reads and writes beside its operands, an array of int: the barrier's word,
 * a place where a test makes a part stall (step + 1 or -1, part, polls), the step that each part left at, and
 * from TFM_CONTROL_ROWS on the rows. */
#define TFM_CONTROL_BARRIER 0
#define TFM_CONTROL_STALL   32
#define TFM_CONTROL_LEFT    64
#define TFM_CONTROL_PARTS   256 /* most parts */
#define TFM_CONTROL_ROWS    320

#endif
