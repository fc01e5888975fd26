/* SPDX-License-Identifier: MIT
 * Building, filling and running one graph under test. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/sample.h"
#include "tests/ops/drive_backend.h"
#include "tests/ops/trial.h"

static const char *backend_name = "reference";
static struct tfm__drive_backend backend, reference;

/* ---- the backend under test ---- */

const char *trial_backend_name(void)
{
    return backend_name;
}

void trial_backend_choose(const char *name)
{
    backend_name = name;
}

int trial_is_reference(void)
{
    return strcmp(backend_name, "reference") == 0;
}

int trial_backend_present(void)
{
    struct tfm__drive_backend b;
    struct tfm_error err = {0};

    if (drive_open(backend_name, &b, &err) == TFM_STATUS_OK) {
        tfm__drive_close(&b);
        return 1;
    }
    printf("# %s\n", err.text);
    fflush(stdout);
    /* only "not here" is a reason to skip; a module that is broken must fail its tests */
    return err.status != TFM_STATUS_NOT_FOUND;
}

static void open_backends(void)
{
    struct tfm_error err = {0};

    ck_assert_msg(drive_open(backend_name, &backend, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(drive_open("reference", &reference, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void close_backends(void)
{
    tfm__drive_close(&backend);
    tfm__drive_close(&reference);
}

TCase *trial_rule_tcase(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

TCase *trial_tcase(Suite *suite, const char *name)
{
    TCase *tcase = trial_rule_tcase(suite, name);

    tcase_add_checked_fixture(tcase, open_backends, close_backends);
    return tcase;
}

/* ---- building ---- */

void trial_begin(struct trial *trial, uint32_t rows, const char *format, ...)
{
    struct tfm_error err = {0};
    va_list arguments;

    memset(trial, 0, sizeof *trial);
    va_start(arguments, format);
    vsnprintf(trial->what, sizeof trial->what, format, arguments);
    va_end(arguments);
    trial->capacity = (struct tfm_capacity){rows, 1, rows};
    ck_assert_msg(tfm_graph_create(&trial->graph, &err) == TFM_STATUS_OK, "%s", err.text);
}

void trial_end(struct trial *trial)
{
    trial_shut(trial);
    for (size_t i = 0; i < TRIAL_TENSORS; i++) {
        free(trial->data[i]);
        free(trial->values[i]);
        free(trial->shadow[i]);
    }
    tfm_graph_destroy(trial->graph);
}

size_t trial_count(const struct trial *trial, const struct tfm_tensor *tensor)
{
    return (size_t)(tfm_tensor_rows_most(tensor, &trial->capacity) *
                    tfm_tensor_row_elements(tensor));
}

double trial_random(uint64_t seed)
{
    return tfm__sample_random(seed);
}

static void *allocate(const struct trial *trial, size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    ck_assert_msg(memory != NULL, "%s: out of memory", trial->what);
    return memory;
}

/* Gives a tensor memory for its values; the seed is its place in the graph and its size. */
static struct tfm_tensor *adopt(struct trial *trial, struct tfm_tensor *tensor, int filled)
{
    struct tfm_error err = {0};

    ck_assert_msg(tensor != NULL, "%s: %s", trial->what,
                  tfm_graph_check(trial->graph, &err) == TFM_STATUS_OK ? "no tensor" : err.text);
    ck_assert_uint_lt(tensor->id, TRIAL_TENSORS);
    const size_t n = trial_count(trial, tensor);
    trial->data[tensor->id] = allocate(
        trial, tfm__drive_bytes(tensor, tfm_tensor_rows_most(tensor, &trial->capacity)), 1);
    trial->values[tensor->id] = allocate(trial, n, sizeof(double));
    trial->may_refuse |= tensor->dtype == TFM_DTYPE_F64;
    if (filled) {
        double *values = trial->values[tensor->id];
        for (size_t i = 0; i < n; i++)
            values[i] = 2 * trial_random((uint64_t)(tensor->id + 1) * 1000003 + n * 31 + i) - 1;
        tfm_dtype_from_f64(tensor->dtype, values, trial->data[tensor->id], 0, n);
    }
    return tensor;
}

struct tfm_tensor *trial_input(struct trial *trial, const char *name, enum tfm_dtype dtype,
                               int rank, int64_t d1, int64_t d2)
{
    const int64_t shape[] = {0, d1, d2};
    return adopt(trial, tfm_graph_input(trial->graph, name, dtype, rank, shape),
                 dtype != TFM_DTYPE_I32);
}

struct tfm_tensor *trial_input_4(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                 int64_t d1, int64_t d2, int64_t d3)
{
    const int64_t shape[] = {0, d1, d2, d3};
    return adopt(trial, tfm_graph_input(trial->graph, name, dtype, 4, shape),
                 dtype != TFM_DTYPE_I32);
}

struct tfm_tensor *trial_parameter(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                   int rank, int64_t d0, int64_t d1)
{
    const int64_t shape[] = {d0, d1};
    return adopt(trial, tfm_graph_parameter(trial->graph, name, dtype, rank, shape), 1);
}

struct tfm_tensor *trial_buffer(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                int rank, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t shape[] = {d0, d1, d2};
    return adopt(trial, tfm_graph_buffer(trial->graph, name, dtype, rank, shape), 1);
}

struct tfm_tensor *trial_state(struct trial *trial, const char *name, enum tfm_dtype dtype,
                               int64_t slots, int64_t cells, int64_t groups, int64_t d)
{
    const int64_t shape[] = {slots, cells, groups, d};
    return adopt(trial, tfm_graph_state(trial->graph, name, dtype, 4, shape), 0);
}

void trial_changes(struct trial *trial, struct tfm_tensor *variable)
{
    ck_assert_uint_lt(trial->n_sums, TRIAL_SUMS);
    trial->sums[trial->n_sums++] = variable;
}

struct tfm_tensor *trial_sum(struct trial *trial, const char *name, enum tfm_dtype dtype, int rank,
                             int64_t d0, int64_t d1)
{
    const int64_t shape[] = {d0, d1};
    struct tfm_tensor *state =
        adopt(trial, tfm_graph_state(trial->graph, name, dtype, rank, shape), 1);

    trial_changes(trial, state);
    return state;
}

struct tfm_tensor *trial_trainable(struct trial *trial, const char *name, enum tfm_dtype dtype,
                                   int rank, int64_t d0, int64_t d1)
{
    return tfm_graph_train(trial->graph, trial_parameter(trial, name, dtype, rank, d0, d1));
}

void trial_output(struct trial *trial, struct tfm_tensor *tensor)
{
    const uint32_t nodes = tfm_graph_node_count(trial->graph);
    struct tfm_error err = {0};
    char name[16];

    ck_assert_msg(tensor && nodes > 0, "%s: %s", trial->what,
                  tfm_graph_check(trial->graph, &err) == TFM_STATUS_OK ? "no node" : err.text);
    const struct tfm_node *node = tfm_graph_node(trial->graph, nodes - 1);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        trial->outputs[i] = adopt(trial, (struct tfm_tensor *)node->outputs[i], 0);
        snprintf(name, sizeof name, i ? "output %u" : "output", i);
        ck_assert_ptr_nonnull(tfm_graph_output(trial->graph, trial->outputs[i], name));
    }
    trial->n_outputs = node->n_outputs;
    trial->output = trial->outputs[0];
}

/* ---- values ---- */

void trial_set(struct trial *trial, const struct tfm_tensor *tensor, size_t first, size_t n,
               const double *values)
{
    if (first + n > trial_count(trial, tensor))
        ck_abort_msg("%s: '%s' has no value %zu", trial->what, tensor->name, first + n - 1);
    tfm_dtype_from_f64(tensor->dtype, values, trial->data[tensor->id], first, n);
}

void trial_set_all(struct trial *trial, const struct tfm_tensor *tensor, double value)
{
    const size_t n = trial_count(trial, tensor);
    double *values = trial->values[tensor->id];

    for (size_t i = 0; i < n; i++)
        values[i] = value;
    trial_set(trial, tensor, 0, n, values);
}

void trial_get(const struct trial *trial, const struct tfm_tensor *tensor, size_t first, size_t n,
               double *values)
{
    if (first + n > trial_count(trial, tensor))
        ck_abort_msg("%s: '%s' has no value %zu", trial->what, tensor->name, first + n - 1);
    tfm_dtype_to_f64(tensor->dtype, trial->data[tensor->id], first, n, values);
}

static void refresh_values(const struct trial *trial)
{
    for (uint32_t id = 0; id < tfm_graph_tensor_count(trial->graph); id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(trial->graph, id);
        if (trial->data[id] && tensor->kind != TFM_TENSOR_OUTPUT)
            trial_get(trial, tensor, 0, trial_count(trial, tensor), trial->values[id]);
    }
}

/* ---- running ---- */

int trial_open(struct trial *trial, unsigned flags)
{
    struct tfm_error err = {0};
    enum tfm_status status;

    ck_assert_ptr_null(trial->plan);
    status = tfm__drive_plan_open(&backend, trial->graph, trial->data, &trial->capacity, flags,
                                  &trial->plan, &err);
    if (status == TFM_STATUS_UNSUPPORTED && trial->may_refuse && !trial_is_reference())
        return 0;
    ck_assert_msg(status == TFM_STATUS_OK, "%s: %s", trial->what, err.text);
    if (!trial_is_reference()) {
        status = tfm__drive_plan_open(&reference, trial->graph, trial->data, &trial->capacity, 0,
                                      &trial->reference, &err);
        ck_assert_msg(status == TFM_STATUS_OK, "%s: %s", trial->what, err.text);
    }
    return 1;
}

void trial_shut(struct trial *trial)
{
    tfm__drive_plan_close(trial->plan);
    tfm__drive_plan_close(trial->reference);
    trial->plan = NULL;
    trial->reference = NULL;
}

struct tfm_rows trial_rows(uint32_t n, int32_t past)
{
    static const int32_t slot[] = {0}, start[] = {0};
    static int32_t kept, out[4096];

    kept = past;
    for (int32_t i = 0; i < 4096; i++)
        out[i] = i;
    ck_assert_uint_le(n, 4096);
    return (struct tfm_rows){n, n > 0, n, slot, start, &kept, out};
}

void trial_run(struct trial *trial, const struct tfm_rows *rows, enum tfm_status status)
{
    struct tfm_error err = {0};
    const enum tfm_status found = tfm__drive_plan_run(trial->plan, trial->data, rows, &err);

    ck_assert_msg(found == status, "%s, %u rows: status %s instead of %s: %s", trial->what, rows->n,
                  tfm_status_name(found), tfm_status_name(status), err.text);
    ck_assert_msg(found == TFM_STATUS_OK || (err.status == found && err.text[0]),
                  "%s: a failure without a text", trial->what);
}

/* What the reference makes of the same inputs and states, in the shadow of each written tensor. */
static void run_reference(struct trial *trial, const struct tfm_rows *rows)
{
    void *data[TRIAL_TENSORS];
    struct tfm_error err = {0};

    memcpy(data, trial->data, sizeof data);
    for (uint32_t id = 0; id < tfm_graph_tensor_count(trial->graph); id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(trial->graph, id);
        const size_t bytes =
            tfm__drive_bytes(tensor, tfm_tensor_rows_most(tensor, &trial->capacity));
        if (!tfm__drive_is_variable(tensor) && tensor->kind != TFM_TENSOR_OUTPUT)
            continue;
        if (!trial->shadow[id])
            trial->shadow[id] = allocate(trial, bytes, 1);
        memcpy(trial->shadow[id], trial->data[id], bytes);
        data[id] = trial->shadow[id];
    }
    ck_assert_msg(tfm__drive_plan_run(trial->reference, data, rows, &err) == TFM_STATUS_OK,
                  "%s on the reference: %s", trial->what, err.text);
}

/* Those that are no sums: bit for bit. */
static void compare_states(const struct trial *trial)
{
    for (uint32_t id = 0; id < tfm_graph_tensor_count(trial->graph); id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(trial->graph, id);
        uint32_t k = 0;
        while (k < trial->n_sums && trial->sums[k] != tensor)
            k++;
        if (k == trial->n_sums && tfm__drive_is_variable(tensor) && trial->shadow[id])
            ck_assert_msg(memcmp(trial->data[id], trial->shadow[id],
                                 tfm__drive_bytes(tensor, tensor->shape[0])) == 0,
                          "%s: '%s' differs from that of the reference", trial->what, tensor->name);
    }
}

size_t trial_results(const struct trial *trial, const struct tfm_rows *rows)
{
    size_t n = 0;

    for (uint32_t i = 0; i < trial->n_outputs; i++)
        n += (size_t)(tfm_tensor_rows(trial->outputs[i], rows) *
                      tfm_tensor_row_elements(trial->outputs[i]));
    for (uint32_t i = 0; i < trial->n_sums; i++)
        n += trial_count(trial, trial->sums[i]);
    return n;
}

static int is_narrow(const struct tfm_tensor *tensor)
{
    return tensor->dtype == TFM_DTYPE_F16 || tensor->dtype == TFM_DTYPE_BF16;
}

void trial_want(const struct trial *trial, const struct tfm_rows *rows, trial_oracle *oracle,
                size_t n, double *want)
{
    int narrow = 0;

    for (uint32_t i = 0; i < trial->n_outputs; i++)
        narrow |= is_narrow(trial->outputs[i]);
    for (uint32_t i = 0; i < trial->n_sums; i++)
        narrow |= is_narrow(trial->sums[i]);
    ck_assert_uint_eq(n, trial_results(trial, rows));
    /* how a narrow output is rounded shows only beside the unrounded value */
    if (trial_is_reference() || (narrow && oracle)) {
        refresh_values(trial);
        oracle(trial, rows, want);
        return;
    }
    for (uint32_t i = 0; i < trial->n_outputs + trial->n_sums; i++) {
        const struct tfm_tensor *t =
            i < trial->n_outputs ? trial->outputs[i] : trial->sums[i - trial->n_outputs];
        const size_t values = (size_t)(tfm_tensor_rows(t, rows) * tfm_tensor_row_elements(t));
        tfm_dtype_to_f64(t->dtype, trial->shadow[t->id], 0, values, want);
        want += values;
    }
}

void trial_check(struct trial *trial, const struct tfm_rows *rows, trial_oracle *oracle)
{
    const size_t n = trial_results(trial, rows);
    double *want = allocate(trial, n, sizeof *want);

    if (!trial_is_reference())
        run_reference(trial, rows);
    trial_want(trial, rows, oracle, n, want);
    trial_run(trial, rows, TFM_STATUS_OK);
    trial_compare_all(trial, rows, want);
    if (!trial_is_reference())
        compare_states(trial);
    free(want);
}

void trial_refused(struct trial *trial, enum tfm_status status, const char *words)
{
    struct tfm_error err = {0};
    const enum tfm_status found = tfm_graph_check(trial->graph, &err);

    ck_assert_msg(found == status, "%s: status %s instead of %s: %s", trial->what,
                  tfm_status_name(found), tfm_status_name(status), err.text);
    while (*words) {
        char word[100];
        const size_t length = strcspn(words, "|");
        ck_assert_uint_lt(length, sizeof word);
        memcpy(word, words, length);
        word[length] = '\0';
        ck_assert_msg(strstr(err.text, word) != NULL, "%s: '%s' is not in: %s", trial->what, word,
                      err.text);
        words += length + (words[length] == '|');
    }
    trial_end(trial);
}
