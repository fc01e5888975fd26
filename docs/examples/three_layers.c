/* SPDX-License-Identifier: MIT
 * A graph of three layers, run on each backend that is named: three_layers reference opencl */
#include <stdio.h>
#include <tfm/tfm.h>

#define SHAPE(...)  \
    (int64_t[])     \
    {               \
        __VA_ARGS__ \
    }
#define TRY(function, ...)                            \
    if (function(__VA_ARGS__, &err) != TFM_STATUS_OK) \
    return fprintf(stderr, "%s\n", err.text), 1

int main(int argc, char **argv)
{
    static const float up[] = {1, 0, 0, 1, 1, 1, 1, -1}, gain[] = {1, 1, 2, 2};
    static const float down[] = {1, 0, 1, 0, 0, 1, 1, 1};
    float x[2][2] = {{1, 2}, {3, -1}}, y[2][2];
    const struct tfm_capacity capacity = {.rows = 2, .sequences = 1, .out_rows = 2};
    const int32_t zero[1] = {0}; /* one sequence, from row 0 on, nothing before it */
    const struct tfm_rows rows = {.n = 2, .n_seq = 1, .slot = zero, .start = zero, .past = zero};
    struct tfm_error err;
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_registry *registry;

    TRY(tfm_graph_create, &graph);
    struct tfm_tensor *t = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, SHAPE(0, 2));
    t = tfm_nn_linear(graph, "up", t, 4, TFM_DTYPE_F32, 0);   /* [N, 2] -> [N, 4] */
    t = tfm_nn_rms_norm(graph, "norm", t, 1e-5);              /* [N, 4] -> [N, 4] */
    t = tfm_nn_linear(graph, "down", t, 2, TFM_DTYPE_F32, 0); /* [N, 4] -> [N, 2] */
    tfm_graph_output(graph, t, "y");
    TRY(tfm_graph_check, graph); /* tells the first error of all the calls above */

    TRY(tfm_weights_create, &weights);
    TRY(tfm_weights_set, weights, "up.weight", TFM_DTYPE_F32, 2, SHAPE(4, 2), up, sizeof up);
    TRY(tfm_weights_set, weights, "norm.weight", TFM_DTYPE_F32, 1, SHAPE(4), gain, sizeof gain);
    TRY(tfm_weights_set, weights, "down.weight", TFM_DTYPE_F32, 2, SHAPE(2, 4), down, sizeof down);

    TRY(tfm_registry_create, NULL, 0, &registry);
    for (int i = 1; i < argc; i++) {
        struct tfm_device *devices[2];
        size_t n;
        struct tfm_plan *plan;
        struct tfm_exec *exec;
        TRY(tfm_devices_open, registry, argv[i], 1, devices, 2, &n); /* 1: nothing may fall back */
        TRY(tfm_plan_compile, graph, weights, devices, n, &capacity, &plan);
        TRY(tfm_exec_create, plan, &exec);
        TRY(tfm_exec_bind, exec, "x", x, sizeof x);
        TRY(tfm_exec_bind, exec, "y", y, sizeof y);
        TRY(tfm_exec_run, exec, &rows);
        printf("%-10s %.4f %.4f  %.4f %.4f\n", argv[i], y[0][0], y[0][1], y[1][0], y[1][1]);
        tfm_exec_destroy(exec);
        tfm_plan_destroy(plan);
        while (n > 0)
            tfm_device_release(devices[--n]);
    }
    tfm_registry_destroy(registry);
    tfm_weights_release(weights);
    tfm_graph_destroy(graph);
    return 0;
}
