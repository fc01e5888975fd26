/* SPDX-License-Identifier: MIT
 * Tensors bound to memory of a device that belongs to the program, with a device that runs `add` and
 * `reference` for the rest. Faults caught: the core asks for less than it does with the memory, takes a copy
 * for the original, reads or writes beside the region, hands unchecked indices to a kernel, keeps or drops a
 * buffer too many, or forgets the old binding when the new one fails. */
#include <check.h>
#include <string.h>

#include <tfm/plan.h>

#include "lib/core/device.h"
#include "tests/core/memory_backend.h"
#include "tests/core/runner.h"

enum { WIDTH = 8, ROWS = 5, VOCAB = 3, GUARD = 3, ROW_BYTES = WIDTH * 4 };

static struct tfm_registry *registry;
static struct tfm_weights *weights;
static struct tfm_graph *graph;
static struct tfm_plan *plan;
static struct tfm_exec *exec;
static struct tfm_device *devices[2];
static struct tfm_error err;

#define OK(call) ck_assert_msg((call) == TFM_STATUS_OK, "%s: %s", #call, err.text)

/* ---- buffers of the program ---- */

static void *buffer_create(size_t bytes)
{
    void *buffer = NULL;
    OK(memory_backend.alloc(tfm__device_handle(devices[0]), bytes, &buffer, &err));
    return buffer;
}

static void buffer_release(void *buffer)
{
    memory_backend.free(tfm__device_handle(devices[0]), buffer);
}

static void buffer_write(void *buffer, size_t at, const void *from, size_t bytes)
{
    const struct tfm_memory to = {buffer, at};
    OK(memory_backend.upload(tfm__device_handle(devices[0]), from, to, bytes, &err));
}

static void buffer_read(void *buffer, size_t at, void *to, size_t bytes)
{
    const struct tfm_memory from = {buffer, at};
    OK(memory_backend.download(tfm__device_handle(devices[0]), from, to, bytes, &err));
}

static enum tfm_status bind(const char *name, void *buffer, size_t offset, size_t bytes)
{
    const struct tfm_memory memory = {buffer, offset};
    return tfm_exec_bind_memory(exec, name, MEMORY_INTEROP, memory, bytes, &err);
}

/* ---- s = a + b, t = s + a on "memory"; m = s * b, e = table[ids] on `reference` ---- */

static float table[VOCAB * WIDTH];

static void setup(void)
{
    const struct tfm_capacity capacity = {.rows = ROWS, .sequences = 1};
    const struct memory_backend_objects objects = {"drawer of the program"};
    const int64_t wide[] = {0, WIDTH}, one[] = {0}, rows[] = {VOCAB, WIDTH};
    struct tfm_plan_summary sum;
    size_t n = 0;

    memset(&memory_backend_control, 0, sizeof memory_backend_control);
    for (int i = 0; i < VOCAB * WIDTH; i++)
        table[i] = (float)(100 + i);
    OK(tfm_registry_create(NULL, 0, &registry, &err));
    OK(tfm_registry_add(registry, &memory_backend, &err));
    OK(tfm_device_wrap(registry, "memory", MEMORY_INTEROP, &objects, &devices[0], &err));
    ck_assert_str_eq(tfm_device_name(devices[0]), objects.name);
    OK(tfm_devices_open(registry, "reference", 1, &devices[1], 1, &n, &err));
    OK(tfm_weights_create(&weights, &err));
    OK(tfm_weights_set(weights, "table", TFM_DTYPE_F32, 2, rows, table, sizeof table, &err));
    OK(tfm_graph_create(&graph, &err));
    struct tfm_tensor *a = tfm_graph_input(graph, "a", TFM_DTYPE_F32, 2, wide);
    struct tfm_tensor *b = tfm_graph_input(graph, "b", TFM_DTYPE_F32, 2, wide);
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, one);
    struct tfm_tensor *s = tfm_op_add(graph, a, b);
    tfm_graph_output(graph, s, "s");
    tfm_graph_output(graph, tfm_op_add(graph, s, a), "t");
    tfm_graph_output(graph, tfm_op_mul(graph, s, b), "m");
    tfm_graph_output(
        graph,
        tfm_op_embedding(graph, tfm_graph_parameter(graph, "table", TFM_DTYPE_F32, 2, rows), ids),
        "e");
    OK(tfm_plan_compile(graph, weights, devices, 2, &capacity, &plan, &err));
    tfm_plan_summarize(plan, &sum);
    ck_assert_uint_eq(sum.segments, 2);
    OK(tfm_exec_create(plan, &exec, &err));
}

static void teardown(void)
{
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    tfm_device_release(devices[0]);
    tfm_device_release(devices[1]);
    tfm_registry_destroy(registry);
    ck_assert_uint_eq(memory_backend_control.live, 0);
}

static enum tfm_status run(uint32_t n)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {.n = n, .n_seq = 1, .slot = &zero, .start = &zero, .past = &zero};
    return tfm_exec_run(exec, &rows, &err);
}

/* What the plan does with each tensor, and so what its memory must allow. */
static const struct use {
    const char *name;
    uint32_t access;
} uses[] = {
    {"a", TFM_ACCESS_READ},        {"b", TFM_ACCESS_READ | TFM_ACCESS_HOST_READ},
    {"ids", TFM_ACCESS_HOST_READ}, {"s", TFM_ACCESS_WRITE | TFM_ACCESS_READ | TFM_ACCESS_HOST_READ},
    {"t", TFM_ACCESS_WRITE},       {"m", TFM_ACCESS_HOST_WRITE},
    {"e", TFM_ACCESS_HOST_WRITE},
};
enum { USES = sizeof uses / sizeof *uses };

START_TEST(the_backend_hears_what_is_done_with_its_memory)
{
    const size_t bytes = uses[_i].name[0] == 'i' ? ROWS * 4 : ROWS * ROW_BYTES;
    void *buffer = buffer_create(bytes);
    OK(bind(uses[_i].name, buffer, 0, bytes));
    ck_assert_uint_eq(memory_backend_control.access, uses[_i].access);
    buffer_release(buffer);
}
END_TEST

/* Each tensor in the middle of a buffer of its own, which is full of a pattern. */
static void *buffers[USES];
static unsigned char before[USES][(GUARD + ROWS + 1) * ROW_BYTES];

static void bind_all(void)
{
    for (int u = 0; u < USES; u++) {
        const size_t bytes = uses[u].name[0] == 'i' ? ROWS * 4 : ROWS * ROW_BYTES;
        buffers[u] = buffer_create(sizeof before[u]);
        for (size_t i = 0; i < sizeof before[u]; i++)
            before[u][i] = (unsigned char)(i * 7 + (size_t)u);
        buffer_write(buffers[u], 0, before[u], sizeof before[u]);
        OK(bind(uses[u].name, buffers[u], GUARD * 4, bytes));
        buffer_release(buffers[u]); /* the exec holds it */
    }
}

/* Puts `n` rows of values where a tensor lies, and into the picture of what must be there. */
static void put(int u, const void *values, size_t bytes, int is_input)
{
    memcpy(before[u] + GUARD * 4, values, bytes);
    if (is_input)
        buffer_write(buffers[u], GUARD * 4, values, bytes);
}

START_TEST(everything_in_memory_of_the_program)
{
    float a[ROWS * WIDTH], b[ROWS * WIDTH], s[ROWS * WIDTH], t[ROWS * WIDTH], m[ROWS * WIDTH];
    float e[ROWS * WIDTH];
    int32_t ids[ROWS];
    unsigned char now[sizeof before[0]];

    bind_all();
    for (uint32_t round = 0; round < 3; round++) {
        const uint32_t n = round == 1 ? 2 : ROWS;
        for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
            a[i] = (float)(i + round);
            b[i] = (float)(i % 5) - (float)round;
            s[i] = a[i] + b[i];
            t[i] = s[i] + a[i];
            m[i] = s[i] * b[i];
            ids[i / WIDTH] = (int32_t)((i / WIDTH + round) % VOCAB);
            e[i] = table[(size_t)ids[i / WIDTH] * WIDTH + i % WIDTH];
        }
        put(0, a, sizeof a, 1);
        put(1, b, sizeof b, 1);
        put(2, ids, sizeof ids, 1);
        put(3, s, n * ROW_BYTES, 0);
        put(4, t, n * ROW_BYTES, 0);
        put(5, m, n * ROW_BYTES, 0);
        put(6, e, n * ROW_BYTES, 0);
        OK(run(n));
        for (int u = 0; u < USES; u++) {
            buffer_read(buffers[u], 0, now, sizeof now);
            for (size_t i = 0; i < sizeof now; i++)
                ck_assert_msg(now[i] == before[u][i], "round %u, \"%s\": byte %zu", round,
                              uses[u].name, i);
        }
    }
}
END_TEST

/* The checked copy is what `reference` reads; what is wrong past the rows of the run is nobody's. */
START_TEST(indices_are_checked)
{
    const int32_t wrong[ROWS] = {0, 1, 2, VOCAB, 0};

    bind_all();
    put(2, wrong, sizeof wrong, 1);
    OK(run(3));
    ck_assert_int_eq(run(4), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_msg(strstr(err.text, "\"ids\""), "%s", err.text);
    OK(run(3));
}
END_TEST

/* A refusal by the core or by the backend, after which the old binding is still there. */
START_TEST(a_failure_changes_nothing)
{
    float a[ROWS * WIDTH] = {1}, b[ROWS * WIDTH] = {2}, got[WIDTH];
    const int32_t ids[ROWS] = {0};

    bind_all();
    put(0, a, sizeof a, 1);
    put(1, b, sizeof b, 1);
    put(2, ids, sizeof ids, 1);
    const unsigned live = memory_backend_control.live;
    ck_assert_int_eq(bind("a", buffers[0], 2, ROWS * ROW_BYTES), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(bind("a", buffers[0], 0, ROWS * ROW_BYTES - 4), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(bind("a", buffers[0], 4096, ROWS * ROW_BYTES), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(bind("t", buffers[3], 0, ROWS * ROW_BYTES), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "\"s\"") && strstr(err.text, "overlap"), "%s", err.text);
    ck_assert_int_eq(bind("nobody", buffers[0], 0, ROWS * ROW_BYTES), TFM_STATUS_NOT_FOUND);
    memory_backend_control.refuse_takes = 1;
    ck_assert_int_eq(bind("a", buffers[1], 0, ROWS * ROW_BYTES), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "bind \"a\"") && strstr(err.text, "told to refuse"), "%s",
                  err.text);
    ck_assert_int_eq(tfm_exec_bind_memory(exec, "a", "other.interop-1",
                                          (struct tfm_memory){buffers[0], 0}, ROWS * ROW_BYTES,
                                          &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_uint_eq(memory_backend_control.live, live);
    OK(run(1));
    buffer_read(buffers[3], GUARD * 4, got, sizeof got);
    ck_assert_float_eq(got[0], 3);
    memory_backend_control.fail_runs = 1;
    ck_assert_int_eq(run(1), TFM_STATUS_BACKEND);
    OK(run(1));
}
END_TEST

/* From memory of the device to the host's, to none, and back. */
START_TEST(bindings_come_and_go)
{
    float a[ROWS * WIDTH] = {1}, b[ROWS * WIDTH] = {2}, t[ROWS * WIDTH] = {0}, got[WIDTH];
    const int32_t ids[ROWS] = {0};
    struct tfm_memory at;
    size_t bytes = 0;

    bind_all();
    put(2, ids, sizeof ids, 1);
    const unsigned live = memory_backend_control.live;
    OK(tfm_exec_bind(exec, "a", a, sizeof a, &err));
    OK(tfm_exec_bind(exec, "b", b, sizeof b, &err));
    OK(tfm_exec_bind(exec, "t", t, sizeof t, &err));
    ck_assert_uint_eq(memory_backend_control.live, live - 3);
    OK(run(1));
    ck_assert_float_eq(t[0], 4);
    OK(tfm_exec_unbind(exec, "t", &err));
    OK(tfm_exec_unbind(exec, "t", &err));
    OK(tfm_exec_unbind(exec, "m", &err));
    a[0] = 5;
    t[0] = 0;
    OK(run(1));
    ck_assert_float_eq(t[0], 0);
    OK(tfm_exec_memory(exec, "t", MEMORY_INTEROP, &at, &bytes, &err));
    ck_assert_uint_eq(bytes, ROWS * ROW_BYTES);
    buffer_read(at.buffer, at.offset, got, sizeof got);
    ck_assert_float_eq(got[0], 12);
    ck_assert_int_eq(tfm_exec_memory(exec, "m", MEMORY_INTEROP, &at, &bytes, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_int_eq(tfm_exec_memory(exec, "a", MEMORY_INTEROP, &at, &bytes, &err),
                     TFM_STATUS_NOT_FOUND);
    OK(tfm_exec_unbind(exec, "a", &err));
    ck_assert_int_eq(run(1), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "\"a\" is not bound"), "%s", err.text);
}
END_TEST

START_TEST(objects_of_devices)
{
    struct memory_backend_objects objects = {NULL};
    struct tfm_device *none = NULL;

    OK(tfm_device_objects(devices[0], MEMORY_INTEROP, &objects, &err));
    ck_assert_str_eq(objects.name, "drawer");
    ck_assert_int_eq(tfm_device_objects(devices[1], MEMORY_INTEROP, &objects, &err),
                     TFM_STATUS_UNSUPPORTED);
    objects.name = NULL;
    ck_assert_int_eq(tfm_device_wrap(registry, "memory", MEMORY_INTEROP, &objects, &none, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.text, "memory: no name"), "%s", err.text);
    ck_assert_int_eq(tfm_device_wrap(registry, "reference", MEMORY_INTEROP, &objects, &none, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "reference") && strstr(err.text, MEMORY_INTEROP), "%s",
                  err.text);
    ck_assert_ptr_null(none);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bind");
    TCase *tcase = tests_case(suite, "memory of the program");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, the_backend_hears_what_is_done_with_its_memory, 0, USES);
    tcase_add_test(tcase, everything_in_memory_of_the_program);
    tcase_add_test(tcase, indices_are_checked);
    tcase_add_test(tcase, a_failure_changes_nothing);
    tcase_add_test(tcase, bindings_come_and_go);
    tcase_add_test(tcase, objects_of_devices);
    return tests_run(suite);
}
