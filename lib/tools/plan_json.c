/* SPDX-License-Identifier: MIT
 * `tfm plan -o json`. */

#include "lib/tools/json_text.h"
#include "lib/tools/plan_text.h"

/* Extents that a run decides are the strings "N" and "R". */
static json_t *shape(const struct tfm_tensor *tensor)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < tensor->rank; i++) {
        char extent[24];
        tfm__plan_extent(tensor, i, extent, sizeof extent);
        json_array_append_new(list, extent[0] == 'N' || extent[0] == 'R'
                                        ? json_string(extent)
                                        : json_integer((json_int_t)tensor->shape[i]));
    }
    return list;
}

/* An absent optional tensor is null. */
static json_t *tensors(const struct tfm_tensor *const *all, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const struct tfm_tensor *t = all[i];
        json_array_append_new(
            list, t ? json_pack("{s:I, s:o, s:s, s:s, s:o}", "id", (json_int_t)t->id, "name",
                                tfm__json_text(t->name ? t->name : ""), "kind", tfm__plan_kind(t),
                                "dtype", tfm_dtype_name(t->dtype), "shape", shape(t))
                    : json_null());
    }
    return list;
}

static json_t *node(const struct tfm_plan_node *n)
{
    const struct tfm_scope *scope = n->node->scope;
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:s, s:I, s:b, s:o}", "id",
                     (json_int_t)n->node->id, "op", tfm_op_name(n->node->op), "layer",
                     tfm__json_text(tfm__plan_layer(n->node)), "kind",
                     tfm__json_text(scope && scope->kind ? scope->kind : ""), "inputs",
                     tensors(n->node->inputs, n->node->n_inputs), "outputs",
                     tensors(n->node->outputs, n->node->n_outputs), "backend", n->backend,
                     "segment", (json_int_t)n->segment, "fallback", n->fallback != 0, "refusal",
                     tfm__json_text(n->refusal));
}

static void add_note(void *list, const char *text)
{
    json_array_append_new(list, tfm__json_text(text));
}

/* What the backend says about a segment. */
static json_t *notes(const struct tfm_plan *plan, uint32_t segment)
{
    json_t *list = json_array();
    if (list)
        (void)tfm_plan_notes(plan, segment, add_note, list);
    return list;
}

/* Appends a node to the list, and to the segment that it continues or begins. */
static int append(const struct tfm_plan *plan, json_t *nodes, json_t *segments,
                  const struct tfm_plan_node *n)
{
    size_t count = json_array_size(segments);
    json_t *last = count ? json_array_get(segments, count - 1) : NULL;
    json_t *number = last ? json_object_get(last, "segment") : NULL;

    if (!number || json_integer_value(number) != (json_int_t)n->segment) {
        last = json_pack("{s:I, s:s, s:I, s:I, s:o}", "segment", (json_int_t)n->segment, "backend",
                         n->backend, "first_node", (json_int_t)n->node->id, "last_node",
                         (json_int_t)n->node->id, "notes", notes(plan, n->segment));
        if (json_array_append_new(segments, last))
            return 1;
    }
    return json_object_set_new(last, "last_node", json_integer((json_int_t)n->node->id)) ||
           json_array_append_new(nodes, node(n));
}

int tfm__plan_put_json(const struct tfm_plan *plan)
{
    struct tfm_plan_summary summary;
    json_t *nodes = json_array(), *segments = json_array();
    int failed = !nodes || !segments;

    tfm_plan_summarize(plan, &summary);
    for (uint32_t i = 0; i < summary.nodes && !failed; i++) {
        struct tfm_plan_node n;
        failed =
            tfm_plan_describe(plan, i, &n) != TFM_STATUS_OK || append(plan, nodes, segments, &n);
    }
    if (failed) {
        json_decref(nodes);
        json_decref(segments);
        return tfm__json_put(NULL);
    }
    return tfm__json_put(json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "nodes", nodes, "segments",
                                   segments, "fallbacks", (json_int_t)summary.fallbacks,
                                   "device_changes", (json_int_t)summary.device_changes,
                                   "arena_bytes", (json_int_t)summary.arena_bytes, "cache_bytes",
                                   (json_int_t)summary.state_bytes));
}
