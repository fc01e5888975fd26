/* SPDX-License-Identifier: MIT
 * A line of torch/index.json: a layer, its settings, what goes in and what must come out. */
#ifndef TESTS_GOLDEN_TORCH_CASE_H
#define TESTS_GOLDEN_TORCH_CASE_H

#include <jansson.h>

#include <tfm/graph.h>
#include <tfm/nn.h>

#include "tests/golden/npy.h"

enum { TORCH_TENSORS = 64 };

struct torch_case {
    char label[160]; /* "norm rms f16 5x33 ..." */
    const char *layer, *bound;
    const json_t *set, *runs;
    enum tfm_dtype dtype; /* of the result */
    struct torch_tensor {
        const char *name;
        int is_input; /* else a parameter or buffer of the graph */
        enum tfm_dtype dtype;
        struct npy array;
    } tensors[TORCH_TENSORS];
    size_t n_tensors;
    struct npy want; /* f8 */
};

/* The whole index; NULL after it has said why not. Cases borrow from it. */
json_t *torch_index_read(void);
/* 0 after it has said what is wrong. */
int torch_case_read(const json_t *json, struct torch_case *c);
void torch_case_free(struct torch_case *c);

/* NULL when the case has none of that name. */
const struct torch_tensor *torch_tensor(const struct torch_case *c, const char *name);
/* Settings; `absent` where there is none. */
double torch_number(const struct torch_case *c, const char *key, double absent);
int64_t torch_integer(const struct torch_case *c, const char *key, int64_t absent);
/* "" when absent. */
const char *torch_word(const struct torch_case *c, const char *key);

/* tests/golden/torch_layers.c: appends the layer of the case; its inputs and parameters have the names of
 * the case. NULL when there is no such layer, or the graph refused (tfm_graph_check says why). */
struct tfm_tensor *torch_layer_build(struct tfm_graph *graph, const struct torch_case *c);
/* Name of layer number i; NULL past the last one. */
const char *torch_layer_name(size_t i);

#endif
