/* SPDX-License-Identifier: MIT
 * One small graph under test with the values of its tensors: built, filled with fixed pseudo-random
 * values, run by the driver on the backend under test, compared. For `reference` the right values come
 * from a naive oracle written in the test; for any other backend from `reference`. Uses Check. */
#ifndef TESTS_OPS_TRIAL_H
#define TESTS_OPS_TRIAL_H

#include <check.h>

#include <tfm/graph.h>

#include "lib/check/drive.h"

enum { TRIAL_TENSORS = 16, TRIAL_SUMS = 6 };

struct trial {
    char what[120]; /* named in every failure: "linear q4_1 [33, 64]" */
    struct tfm_graph *graph;
    struct tfm_capacity capacity;
    struct tfm_tensor *output; /* the first; NULL = the op has none */
    /* What the op makes, and what an oracle writes one after another: the outputs of the node, then the
     * sums: states that it adds to. */
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS], *sums[TRIAL_SUMS];
    uint32_t n_outputs, n_sums;
    int may_refuse;            /* 1 = the backend may say no (set for F64 tensors by itself) */
    int exact;                 /* 1 = values must be equal, whatever ops.def allows */
    double row_tolerance;      /* > 0: f32 values lie within it times max(|want|, rms of the row) */
    void *data[TRIAL_TENSORS]; /* by tensor id, in the tensor's dtype, at full capacity */
    double *values[TRIAL_TENSORS]; /* the same as double, fresh when an oracle is called */
    void *shadow[TRIAL_TENSORS]; /* variables and outputs of the reference beside another backend */
    struct tfm__drive_plan *plan, *reference;
};

/* Writes what the outputs must hold, in double, for the rows of this run, then what the sums must hold
 * afterwards; trial->values has what they hold before. */
typedef void trial_oracle(const struct trial *trial, const struct tfm_rows *rows, double *want);

/* ---- the backend under test: opened in the forked child of each test ---- */

const char *trial_backend_name(void);
void trial_backend_choose(const char *name);
/* 1 = present; else prints why not as a comment. Never to be called before Check forks, but in a child
 * of its own. */
int trial_backend_present(void);
int trial_is_reference(void);

/* A test case of that suite with the fixture that opens and closes the backend, limit 60 s. */
TCase *trial_tcase(Suite *suite, const char *name);
/* One for shape rules: no backend. */
TCase *trial_rule_tcase(Suite *suite, const char *name);

/* ---- building: all of these fail the test when the graph refuses ---- */

void trial_begin(struct trial *trial, uint32_t rows, const char *format, ...) TFM_PRINTF(3, 4);
void trial_end(struct trial *trial);

/* shape[0] of an input is ignored. Values lie in [-1, 1); those of an I32 input are set by the test. */
struct tfm_tensor *trial_input(struct trial *trial, const char *name, enum tfm_dtype dtype,
                               int rank, int64_t d1, int64_t d2);
/* [N, d1, d2, d3] */
struct tfm_tensor *trial_input_4(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                 int64_t d1, int64_t d2, int64_t d3);
struct tfm_tensor *trial_parameter(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                   int rank, int64_t d0, int64_t d1);
struct tfm_tensor *trial_buffer(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                int rank, int64_t d0, int64_t d1, int64_t d2);
/* [slots, cells, G, d], zero. */
struct tfm_tensor *trial_state(struct trial *trial, const char *name, enum tfm_dtype dtype,
                               int64_t slots, int64_t cells, int64_t groups, int64_t d);
/* A state that the op adds to, full of values in [-1, 1). */
struct tfm_tensor *trial_sum(struct trial *trial, const char *name, enum tfm_dtype dtype, int rank,
                             int64_t d0, int64_t d1);
/* A trainable parameter. */
struct tfm_tensor *trial_trainable(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                   int rank, int64_t d0, int64_t d1);
/* The op changes this trainable parameter: it is compared as one of the sums. */
void trial_changes(struct trial *trial, struct tfm_tensor *variable);
/* Ends the building: makes the outputs of the last node those of the graph. `tensor` is what the builder of
 * the op returned. */
void trial_output(struct trial *trial, struct tfm_tensor *tensor);

/* Values n of a tensor from number `first` on; block types take whole blocks. */
void trial_set(struct trial *trial, const struct tfm_tensor *tensor, size_t first, size_t n,
               const double *values);
void trial_set_all(struct trial *trial, const struct tfm_tensor *tensor, double value);
void trial_get(const struct trial *trial, const struct tfm_tensor *tensor, size_t first, size_t n,
               double *values);
/* Elements at full capacity. */
size_t trial_count(const struct trial *trial, const struct tfm_tensor *tensor);

/* A number in [0, 1) that depends on the seed alone. */
double trial_random(uint64_t seed);

/* ---- running ---- */

/* Opens plans; 0 = the backend refused, as it may. */
int trial_open(struct trial *trial, unsigned flags);
void trial_shut(struct trial *trial);
/* Runs on the backend under test, only: fails the test unless the status is `status`. */
void trial_run(struct trial *trial, const struct tfm_rows *rows, enum tfm_status status);
/* Runs and compares outputs and states; oracle may be NULL for another backend than reference. */
void trial_check(struct trial *trial, const struct tfm_rows *rows, trial_oracle *oracle);

/* Right values, n in all, of outputs and sums of a run that trial_check has made: the oracle's, or what the
 * reference made. */
void trial_want(const struct trial *trial, const struct tfm_rows *rows, trial_oracle *oracle,
                size_t n, double *want);

/* For ops whose row i depends on row i alone: every row count up to the capacity, in place where the op
 * may, at odd offsets, with memory that ends at the last row; on `reference` a row has the same bits
 * whichever rows run with it and however the loop is split. */
void trial_check_rows(struct trial *trial, trial_oracle *oracle);

/* The sweep for ops with sums: many row counts, at odd offsets, with memory that ends at the last row; on
 * `reference` the bits are the same however the loop is split. */
void trial_check_sums(struct trial *trial, trial_oracle *oracle);

/* Compares n values of the first output with `want` at the tolerance of backend, op and dtype. An f16 or bf16
 * output must have the bits of `want` rounded once, except where that lies within 1e-3 ulp of a tie (on
 * other backends than the reference, within that and the error of f32). */
void trial_compare(const struct trial *trial, const double *want, size_t n);
/* The same of all outputs and sums. */
void trial_compare_all(const struct trial *trial, const struct tfm_rows *rows, const double *want);
/* Their values in a run. */
size_t trial_results(const struct trial *trial, const struct tfm_rows *rows);

/* Output values within `tolerance` of hand-computed ones. */
void trial_expect(const struct trial *trial, const double *want, size_t n, double tolerance);

/* One sequence of n rows in slot 0 after `past` cells; out names rows 0..n_out-1. */
struct tfm_rows trial_rows(uint32_t n, int32_t past);

/* ---- refusals ---- */

/* The graph must hold an error of this status whose text has all of the words (a blank-free list
 * separated by '|'). */
void trial_refused(struct trial *trial, enum tfm_status status, const char *words);

#endif
