/* SPDX-License-Identifier: MIT
 * A graph of layers with its weights on the backend under test. */
#include "tests/nn/net.h"

#include <math.h>
#include <stdio.h>

void net_begin(struct net *net, uint32_t rows, uint32_t sequences)
{
    struct tfm_error err = {0};

    memset(net, 0, sizeof *net);
    test_devices_open(&net->devices);
    net->capacity = (struct tfm_capacity){rows, sequences, rows};
    ck_assert_msg(tfm_graph_create(&net->graph, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(tfm_weights_create(&net->weights, &err) == TFM_STATUS_OK, "%s", err.text);
}

void net_end(struct net *net)
{
    tfm_exec_destroy(net->exec);
    tfm_plan_destroy(net->plan);
    tfm_graph_destroy(net->graph);
    tfm_weights_release(net->weights);
    test_devices_close(&net->devices);
    for (size_t i = 0; i < net->n_bound; i++)
        free(net->bound[i].data);
}

struct tfm_tensor *net_input(struct net *net, const char *name, enum tfm_dtype dtype, int64_t d1,
                             int64_t d2)
{
    const int rank = d1 == 0 ? 1 : d2 == 0 ? 2 : 3;

    return tfm_graph_input(net->graph, name, dtype, rank, (int64_t[]){0, d1, d2});
}

void net_output(struct net *net, struct tfm_tensor *tensor)
{
    struct tfm_error err = {0};

    tfm_graph_output(net->graph, tensor, "y");
    ck_assert_msg(tfm_graph_check(net->graph, &err) == TFM_STATUS_OK, "%s", err.text);
}

size_t net_elements(const struct tfm_tensor *tensor)
{
    size_t n = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        n *= (size_t)tensor->shape[i];
    return n;
}

static const struct tfm_tensor *find(const struct net *net, const char *name)
{
    const struct tfm_tensor *tensor = tfm_graph_find(net->graph, name);
    ck_assert_msg(tensor != NULL, "no tensor %s", name);
    return tensor;
}

void net_set(struct net *net, const char *name, const double *values)
{
    const struct tfm_tensor *tensor = find(net, name);
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    const size_t n = net_elements(tensor), bytes = n / info->block * info->bytes;
    struct tfm_error err = {0};
    void *data = malloc(bytes);

    ck_assert_ptr_nonnull(data);
    tfm_dtype_from_f64(tensor->dtype, values, data, 0, n);
    const enum tfm_status status = tfm_weights_set(net->weights, name, tensor->dtype, tensor->rank,
                                                   tensor->shape, data, bytes, &err);
    free(data);
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

void net_set_all(struct net *net, const char *name, double value)
{
    const size_t n = net_elements(find(net, name));
    double *values = malloc(n * sizeof *values);

    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++)
        values[i] = value;
    net_set(net, name, values);
    free(values);
}

static void bind(struct net *net, const struct tfm_tensor *tensor)
{
    const size_t row = (size_t)tfm_tensor_row_elements(tensor), i = net->n_bound++;
    struct tfm_error err = {0};

    ck_assert_uint_lt(i, NET_BOUND);
    net->bound[i].tensor = tensor;
    net->bound[i].elements = row * net->capacity.rows;
    net->bound[i].bytes = net->bound[i].elements * tfm_dtype_info(tensor->dtype)->bytes;
    net->bound[i].data = calloc(net->bound[i].bytes, 1);
    ck_assert_ptr_nonnull(net->bound[i].data);
    ck_assert_msg(tfm_exec_bind(net->exec, tensor->name, net->bound[i].data, net->bound[i].bytes,
                                &err) == TFM_STATUS_OK,
                  "%s", err.text);
}

void net_compile(struct net *net, uint64_t seed)
{
    struct tfm_error err = {0};

    ck_assert_msg(tfm_nn_init_weights(net->graph, seed, net->weights, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_msg(tfm_plan_compile(net->graph, net->weights, net->devices.device, net->devices.n,
                                   &net->capacity, &net->plan, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(net->plan, &net->exec, &err) == TFM_STATUS_OK, "%s", err.text);
    for (uint32_t i = 0; i < tfm_graph_tensor_count(net->graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(net->graph, i);
        if (!tensor->view_of &&
            (tensor->kind == TFM_TENSOR_INPUT || tensor->kind == TFM_TENSOR_OUTPUT))
            bind(net, tensor);
    }
}

double *net_weight(const struct net *net, const char *name)
{
    const size_t n = net_elements(find(net, name));
    double *values = malloc(n * sizeof *values);
    struct tfm_weight weight;
    enum tfm_dtype dtype;
    struct tfm_error err = {0};

    ck_assert_ptr_nonnull(values);
    ck_assert_msg(tfm_weights_get(net->weights, name, &dtype, &weight, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    tfm_dtype_to_f64(dtype, weight.data, 0, n, values);
    return values;
}

static size_t bound(const struct net *net, const char *name)
{
    for (size_t i = 0; i < net->n_bound; i++)
        if (strcmp(net->bound[i].tensor->name, name) == 0)
            return i;
    ck_abort_msg("%s is neither input nor output", name);
    return 0;
}

void net_put(struct net *net, const char *name, size_t first, size_t n, const double *values)
{
    const size_t i = bound(net, name);
    ck_assert_uint_le(first + n, net->bound[i].elements);
    tfm_dtype_from_f64(net->bound[i].tensor->dtype, values, net->bound[i].data, first, n);
}

void net_put_i32(struct net *net, const char *name, size_t first, size_t n, const int32_t *values)
{
    const size_t i = bound(net, name);
    ck_assert_uint_le(first + n, net->bound[i].elements);
    ck_assert_int_eq(net->bound[i].tensor->dtype, TFM_DTYPE_I32);
    memcpy((int32_t *)net->bound[i].data + first, values, n * sizeof *values);
}

void net_get(const struct net *net, const char *name, size_t first, size_t n, double *values)
{
    const size_t i = bound(net, name);
    ck_assert_uint_le(first + n, net->bound[i].elements);
    tfm_dtype_to_f64(net->bound[i].tensor->dtype, net->bound[i].data, first, n, values);
}

const void *net_memory(const struct net *net, const char *name)
{
    return net->bound[bound(net, name)].data;
}

enum tfm_status net_try(struct net *net, const struct tfm_rows *rows, struct tfm_error *err)
{
    return tfm_exec_run(net->exec, rows, err);
}

void net_run(struct net *net, const struct tfm_rows *rows)
{
    struct tfm_error err = {0};
    ck_assert_msg(net_try(net, rows, &err) == TFM_STATUS_OK, "%s", err.text);
}

struct tfm_rows net_rows(uint32_t n, int32_t past)
{
    enum { MOST = 4096 };
    static int32_t out[MOST], slot, start, before;

    ck_assert_uint_le(n, MOST);
    for (int32_t i = 0; i < (int32_t)n; i++)
        out[i] = i;
    before = past;
    return (struct tfm_rows){n, 1, n, &slot, &start, &before, out};
}

void net_run_n(struct net *net, uint32_t n, int32_t past)
{
    const struct tfm_rows rows = net_rows(n, past);
    net_run(net, &rows);
}

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
double net_random(uint64_t seed, uint64_t index)
{
    uint64_t z = (seed * 0x9E3779B97F4A7C15u) ^ (index + 1) * 0xD1B54A32D192ED03u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) / 4503599627370496.0 - 1;
}

void net_fill(double *values, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        values[i] = net_random(seed, i);
}

static enum tfm_status disturb(void *context, const struct tfm_tensor *tensor)
{
    struct net *net = context;
    const size_t n = net_elements(tensor);
    double values[256];

    if (tensor->rank != 1 && !strstr(tensor->name, "rel_bias"))
        return TFM_STATUS_OK;
    ck_assert_uint_le(n, 256);
    net_fill(values, n, tensor->id);
    for (size_t i = 0; i < n; i++)
        values[i] = 0.5 * values[i] + (strstr(tensor->name, "norm.weight") ? 1 : 0);
    net_set(net, tensor->name, values);
    return TFM_STATUS_OK;
}

void net_disturb(struct net *net)
{
    tfm_graph_parameters(net->graph, disturb, net);
}

void net_compare(const double *got, const double *want, size_t n, double tolerance,
                 const char *what)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(want[i]));
    for (size_t i = 0; i < n; i++) /* an assertion is a system call: only for what is wrong */
        if (!(fabs(got[i] - want[i]) <= tolerance * largest))
            ck_abort_msg("%s: element %zu is %.9g, but %.9g is right (largest %.3g)", what, i,
                         got[i], want[i], largest);
}

TCase *net_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

const char *net_backend(void)
{
    return test_backend;
}

void net_backend_choose(const char *backend)
{
    test_backend = backend;
}

int net_main(const char *backend, Suite *(*make)(void))
{
    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    SRunner *runner = srunner_create(make());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
