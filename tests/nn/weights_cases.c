/* SPDX-License-Identifier: MIT
 * One set of weights on `reference`, then on the backend under test, and back; and what attention keeps
 * in memory. Faults caught: values that change on the way (packed, rounded, swapped), tables left behind,
 * a second model's results after a move, keys and values that are repeated for their query heads. */
#include "tests/nn/weights_cases.h"

#include "tests/nn/net.h"

enum { VOCAB = 64, WIDTH = 32, N = 6 };

static const struct tfm_nn_decoder_layer layers[2] = {
    {.q = TFM_DTYPE_F16,
     .k = TFM_DTYPE_BF16,
     .v = TFM_DTYPE_F32,
     .up = TFM_DTYPE_F16,
     .q_bias = 1,
     .k_bias = 1,
     .up_bias = 1},
    {.q = TFM_DTYPE_Q4_1,
     .k = TFM_DTYPE_Q8_0,
     .v = TFM_DTYPE_Q4_0,
     .o = TFM_DTYPE_F16,
     .down = TFM_DTYPE_Q8_0},
};

static const struct tfm_nn_decoder model = {
    .vocab = VOCAB,
    .width = WIDTH,
    .layers = 2,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 16,
    .ffn_width = 64,
    .eps = 1e-5,
    .positions = 32,
    .slots = 1,
    .cells = 32,
    .cache = TFM_DTYPE_F32,
    .embedding = TFM_DTYPE_F16,
    .head = TFM_DTYPE_BF16,
    .layer = layers,
    .norm = TFM_NN_NORM_LAYER,
    .ffn = TFM_NN_FFN_GELU_TANH,
};

static struct tfm_registry *registry;
static struct tfm_weights *weights;

static void setup(void)
{
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &registry, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_weights_release(weights);
    tfm_registry_destroy(registry);
}

static struct tfm_device *open_device(const char *backend)
{
    const char *spec = strcmp(backend, "opencl") ? backend : "opencl:Portable Computing Language";
    struct tfm_device *device = NULL;
    struct tfm_error err = {0};
    size_t n = 0;

    ck_assert_msg(tfm_devices_open(registry, spec, 1, &device, 1, &n, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    return device;
}

static struct tfm_graph *build(void)
{
    struct tfm_graph *graph = NULL;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    tfm_nn_decoder(graph, &model);
    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s", err.text);
    return graph;
}

/* Logits [N, VOCAB] on a backend, with the weights as they are. */
static void run_on(const char *backend, double *logits)
{
    static const struct tfm_capacity capacity = {N, 1, N};
    static int32_t ids[N] = {1, 60, 5, 33, 5, 2}, pos[N] = {0, 1, 2, 3, 4, 5};
    struct tfm_device *device = open_device(backend);
    struct tfm_graph *graph = build();
    struct tfm_plan *plan = NULL;
    struct tfm_exec *exec = NULL;
    struct tfm_error err = {0};
    float out[N * VOCAB];
    const struct tfm_rows rows = net_rows(N, 0);

    ck_assert_msg(tfm_plan_compile(graph, weights, &device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_exec_bind(exec, "ids", ids, sizeof ids, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "pos", pos, sizeof pos, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_exec_bind(exec, "logits", out, sizeof out, NULL), TFM_STATUS_OK);
    ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
    for (int i = 0; i < N * VOCAB; i++)
        logits[i] = (double)out[i];
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_device_release(device);
}

/* ---- bytes by name ---- */

struct bytes {
    unsigned char *data;
    size_t size, room;
};

static enum tfm_status append(void *context, const struct tfm_tensor *tensor)
{
    struct bytes *bytes = context;
    struct tfm_weight weight;
    enum tfm_dtype dtype;

    ck_assert_int_eq(tfm_weights_get(weights, tensor->name, &dtype, &weight, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(dtype, tensor->dtype);
    ck_assert_uint_le(bytes->size + weight.bytes, bytes->room);
    memcpy(bytes->data + bytes->size, weight.data, weight.bytes);
    bytes->size += weight.bytes;
    return TFM_STATUS_OK;
}

/* Every parameter and buffer, one behind the other. */
static struct bytes all_bytes(const struct tfm_graph *graph)
{
    struct bytes bytes = {.room = 1 << 20};

    bytes.data = malloc(bytes.room);
    ck_assert_ptr_nonnull(bytes.data);
    tfm_graph_parameters(graph, append, &bytes);
    tfm_graph_buffers(graph, append, &bytes);
    ck_assert_uint_gt(bytes.size, 10000);
    return bytes;
}

START_TEST(a_model_moves_and_comes_back)
{
    static double here[N * VOCAB], there[N * VOCAB], back[N * VOCAB];
    struct tfm_graph *graph = build();

    ck_assert_int_eq(tfm_nn_init_weights(graph, 9, weights, NULL), TFM_STATUS_OK);
    struct bytes before = all_bytes(graph);
    run_on("reference", here);
    run_on(net_backend(), there);
    run_on("reference", back);
    struct bytes after = all_bytes(graph);
    ck_assert_uint_eq(after.size, before.size);
    ck_assert_msg(memcmp(after.data, before.data, before.size) == 0, "weights changed on the way");
    free(before.data);
    free(after.data);
    /* block types may be read with rounded activations */
    net_compare(there, here, N * VOCAB, strcmp(net_backend(), "reference") ? 2e-2 : 0, "there");
    net_compare(back, here, N * VOCAB, 0, "back again");
    tfm_graph_destroy(graph);
}
END_TEST

/* The same seed gives the same bits, and a backend reads them: each parameter comes back through an op
 * that copies, rows of a matrix through embedding, a vector as the beta of rows times 0. */
START_TEST(a_backend_reads_the_same_bits)
{
    static const struct {
        const char *name;
        int64_t rows, width; /* rows 0 = a vector */
        enum tfm_dtype dtype;
    } rows[] = {
        {"w.f32", 19, 33, TFM_DTYPE_F32},
        {"w.f16", 19, 33, TFM_DTYPE_F16},
        {"w.bf16", 19, 33, TFM_DTYPE_BF16},
        {"w.vector", 0, 33, TFM_DTYPE_F32},
    };
    const int64_t V = rows[_i].rows ? rows[_i].rows : 1, D = rows[_i].width;
    const size_t n = (size_t)(V * D);
    int32_t ids[19];
    double want[19 * 33], got[19 * 33], drawn[19 * 33];
    struct net net;

    net_begin(&net, (uint32_t)V, 1);
    if (rows[_i].rows) {
        struct tfm_tensor *in = net_input(&net, "ids", TFM_DTYPE_I32, 0, 0);
        struct tfm_tensor *table =
            tfm_graph_parameter(net.graph, rows[_i].name, rows[_i].dtype, 2, (int64_t[]){V, D});
        net_output(&net, tfm_op_embedding(net.graph, table, in));
    } else {
        struct tfm_tensor *x = net_input(&net, "x", TFM_DTYPE_F32, D, 0);
        struct tfm_tensor *beta =
            tfm_graph_parameter(net.graph, rows[_i].name, TFM_DTYPE_F32, 1, &D);
        struct tfm_tensor *gamma = tfm_graph_buffer(net.graph, "zero", TFM_DTYPE_F32, 1, &D);
        net_output(&net, tfm_op_layer_norm(net.graph, x, gamma, beta, 1));
        net_set_all(&net, "zero", 0);
        net_fill(drawn, n, 3);
        net_set(&net, rows[_i].name, drawn);
    }
    net_compile(&net, 77);
    double *values = net_weight(&net, rows[_i].name);
    memcpy(want, values, sizeof want[0] * n);
    free(values);
    for (int32_t i = 0; i < V; i++)
        ids[i] = (int32_t)V - 1 - i;
    if (rows[_i].rows)
        net_put_i32(&net, "ids", 0, (size_t)V, ids);
    net_run_n(&net, (uint32_t)V, 0);
    net_get(&net, "y", 0, n, got);
    for (int64_t v = 0; v < V; v++)
        for (int64_t i = 0; i < D; i++)
            if (got[v * D + i] != want[(V - 1 - v) * D + i])
                ck_abort_msg("%s[%d][%d]: %a, not %a", rows[_i].name, (int)v, (int)i,
                             got[v * D + i], want[(V - 1 - v) * D + i]);
    /* and they are what the host draws, whatever the backend */
    if (rows[_i].rows && rows[_i].dtype == TFM_DTYPE_F32) {
        float bits[19 * 33];
        ck_assert_int_eq(
            tfm_nn_init_truncated_normal(77, rows[_i].name, 1, 3, TFM_DTYPE_F32, n, bits, NULL),
            TFM_STATUS_OK);
        for (size_t i = 0; i < n; i++)
            drawn[i] = (double)bits[i];
        net_compare(want, drawn, n, 0, "drawn");
    }
    net_end(&net);
}
END_TEST

/* ---- memory of attention ---- */

static struct tfm_plan_summary memory_of(int64_t heads, int64_t kv_heads, int64_t cells,
                                         uint32_t capacity, enum tfm_dtype cache, int64_t *largest)
{
    enum { D = 24, HEAD = 64, LAYERS = 2 };
    const struct tfm_nn_decoder config = {
        .vocab = 8,
        .width = D,
        .layers = LAYERS,
        .heads = heads,
        .kv_heads = kv_heads,
        .head_dim = HEAD,
        .ffn_width = D,
        .eps = 1e-5,
        .positions = cells,
        .slots = 1,
        .cells = cells,
        .cache = cache,
    };
    struct tfm_plan_summary summary;
    struct net net;

    net_begin(&net, capacity, 1);
    tfm_nn_decoder(net.graph, &config);
    net_compile(&net, 1);
    tfm_plan_summarize(net.plan, &summary);
    *largest = 0;
    for (uint32_t i = 0; i < tfm_graph_tensor_count(net.graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(net.graph, i);
        if (tensor->kind == TFM_TENSOR_INTERMEDIATE &&
            tfm_tensor_row_elements(tensor) * capacity > *largest)
            *largest = tfm_tensor_row_elements(tensor) * capacity;
    }
    net_end(&net);
    return summary;
}

/* 2 S G d x bytes a layer, whatever H; and nothing in the arena as large as S x H x d. */
START_TEST(keys_and_values_are_not_repeated)
{
    enum { S = 512, ROWS = 4, H = 9, G = 3, HEAD = 64, LAYERS = 2 };
    static const enum tfm_dtype caches[] = {TFM_DTYPE_F16, TFM_DTYPE_F32};
    const size_t bytes = tfm_dtype_info(caches[_i])->bytes;
    int64_t largest;

    const struct tfm_plan_summary gqa = memory_of(H, G, S, ROWS, caches[_i], &largest);
    ck_assert_int_lt(largest, (int64_t)S * H * HEAD);
    const struct tfm_plan_summary few = memory_of(G, G, S, ROWS, caches[_i], &largest);
    const struct tfm_plan_summary mha = memory_of(H, H, S, ROWS, caches[_i], &largest);
    ck_assert_uint_eq(gqa.state_bytes, LAYERS * 2 * (size_t)S * G * HEAD * bytes);
    ck_assert_uint_eq(gqa.state_bytes, few.state_bytes);
    ck_assert_uint_eq(mha.state_bytes, LAYERS * 2 * (size_t)S * H * HEAD * bytes);
    /* all of it, workspace included, is smaller than one repeated K */
    ck_assert_msg(gqa.arena_bytes < (size_t)S * H * HEAD * sizeof(float), "arena: %zu bytes",
                  gqa.arena_bytes);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("weights");
    TCase *tcase = net_case(suite, "moves");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_model_moves_and_comes_back);
    tcase = net_case(suite, "bits and memory");
    tcase_add_loop_test(tcase, a_backend_reads_the_same_bits, 0, 4);
    tcase_add_loop_test(tcase, keys_and_values_are_not_repeated, 0, 2);
    return suite;
}

int weights_cases_run(const char *backend)
{
    return net_main(backend, make);
}
