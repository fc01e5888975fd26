/* SPDX-License-Identifier: MIT
 * The graph as the core sees it. */
#ifndef TFM__CORE_GRAPH_H
#define TFM__CORE_GRAPH_H

#include <stdatomic.h>

#include "lib/core/rule.h"

struct tfm__graph_scope {
    struct tfm_scope public;
    struct tfm__graph_scope *all; /* list of all scopes, to free them */
};

/* How the values of one buffer are made; settings[] is a copy of the caller's. */
struct tfm__graph_maker {
    const struct tfm_tensor *buffer;
    tfm_graph_make *make;
    struct tfm__graph_maker *next;
    size_t bytes;
    _Alignas(16) unsigned char settings[];
};

/* An intermediate that was made an output, and the name that it had before. */
struct tfm__graph_output {
    struct tfm_tensor *tensor;
    char *name;
    struct tfm__graph_output *next;
};

/* What is known about the gradient of a root tensor. */
struct tfm__graph_gradient {
    struct tfm_tensor *tensor; /* NULL = there is none (yet) */
    uint32_t since;            /* which tfm_graph_backward made it, counted from 1 */
    int watched;               /* 1 = asked for with tfm_graph_watch */
    int recomputed;            /* 1 = asked for with tfm_graph_recompute */
    struct tfm_tensor *again;  /* what the latest backward computed once more, or NULL */
    uint32_t again_since;
};

struct tfm_graph {
    atomic_uint holders;
    atomic_int frozen;
    struct tfm_error error;
    struct tfm_tensor **tensors;
    struct tfm_node **nodes;
    uint32_t n_tensors, tensor_room, n_nodes, node_room;
    struct tfm__graph_scope *scopes;
    struct tfm__graph_scope *scope; /* innermost */
    struct tfm__graph_maker *makers;
    struct tfm__graph_output *outputs;
    struct tfm__graph_gradient *gradients; /* [gradient_room] by tensor id; grad.c */
    uint32_t gradient_room, backwards;     /* calls of tfm_graph_backward */
};

/* One more holder; tfm_graph_destroy gives one up. Graphs that are held by plans are frozen. */
void tfm__graph_retain(struct tfm_graph *graph);
/* Builders fail from now on. */
void tfm__graph_freeze(struct tfm_graph *graph);

/* 1 if the graph can still be built; else the reason is in its error. */
int tfm__graph_open(struct tfm_graph *graph, const char *what);
/* Grows an array of pointers, n of *room, by one; 1 = out of memory. */
int tfm__graph_reserve(void ***array, uint32_t n, uint32_t *room);
/* In tensors.c: 1 if a tensor of this dtype and shape can be; and the copy of `model` under `name` in the graph,
 * which is not checked, NULL after NOMEM. Else the reason is in the graph's error. */
int tfm__graph_valid_tensor(struct tfm_graph *graph, const struct tfm_tensor *tensor,
                            const char *name);
struct tfm_tensor *tfm__graph_add_tensor(struct tfm_graph *graph, const struct tfm_tensor *model,
                                         const char *name);
/* Of each list what stands before `end`, the younger part; NULL = all. Undone, an output is an intermediate
 * of its old name again. */
void tfm__graph_makers_free(struct tfm_graph *graph, const void *end);
void tfm__graph_scopes_free(struct tfm_graph *graph, const void *end);
void tfm__graph_outputs_undo(struct tfm_graph *graph, const void *end);

/* Output number `output` of a node, the first of its optional ones that are not there yet included: made now if
 * it must be. NULL after an error, which is in the graph. */
struct tfm_tensor *tfm__graph_more_output(struct tfm_graph *graph, const struct tfm_node *node,
                                          uint32_t output);

/* Forgets what is known of the gradients of tensors of id `end` and up, and all gradients that were made after
 * `backwards` calls of tfm_graph_backward. In grad.c. */
void tfm__graph_gradients_undo(struct tfm_graph *graph, uint32_t end, uint32_t backwards);

/* The entry of a root tensor, made if it is not there; NULL after NOMEM. What it points to may move with the next
 * tensor. In grad.c. */
struct tfm__graph_gradient *tfm__graph_gradient_entry(struct tfm_graph *graph,
                                                      const struct tfm_tensor *root);
/* What a gradient reads instead of an intermediate: itself, or its values computed once more by nodes that are
 * appended here, if that was asked for. NULL after an error. In recompute.c. */
struct tfm_tensor *tfm__graph_again(struct tfm_graph *graph, struct tfm_tensor *tensor);

/* The tensor whose bytes these are: itself, or what it is a view of. */
static inline const struct tfm_tensor *tfm__tensor_root(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of : tensor;
}

/* Bytes of one outermost slice, and of the whole when the outermost extent is `outer`. The graph
 * checked that neither overflows for FIXED; returns 1 on overflow otherwise. */
int tfm__tensor_bytes(const struct tfm_tensor *tensor, int64_t outer, size_t *bytes);

#endif
