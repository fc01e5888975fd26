/* SPDX-License-Identifier: MIT
 * Which hidden units of a ReLU model are 0 on a whole text? Reads a checkpoint of `tfm train` and a token file.
 *   dead_units LAST.ckpt FILE.tokens V T D LAYERS H G F
 * for a model as docs/lessons/compare.sh trains it: RMSNorm, pre-norm, RoPE, tied head. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/checkpoint.h>
#include <tfm/dataset.h>
#include <tfm/device.h>
#include <tfm/nn.h>
#include <tfm/plan.h>

enum { MOST_LAYERS = 64 };

static struct tfm_error err;

static void need(enum tfm_status status, const char *what)
{
    if (status == TFM_STATUS_OK)
        return;
    fprintf(stderr, "dead_units: %s: %s\n", what, err.text);
    exit(1);
}

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    if (!memory) {
        fprintf(stderr, "dead_units: out of memory\n");
        exit(1);
    }
    return memory;
}

struct loading {
    const struct tfm_checkpoint *checkpoint;
    struct tfm_weights *weights;
};

static enum tfm_status load(void *context, const struct tfm_tensor *parameter)
{
    const struct loading *loading = context;
    const void *data;
    size_t bytes;

    need(tfm_checkpoint_find(loading->checkpoint, parameter->name, &data, &bytes, &err),
         "checkpoint");
    return tfm_weights_set(loading->weights, parameter->name, parameter->dtype, parameter->rank,
                           parameter->shape, data, bytes, &err);
}

/* Makes the result of every ReLU an output "relu.N" of the graph; returns how many there are. */
static int show_units(struct tfm_graph *graph)
{
    int n = 0;

    for (uint32_t i = 0; i < tfm_graph_node_count(graph) && n < MOST_LAYERS; i++) {
        const struct tfm_node *node = tfm_graph_node(graph, i);
        char name[32];
        if (node->op != TFM_OP_RELU)
            continue;
        snprintf(name, sizeof name, "relu.%d", n++);
        tfm_graph_output(graph, (struct tfm_tensor *)node->outputs[0], name);
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc != 10) {
        fprintf(stderr, "dead_units LAST.ckpt FILE.tokens V T D LAYERS H G F\n");
        return 2;
    }
    long long number[7];
    for (int i = 0; i < 7; i++) {
        number[i] = strtoll(argv[3 + i], NULL, 10);
        if (number[i] < 1 || number[i] > 1 << 20) {
            fprintf(stderr, "dead_units: %s is no size\n", argv[3 + i]);
            return 2;
        }
    }
    const size_t vocab = (size_t)number[0], length = (size_t)number[1], units = (size_t)number[6];
    struct tfm_nn_decoder model = {.vocab = number[0],
                                   .positions = number[1],
                                   .width = number[2],
                                   .layers = number[3],
                                   .heads = number[4],
                                   .kv_heads = number[5],
                                   .head_dim = number[2] / number[4],
                                   .ffn = TFM_NN_FFN_RELU,
                                   .ffn_width = number[6],
                                   .eps = 1e-5,
                                   .tied = 1};
    struct tfm_checkpoint *checkpoint;
    struct tfm_dataset *text;
    struct tfm_registry *registry;
    struct tfm_device *devices[2];
    struct tfm_graph *graph;
    struct tfm_plan *plan;
    struct tfm_exec *exec;
    size_t n_devices = 0;

    need(tfm_checkpoint_open(argv[1], &checkpoint, &err), "checkpoint");
    need(tfm_dataset_open(argv[2], &text, &err), "text");
    need(tfm_registry_create(NULL, 0, &registry, &err), "backends");
    need(tfm_devices_open(registry, NULL, -1, devices, 2, &n_devices, &err), "device");
    need(tfm_graph_create(&graph, &err), "graph");
    tfm_nn_decoder(graph, &model);
    const int layers = show_units(graph);
    need(tfm_graph_check(graph, &err), "graph");

    struct loading loading = {checkpoint, NULL};
    need(tfm_weights_create(&loading.weights, &err), "weights");
    need(tfm_graph_parameters(graph, load, &loading), "weights");
    need(tfm_nn_init_weights(graph, 1, loading.weights, &err), "tables");
    const struct tfm_capacity capacity = {.rows = (uint32_t)length, .sequences = 1, .out_rows = 1};
    need(tfm_plan_compile(graph, loading.weights, devices, n_devices, &capacity, &plan, &err),
         "plan");
    need(tfm_exec_create(plan, &exec, &err), "exec");

    int32_t *ids = get(length, sizeof *ids), *pos = get(length, sizeof *pos);
    float *logits = get(vocab, sizeof *logits);
    float *hidden = get((size_t)layers * length * units, sizeof *hidden);
    unsigned char *alive = get((size_t)layers * units, 1);
    for (size_t i = 0; i < length; i++)
        pos[i] = (int32_t)i;
    need(tfm_exec_bind(exec, "ids", ids, length * sizeof *ids, &err), "ids");
    need(tfm_exec_bind(exec, "pos", pos, length * sizeof *pos, &err), "pos");
    need(tfm_exec_bind(exec, "logits", logits, vocab * sizeof *logits, &err), "logits");
    for (int l = 0; l < layers; l++) {
        char name[32];
        snprintf(name, sizeof name, "relu.%d", l);
        need(tfm_exec_bind(exec, name, hidden + (size_t)l * length * units,
                           length * units * sizeof *hidden, &err),
             name);
    }

    const int32_t zero = 0, last = (int32_t)length - 1;
    const struct tfm_rows rows = {.n = (uint32_t)length,
                                  .n_seq = 1,
                                  .n_out = 1,
                                  .slot = &zero,
                                  .start = &zero,
                                  .past = &zero,
                                  .out = &last};
    const size_t windows = tfm_dataset_count(text) / length;
    for (size_t w = 0; w < windows; w++) {
        need(tfm_dataset_read(text, w * length, length, ids, &err), "text");
        need(tfm_exec_run(exec, &rows, &err), "run");
        for (size_t l = 0; l < (size_t)layers; l++)
            for (size_t i = 0; i < length * units; i++)
                alive[l * units + i % units] |= hidden[l * length * units + i] > 0;
    }
    size_t dead = 0;
    for (size_t i = 0; i < (size_t)layers * units; i++)
        dead += !alive[i];
    printf("%s: %zu of %zu units are 0 on all of %zu tokens: %.2f%%\n", argv[1], dead,
           (size_t)layers * units, windows * length,
           layers ? 100 * (double)dead / (double)((size_t)layers * units) : 0);

    free(ids);
    free(pos);
    free(logits);
    free(hidden);
    free(alive);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_weights_release(loading.weights);
    tfm_graph_destroy(graph);
    for (size_t i = 0; i < n_devices; i++)
        tfm_device_release(devices[i]);
    tfm_registry_destroy(registry);
    tfm_dataset_close(text);
    tfm_checkpoint_close(checkpoint);
    return 0;
}
