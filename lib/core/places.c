/* SPDX-License-Identifier: MIT
 * Compile: on which devices a tensor has a place, from which node to which, and what is copied between
 * devices. Offsets come later (layout.c). */
#include "lib/core/alloc.h"
#include "lib/core/plan.h"

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "plan: out of memory");
}

static enum tfm_status place_state(struct tfm_plan *plan, const struct tfm_tensor *root,
                                   uint32_t device, struct tfm__place *place, struct tfm_error *err)
{
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        if (d != device && tfm__plan_place(plan, d, root)->home != TFM__HOME_NONE)
            return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                                 "%s \"%s\" is used on %s and on %s; it can live on one device",
                                 root->is_trainable ? "trainable parameter" : "state", root->name,
                                 tfm_device_backend(plan->devices[d]),
                                 tfm_device_backend(plan->devices[device]));
    }
    struct tfm__state *state = &plan->states[plan->n_states];
    *state = (struct tfm__state){.tensor = root, .device = device};
    if (tfm__tensor_bytes(root, root->shape[0], &state->bytes))
        return tfm_error_set(err, TFM_STATUS_NOMEM, "state \"%s\" is too large", root->name);
    place->home = TFM__HOME_STATE;
    place->offset = plan->n_states++;
    return TFM_STATUS_OK;
}

/* Notes that node `n` on `device` touches a tensor. */
static enum tfm_status touch(struct tfm_plan *plan, const struct tfm_tensor *tensor, uint32_t n,
                             struct tfm_error *err)
{
    const uint32_t device = plan->node_device[n];
    const struct tfm_tensor *root = tfm__tensor_root(tensor);
    struct tfm__place *place = tfm__plan_place(plan, device, root);
    const struct tfm__segment *segment = &plan->segments[plan->node_segment[n]];

    if (place->home == TFM__HOME_NONE) {
        /* what comes from elsewhere must be there when its segment begins, not only at its node */
        place->first = root->kind == TFM_TENSOR_INPUT ? -1 : (int32_t)n;
        if (root->kind != TFM_TENSOR_INPUT && plan->maker[root->id] >= 0 &&
            (uint32_t)plan->maker[root->id] != device)
            place->first = (int32_t)segment->first_node;
        if (tfm__plan_is_weight(root)) {
            place->home = segment->whole ? TFM__HOME_PACKED : TFM__HOME_WEIGHTS;
        } else if (tfm__plan_is_variable(root)) {
            const enum tfm_status status = place_state(plan, root, device, place, err);
            if (status != TFM_STATUS_OK)
                return status;
        } else {
            place->home = TFM__HOME_ARENA;
            if (tfm__tensor_bytes(root, tfm_tensor_rows_most(root, &plan->capacity), &place->bytes))
                return tfm_error_set(err, TFM_STATUS_NOMEM, "tensor \"%s\" is too large",
                                     root->name);
        }
    }
    place->last = (int32_t)n;
    if (root->kind == TFM_TENSOR_OUTPUT)
        place->last = INT32_MAX; /* read when the run is over */
    return TFM_STATUS_OK;
}

/* A node that mixes rows needs sequences; if it keeps nothing, sequences without a past. What it keeps are its
 * caches: states [slots, cells, G, d]. */
static void note_needs(struct tfm_plan *plan, const struct tfm_node *node)
{
    struct tfm__rows_needs *needs = &plan->needs;
    int keeps = 0;

    if (tfm_op_info(node->op)->rows != TFM_OP_ROWS_MIXES)
        return;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        const struct tfm_tensor *cache = node->inputs[k];
        if (!cache || cache->kind != TFM_TENSOR_STATE || cache->rank != TFM_MAX_RANK)
            continue;
        keeps = 1;
        if (!needs->slots || cache->shape[0] < needs->slots)
            needs->slots = cache->shape[0];
        if (!needs->cells || cache->shape[1] < needs->cells)
            needs->cells = cache->shape[1];
    }
    needs->sequences = 1;
    needs->no_past |= !keeps;
}

enum tfm_status tfm__plan_places(struct tfm_plan *plan, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t t = 0; t < plan->n_tensors; t++)
        plan->maker[t] = -1;
    for (uint32_t n = 0; n < plan->n_nodes && status == TFM_STATUS_OK; n++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, n);
        note_needs(plan, node);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            plan->maker[node->outputs[k]->id] = (int32_t)plan->node_device[n];
        for (uint32_t k = 0; k < node->n_inputs && status == TFM_STATUS_OK; k++)
            status = node->inputs[k] ? touch(plan, node->inputs[k], n, err) : TFM_STATUS_OK;
        for (uint32_t k = 0; k < node->n_outputs && status == TFM_STATUS_OK; k++)
            status = touch(plan, node->outputs[k], n, err);
    }
    return status;
}

enum tfm_status tfm__plan_connect(struct tfm_plan *plan, struct tfm_error *err)
{
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        struct tfm__segment *segment = &plan->segments[s];
        segment->copies = tfm__alloc_array(segment->public.n_tensors, sizeof *segment->copies);
        if (!segment->copies)
            return no_memory(err);
        for (uint32_t i = 0; i < segment->public.n_tensors; i++) {
            const struct tfm_tensor *root = tfm__tensor_root(segment->public.tensors[i]);
            uint8_t *later = (uint8_t *)segment->public.read_later;
            later[i] = root->kind == TFM_TENSOR_OUTPUT;
            for (uint32_t r = s + 1; r < plan->n_segments && !later[i]; r++) {
                for (uint32_t k = 0; k < plan->segments[r].public.n_tensors && !later[i]; k++)
                    later[i] = tfm__tensor_root(plan->segments[r].public.tensors[k]) == root;
            }
            const int32_t maker = plan->maker[root->id];
            if (maker < 0 || (uint32_t)maker == segment->device)
                continue;
            int known = 0; /* an earlier segment of this device, or a view, brought it already */
            for (uint32_t r = 0; r <= s && !known; r++) {
                for (uint32_t k = 0; k < plan->segments[r].n_copies && !known; k++)
                    known = plan->segments[r].device == segment->device &&
                            plan->segments[r].copies[k].tensor == root->id;
            }
            if (known)
                continue;
            segment->copies[segment->n_copies++] =
                (struct tfm__copy){root->id, (uint32_t)maker, segment->device};
            struct tfm__place *source = tfm__plan_place(plan, (uint32_t)maker, root);
            if (source->last < (int32_t)segment->first_node)
                source->last = (int32_t)segment->first_node;
            if (source->bytes > plan->staging)
                plan->staging = source->bytes;
        }
    }
    return TFM_STATUS_OK;
}
