/* SPDX-License-Identifier: MIT
 * What training depends on, as text, a line a fact: checkpoints carry it, so that none is continued with another
 * model, other settings or other data. When something is written or measured makes no difference. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/trainer_internal.h"

static void put_shape(FILE *to, const struct tfm_tensor *tensor)
{
    fputs(tfm_dtype_name(tensor->dtype), to);
    for (int32_t i = 0; i < tensor->rank; i++)
        fprintf(to, "%s%lld", i ? "," : " [", (long long)tensor->shape[i]);
    fputc(']', to);
}

/* Only those that are away from neutral, so that a younger attribute does not change an older text. */
static void put_attrs(FILE *to, const struct tfm_attrs *attrs)
{
#define TFM_ATTR(ctype, name, neutral, minor, meaning)      \
    if (attrs->name > (neutral) || attrs->name < (neutral)) \
        fprintf(to, " " #name "=%.17g", (double)attrs->name);
#include <tfm/attrs.def>
#undef TFM_ATTR
}

/* Forward only: how gradients are computed may change from one version to the next. */
static void put_nodes(FILE *to, const struct tfm_graph *graph)
{
    for (uint32_t i = 0; i < tfm_graph_node_count(graph); i++) {
        const struct tfm_node *node = tfm_graph_node(graph, i);
        struct tfm_attrs attrs = node->attrs;
        attrs.extra_outputs = 0; /* what backward asks of it */
        fprintf(to, "layer %s: %s ", node->scope ? node->scope->name : "", tfm_op_name(node->op));
        put_shape(to, node->outputs[0]);
        put_attrs(to, &attrs);
        fputc('\n', to);
        if (node->op == TFM_OP_CROSS_ENTROPY)
            break;
    }
}

struct walk {
    FILE *to;
    const struct tfm_graph *graph;
    const struct tfm_weights *weights;
};

static enum tfm_status put_parameter(void *context, const struct tfm_tensor *tensor)
{
    const struct walk *walk = context;

    fprintf(walk->to, "parameter %s: ", tensor->name);
    put_shape(walk->to, tensor);
    fputc('\n', walk->to);
    return TFM_STATUS_OK;
}

/* The values of tables (rotations, buckets) follow from settings that no node carries. */
static enum tfm_status put_buffer(void *context, const struct tfm_tensor *tensor)
{
    const struct walk *walk = context;
    enum tfm_dtype dtype;
    struct tfm_weight weight;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    if (tfm_weights_get(walk->weights, tensor->name, &dtype, &weight, NULL) != TFM_STATUS_OK)
        return TFM_STATUS_OK;
    for (size_t i = 0; i < weight.bytes; i++)
        sum = (sum ^ ((const unsigned char *)weight.data)[i]) * UINT64_C(0x100000001b3);
    fprintf(walk->to, "table %s: ", tensor->name);
    put_shape(walk->to, tensor);
    fprintf(walk->to, " %016" PRIx64 "\n", sum);
    return TFM_STATUS_OK;
}

#define PUT_COUNT(key)   fprintf(to, "setting " #key ": %lld\n", (long long)s->key)
#define PUT_REAL(key)    fprintf(to, "setting " #key ": %.17g\n", s->key)
#define PUT_COMPUTE(key) fprintf(to, "setting " #key ": %s\n", tfm_dtype_name(s->key))
#define PUT_FLAG(key)    fprintf(to, "setting " #key ": %d\n", s->key)

static void put_settings(FILE *to, const struct tfm_trainer_settings *settings)
{
    struct tfm_trainer_settings copy = *settings;
    const struct tfm_trainer_settings *s = &copy;

    /* the same steps, whatever these are */
    copy.validate_every = copy.sample_every = copy.save_every = 0;
    copy.recompute = 0;
#define TFM_TRAIN_SETTING(KIND, key, initial, least, most, meaning) PUT_##KIND(key);
#include <tfm/train_settings.def>
#undef TFM_TRAIN_SETTING
}

static void put_data(FILE *to, const char *what, const struct tfm_dataset *dataset)
{
    if (dataset)
        fprintf(to, "%s: %zu ids %016" PRIx64 " of vocabulary %016" PRIx64 "\n", what,
                tfm_dataset_count(dataset), tfm_dataset_checksum(dataset),
                tfm_dataset_tokenizer(dataset));
}

char *tfm__trainer_identity(const struct tfm_trainer *trainer)
{
    const struct tfm_graph *graph = tfm_plan_graph(trainer->train.plan);
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    struct walk walk = {to, graph, trainer->weights};

    if (!to)
        return NULL;
    put_settings(to, &trainer->settings);
    put_data(to, "text", trainer->data.train);
    /* fewer if some are held out than if there is another text for validation: another order */
    fprintf(to, "windows: %" PRIu64 " to train on\n", trainer->windows.train);
    (void)tfm_graph_parameters(graph, put_parameter, &walk);
    (void)tfm_graph_buffers(graph, put_buffer, &walk);
    put_nodes(to, graph);
    if (ferror(to) || fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
