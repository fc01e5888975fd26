/* SPDX-License-Identifier: MIT
 * How buffers are made: a function and its settings beside the buffer, so that whoever has the graph can
 * have the tables that its layers read. */
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/graph.h"

static struct tfm__graph_maker *find(const struct tfm_graph *graph, const struct tfm_tensor *buffer)
{
    struct tfm__graph_maker *maker = graph->makers;
    while (maker && maker->buffer != buffer)
        maker = maker->next;
    return maker;
}

struct tfm_tensor *tfm_graph_buffer_maker(struct tfm_graph *graph, struct tfm_tensor *buffer,
                                          tfm_graph_make *make, const void *settings, size_t bytes)
{
    struct tfm__graph_maker *maker;
    size_t size;

    if (!buffer || !tfm__graph_open(graph, buffer->name))
        return NULL;
    if (buffer->kind != TFM_TENSOR_BUFFER || buffer->view_of)
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT,
                                "\"%s\" is no buffer: only buffers can be made", buffer->name);
    maker = find(graph, buffer);
    if (maker && (maker->make != make || maker->bytes != bytes ||
                  (bytes && memcmp(maker->settings, settings, bytes) != 0)))
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT,
                                "buffer \"%s\" is declared twice, with different values",
                                buffer->name);
    if (maker)
        return buffer;
    maker = tfm__add_size(sizeof *maker, bytes, &size) ? NULL : tfm__alloc(size);
    if (!maker)
        return tfm_graph_refuse(graph, TFM_STATUS_NOMEM, "buffer \"%s\": out of memory",
                                buffer->name);
    maker->buffer = buffer;
    maker->make = make;
    maker->bytes = bytes;
    if (bytes)
        memcpy(maker->settings, settings, bytes);
    maker->next = graph->makers;
    graph->makers = maker;
    return buffer;
}

enum tfm_status tfm_graph_buffer_values(const struct tfm_graph *graph,
                                        const struct tfm_tensor *buffer, void *values, size_t bytes,
                                        struct tfm_error *err)
{
    const struct tfm__graph_maker *maker = find(graph, buffer);
    size_t size;

    tfm_error_clear(err);
    if (!maker)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                             "buffer \"%s\": the graph does not know how it is made; set it",
                             buffer->name);
    if (tfm__tensor_bytes(buffer, buffer->shape[0], &size) || size != bytes)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "buffer \"%s\": %zu bytes of memory do not match its shape",
                             buffer->name, bytes);
    return maker->make(buffer, maker->settings, values, err);
}

void tfm__graph_makers_free(struct tfm_graph *graph, const void *end)
{
    while (graph->makers && (const void *)graph->makers != end) {
        struct tfm__graph_maker *next = graph->makers->next;
        tfm__free(graph->makers);
        graph->makers = next;
    }
}
