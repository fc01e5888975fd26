/* SPDX-License-Identifier: MIT
 * One node as a graph of its own, with values: built by a generator, run on the backend under check and
 * on the reference, compared. Knows nothing of a test framework: the first thing that goes wrong stays
 * in `err`, and every later call does nothing. */
#ifndef TFM__CHECK_SAMPLE_H
#define TFM__CHECK_SAMPLE_H

#include <tfm/graph.h>

#include "lib/check/drive.h"

enum { TFM__SAMPLE_TENSORS = 16 };

struct tfm__sample {
    char what[160]; /* "linear q4_1 [33, 64] + bias": op, dtypes, shapes */
    struct tfm_graph *graph;
    struct tfm_capacity capacity;
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS]; /* the first n_outputs: of the last node */
    uint32_t n_outputs;
    uint32_t
        sums; /* bit of a tensor id: a state that the op adds to, right within ops.def's bound; any
                      other state must have the reference's bits */
    struct tfm_tensor *special;      /* the input that may hold NaN and infinities, or NULL */
    int only_nan;                    /* ... NaN alone: what an infinity gives is not defined */
    int exact;                       /* values must be equal whatever ops.def allows */
    void *data[TFM__SAMPLE_TENSORS]; /* by tensor id, in the tensor's dtype, at full capacity */
    void *want[TFM__SAMPLE_TENSORS]; /* variables and outputs of the reference */
    struct tfm_error err;
};

/* ---- building ---- */

/* Row capacity, one sequence; format names the node without its op. */
void tfm__sample_begin(struct tfm__sample *sample, uint32_t rows, const char *format, ...)
    TFM_PRINTF(3, 4);
void tfm__sample_end(struct tfm__sample *sample);

/* Values lie in [-1, 1), those of I32 are 0. shape [rank] without the first extent of an input.
 * NULL after an error. */
struct tfm_tensor *tfm__sample_input(struct tfm__sample *sample, const char *name,
                                     enum tfm_dtype dtype, int rank, const int64_t *shape);
struct tfm_tensor *tfm__sample_parameter(struct tfm__sample *sample, const char *name,
                                         enum tfm_dtype dtype, int rank, const int64_t *shape);
struct tfm_tensor *tfm__sample_buffer(struct tfm__sample *sample, const char *name,
                                      enum tfm_dtype dtype, int rank, const int64_t *shape);
struct tfm_tensor *tfm__sample_state(struct tfm__sample *sample, const char *name,
                                     enum tfm_dtype dtype, int rank, const int64_t *shape);
/* A state that the op adds to; it holds values in [-1, 1) beforehand, so that one that is overwritten shows. */
struct tfm_tensor *tfm__sample_sum(struct tfm__sample *sample, const char *name,
                                   enum tfm_dtype dtype, int rank, const int64_t *shape);
/* A trainable parameter. */
struct tfm_tensor *tfm__sample_trainable(struct tfm__sample *sample, const char *name,
                                         enum tfm_dtype dtype, int rank, const int64_t *shape);
/* Ends the building: makes all outputs of the node outputs of the graph. `tensor` is what its builder returned: a
 * NULL takes the error of the graph over. */
void tfm__sample_output(struct tfm__sample *sample, struct tfm_tensor *tensor);

/* ---- values ---- */

/* Elements at full capacity; 0 for NULL. */
size_t tfm__sample_count(const struct tfm__sample *sample, const struct tfm_tensor *tensor);
void tfm__sample_set(struct tfm__sample *sample, const struct tfm_tensor *tensor, size_t first,
                     size_t n, const double *values);
/* A number in [0, 1) that depends on the seed alone (Steele et al., SplitMix64, 2014). */
double tfm__sample_random(uint64_t seed);
void tfm__sample_get(const struct tfm__sample *sample, const struct tfm_tensor *tensor, size_t i,
                     double *value);
/* Pseudo-random values in [-size, size) of elements first..first + n. */
void tfm__sample_fill(struct tfm__sample *sample, const struct tfm_tensor *tensor, uint64_t seed,
                      size_t first, size_t n, double size);

/* ---- comparing ---- */

/* Outputs and variables of a run against sample->want. INTERNAL with what is wrong and where: which values,
 * in which columns. */
enum tfm_status tfm__sample_compare(const struct tfm__sample *sample, const struct tfm_rows *rows,
                                    struct tfm_error *err);

#endif
