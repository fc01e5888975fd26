/* SPDX-License-Identifier: MIT
 * What `tfm tune` times: linear layers of a model's shapes, a token of the model. Each result is compared: a way
 * that is fast and wrong does not count. */
#ifndef TFM__TOOLS_TUNE_WORK_H
#define TFM__TOOLS_TUNE_WORK_H

#include <tfm/plan.h>
#include <tfm/tune.h>

#include "lib/tools/options.h"

enum { TFM__TUNE_SHAPES = 32, TFM__TUNE_WORKS = TFM_TUNE_CONTEXT + 1 };

struct tfm__tune_shape {
    enum tfm_dtype weight;
    int64_t in, out;
    unsigned count; /* in the model */
    float *want;    /* [rows, out] by the reference */
};

struct tfm__tune_work {
    const struct tfm__options *options;
    uint32_t rows;
    struct tfm__tune_shape shapes[TFM__TUNE_SHAPES];
    size_t n_shapes;
    int64_t context; /* tokens that a text may have */
    /* [vocab] of the first candidate, which the others are compared with; NULL before */
    float *want[TFM__TUNE_WORKS];
};

/* Notes the linear layers of a graph. */
void tfm__tune_add_shapes(struct tfm__tune_work *work, const struct tfm_graph *graph);
/* What is right, by the reference. An exit code. */
int tfm__tune_want(struct tfm__tune_work *work);
void tfm__tune_work_deinit(struct tfm__tune_work *work);

/* "6 shapes of linear layers, 512 rows, each once" */
void tfm__tune_describe(const struct tfm__tune_work *work, uint32_t kind, char text[160]);

/* Times work of a kind (enum tfm_tune_work) on a device that is opened for it. why: "" or why it does not
 * count. An exit code. */
int tfm__tune_time(struct tfm__tune_work *work, uint32_t kind, double *seconds, char why[256]);

#endif
