/* SPDX-License-Identifier: MIT
 * What lib/check/<stem>.c gives the checker: the nodes of one op that a backend is tried with, and the
 * ways in which each of them is run. An op of ops.def without such a file does not link. */
#ifndef TFM__CHECK_OP_H
#define TFM__CHECK_OP_H

#include "lib/check/sample.h"

enum { TFM__CHECK_SEQUENCES = 3, TFM__CHECK_ROWS = 65, TFM__CHECK_LARGE_ROWS = 512 };

/* The rows of one run with room for their arrays. */
struct tfm__check_rows {
    struct tfm_rows rows;
    int32_t slot[TFM__CHECK_SEQUENCES], start[TFM__CHECK_SEQUENCES], past[TFM__CHECK_SEQUENCES];
    int32_t out[TFM__CHECK_LARGE_ROWS];
};

/* One way to run a sample: a case of the checker. Ways of the same capacity and flags share a plan, so
 * they stand side by side. */
struct tfm__check_way {
    const char *name; /* "33 rows" */
    /* Sets rows and, where that is the point, values. `argument` is the one below. */
    void (*prepare)(struct tfm__sample *sample, struct tfm__check_rows *run, int argument);
    int argument;
    uint32_t capacity;                                /* rows of the plan; 0 = the sample's */
    unsigned flags;                                   /* enum tfm__drive_flags */
    int (*applies)(const struct tfm__sample *sample); /* NULL = to every sample */
};

struct tfm__check_op {
    uint32_t samples;
    void (*build)(struct tfm__sample *sample, uint32_t i);
    const struct tfm__check_way *ways;
    uint32_t n_ways;
    /* Of the performance table: nodes of a size that matters, how many cells lie before the rows of
     * one (NULL = none), and what one run does at least: operations, and bytes read and written
     * (NULL = every tensor once). */
    uint32_t large;
    void (*build_large)(struct tfm__sample *sample, uint32_t i);
    int32_t (*large_past)(uint32_t i);
    double (*operations)(const struct tfm__sample *sample, const struct tfm_rows *rows);
    double (*bytes)(const struct tfm__sample *sample, const struct tfm_rows *rows);
};

#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    extern const struct tfm__check_op tfm__check_op_##stem;
#include <tfm/ops.def>
#undef TFM_OP

/* Generator of an op by its id, NULL for a value that is none. */
const struct tfm__check_op *tfm__check_op(enum tfm_op op);

/* ---- what generators share (ways.c) ---- */

enum { TFM__CHECK_ROWWISE_WAYS = 12 };
/* For ops whose row i depends on row i alone. */
extern const struct tfm__check_way tfm__check_rowwise[TFM__CHECK_ROWWISE_WAYS];

enum { TFM__CHECK_SUM_WAYS = 8 };
/* For ops that add what the rows make to states. */
extern const struct tfm__check_way tfm__check_sums[TFM__CHECK_SUM_WAYS];

/* n rows of one sequence in slot 0 after `past` cells; out names them all. */
void tfm__check_rows_set(struct tfm__check_rows *run, uint32_t n, int32_t past);

/* Elements of the outputs: the operations of an op that does one for each. */
double tfm__check_elements(const struct tfm__sample *sample, const struct tfm_rows *rows);

/* F32, F16, BF16, F64: what activations may be. */
enum { TFM__CHECK_FLOATS = 4 };
extern const enum tfm_dtype tfm__check_floats[TFM__CHECK_FLOATS];
/* Those and the block types: what weights may be. */
enum { TFM__CHECK_WEIGHTS = 7 };
extern const enum tfm_dtype tfm__check_weights[TFM__CHECK_WEIGHTS];

/* Samples of an op that computes element by element from one to three inputs of one shape: every float
 * dtype and shapes that divide nothing. */
enum { TFM__CHECK_ELEMENTWISE = 28 };
typedef struct tfm_tensor *tfm__check_unary(struct tfm_graph *graph, struct tfm_tensor *x);
typedef struct tfm_tensor *tfm__check_binary(struct tfm_graph *graph, struct tfm_tensor *a,
                                             struct tfm_tensor *b);
typedef struct tfm_tensor *tfm__check_ternary(struct tfm_graph *graph, struct tfm_tensor *a,
                                              struct tfm_tensor *b, struct tfm_tensor *c);
void tfm__check_build_unary(struct tfm__sample *sample, uint32_t i, tfm__check_unary *op);
void tfm__check_build_binary(struct tfm__sample *sample, uint32_t i, tfm__check_binary *op);
void tfm__check_build_ternary(struct tfm__sample *sample, uint32_t i, tfm__check_ternary *op);
/* The same for the performance table: one for each float dtype. */
void tfm__check_large_unary(struct tfm__sample *sample, uint32_t i, tfm__check_unary *op);
void tfm__check_large_binary(struct tfm__sample *sample, uint32_t i, tfm__check_binary *op);
void tfm__check_large_ternary(struct tfm__sample *sample, uint32_t i, tfm__check_ternary *op);

#endif
