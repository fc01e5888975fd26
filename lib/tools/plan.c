/* SPDX-License-Identifier: MIT
 * `tfm plan`: what compile decided for a model, as text here, as JSON and dot in plan_json.c and
 * plan_dot.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/tools/message.h"
#include "lib/tools/plan_text.h"
#include "lib/tools/setup.h"

static void put_tensors(const struct tfm_tensor *const *tensors, uint32_t n)
{
    struct tfm__shape_line line;
    int first = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!tensors[i])
            continue;
        printf("%s%s", first ? "" : ", ", tfm__plan_shape(tensors[i], &line));
        first = 0;
    }
}

static void put_node(const struct tfm_plan_node *node)
{
    printf("%5u  %-8s %-3u  %-14s %-20s ", node->node->id, node->backend, node->segment,
           tfm_op_name(node->node->op), tfm__plan_layer(node->node));
    put_tensors(node->node->inputs, node->node->n_inputs);
    printf(" -> ");
    put_tensors(node->node->outputs, node->node->n_outputs);
    if (node->fallback)
        printf("  FELL BACK: %s", node->refusal);
    putchar('\n');
}

static void put_note(void *context, const char *text)
{
    (void)context;
    printf("  %s\n", text);
}

/* One line a segment: its backend and its nodes; then what the backend says about it. */
static void put_segments(const struct tfm_plan *plan, const struct tfm_plan_summary *summary)
{
    struct tfm_plan_node node, next;
    for (uint32_t first = 0, last; first < summary->nodes; first = last + 1) {
        if (tfm_plan_describe(plan, first, &node))
            return;
        for (last = first; last + 1 < summary->nodes; last++)
            if (tfm_plan_describe(plan, last + 1, &next) || next.segment != node.segment)
                break;
        printf("segment %" PRIu32 ": %s, nodes %" PRIu32 " to %" PRIu32 "\n", node.segment,
               node.backend, first, last);
        (void)tfm_plan_notes(plan, node.segment, put_note, NULL);
    }
}

static int put_text(const struct tfm_plan *plan)
{
    struct tfm_plan_summary summary;
    struct tfm_plan_node node;

    tfm_plan_summarize(plan, &summary);
    printf(" node  backend  seg  op             layer                inputs -> outputs\n");
    for (uint32_t i = 0; i < summary.nodes; i++)
        if (tfm_plan_describe(plan, i, &node) == TFM_STATUS_OK)
            put_node(&node);
    put_segments(plan, &summary);
    printf("nodes %" PRIu32 ", segments %" PRIu32 ", fell back %" PRIu32 ", device changes %" PRIu32
           "\narena %zu bytes, cache %zu bytes\n",
           summary.nodes, summary.segments, summary.fallbacks, summary.device_changes,
           summary.arena_bytes, summary.state_bytes);
    return TFM__EXIT_OK;
}

int tfm__verb_plan(const struct tfm__options *options)
{
    struct tfm__setup setup = {0};
    int code = tfm__setup_model(options, &setup);
    if (code == TFM__EXIT_OK)
        code = tfm__setup_session(options, 0, &setup);
    if (code == TFM__EXIT_OK) {
        const struct tfm_plan *plan = tfm_session_plan(setup.session);
        if (strcmp(options->plan_format, "json") == 0)
            code = tfm__plan_put_json(plan);
        else if (strcmp(options->plan_format, "dot") == 0)
            code = tfm__plan_put_dot(plan);
        else
            code = put_text(plan);
    }
    tfm__setup_close(&setup);
    return code;
}
