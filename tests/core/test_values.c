/* SPDX-License-Identifier: MIT
 * Faults caught: an index that reads outside its table, in an input or beside the weights; a position past
 * its table that is called by another name than "context full"; a past that nobody kept. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/plan.h>

#include "lib/core/values.h"
#include "tests/core/runner.h"

/* ---- the check alone ---- */

static const struct {
    const char *what;
    enum tfm_dtype dtype;
    int64_t limit;
    int32_t is_position, may_be_none, value;
    enum tfm_status status;
} table[] = {
    {"first", TFM_DTYPE_I32, 8, 0, 0, 0, TFM_STATUS_OK},
    {"last", TFM_DTYPE_I32, 8, 0, 0, 7, TFM_STATUS_OK},
    {"id at the end", TFM_DTYPE_I32, 8, 0, 0, 8, TFM_STATUS_OUT_OF_RANGE},
    {"largest id", TFM_DTYPE_I32, 8, 0, 0, INT32_MAX, TFM_STATUS_OUT_OF_RANGE},
    {"negative id", TFM_DTYPE_I32, 8, 0, 0, -1, TFM_STATUS_OUT_OF_RANGE},
    {"last position", TFM_DTYPE_I32, 8, 1, 0, 7, TFM_STATUS_OK},
    {"position at the end", TFM_DTYPE_I32, 8, 1, 0, 8, TFM_STATUS_CONTEXT_FULL},
    {"largest position", TFM_DTYPE_I32, 8, 1, 0, INT32_MAX, TFM_STATUS_CONTEXT_FULL},
    {"negative position", TFM_DTYPE_I32, 8, 1, 0, INT32_MIN, TFM_STATUS_OUT_OF_RANGE},
    {"none", TFM_DTYPE_I32, 8, 0, 1, -1, TFM_STATUS_OK},
    {"less than none", TFM_DTYPE_I32, 8, 0, 1, -2, TFM_STATUS_OUT_OF_RANGE},
    {"target at the end", TFM_DTYPE_I32, 8, 0, 1, 8, TFM_STATUS_OUT_OF_RANGE},
    {"no table", TFM_DTYPE_I32, 0, 0, 0, -5, TFM_STATUS_OK},
    {"no index", TFM_DTYPE_F32, 8, 0, 0, -5, TFM_STATUS_OK},
};

START_TEST(values)
{
    const struct tfm_tensor tensor = {.dtype = table[_i].dtype,
                                      .limit = table[_i].limit,
                                      .is_position = table[_i].is_position,
                                      .may_be_none = table[_i].may_be_none,
                                      .name = "here"};
    const int32_t numbers[] = {0, 1, table[_i].value};
    unsigned char bytes[sizeof numbers + 1]; /* unaligned, as in a file */
    struct tfm_error err = {0};

    memcpy(bytes + 1, numbers, sizeof numbers);
    const enum tfm_status status = tfm__values_check(&tensor, bytes + 1, 3, &err);
    ck_assert_msg(status == table[_i].status, "%s: %s: %s", table[_i].what, tfm_status_name(status),
                  err.text);
    if (status != TFM_STATUS_OK) {
        ck_assert_ptr_nonnull(strstr(err.text, "here"));
        ck_assert(!strstr(err.text, "context full") == (status != TFM_STATUS_CONTEXT_FULL));
    }
    ck_assert_int_eq(tfm__values_check(&tensor, bytes + 1, 2, NULL), TFM_STATUS_OK);
}
END_TEST

/* ---- in a plan ---- */

enum { ROWS = 5 };

static struct tfm_registry *registry;
static struct tfm_weights *weights;
static struct tfm_graph *graph;
static struct tfm_plan *plan;
static struct tfm_exec *exec;
static struct tfm_device *devices[2];
static size_t n_devices;
static struct tfm_error err;

static void setup(void)
{
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &registry, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_devices_open(registry, "reference", 0, devices, 2, &n_devices, &err),
                     TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_graph_create(&graph, &err), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    for (size_t i = 0; i < n_devices; i++)
        tfm_device_release(devices[i]);
    tfm_registry_destroy(registry);
}

static enum tfm_status compile(void)
{
    const struct tfm_capacity capacity = {.rows = ROWS, .sequences = 2, .out_rows = ROWS};
    return tfm_plan_compile(graph, weights, devices, n_devices, &capacity, &plan, &err);
}

static void open_exec(void)
{
    ck_assert_msg(compile() == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void bind(const char *name, void *memory, size_t bytes)
{
    ck_assert_msg(tfm_exec_bind(exec, name, memory, bytes, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void set(const char *name, enum tfm_dtype dtype, int rank, const int64_t *shape,
                const void *data, size_t bytes)
{
    ck_assert_msg(tfm_weights_set(weights, name, dtype, rank, shape, data, bytes, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
}

static enum tfm_status run(uint32_t n)
{
    const struct tfm_rows rows = {.n = n};
    return tfm_exec_run(exec, &rows, &err);
}

/* A13. A learned table of 8 positions, row p = p, on a token embedding of 0: 5 tokens at once, then one by
 * one. The ninth is an error before a kernel sees it; the exec stays usable. */
START_TEST(a13_learned_positions)
{
    static const int64_t words[] = {3, 2}, positions[] = {8, 2}, none[] = {0};
    static const float zeros[6];
    float rows[16], y[ROWS * 2];
    int32_t ids[ROWS] = {2, 1, 0, 1, 2}, pos[ROWS] = {0, 1, 2, 3, 4};

    for (int i = 0; i < 16; i++)
        rows[i] = (float)(i / 2);
    struct tfm_tensor *w = tfm_graph_parameter(graph, "words", TFM_DTYPE_F32, 2, words);
    struct tfm_tensor *p = tfm_graph_parameter(graph, "positions", TFM_DTYPE_F32, 2, positions);
    struct tfm_tensor *sum = tfm_op_add(
        graph, tfm_op_embedding(graph, w, tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, none)),
        tfm_op_position_embedding(graph, p, tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 1, none)));
    tfm_graph_output(graph, sum, "y");
    set("words", TFM_DTYPE_F32, 2, words, zeros, sizeof zeros);
    set("positions", TFM_DTYPE_F32, 2, positions, rows, sizeof rows);
    open_exec();
    bind("ids", ids, sizeof ids);
    bind("pos", pos, sizeof pos);
    bind("y", y, sizeof y);
    ck_assert_msg(run(5) == TFM_STATUS_OK, "%s", err.text);
    for (int i = 0; i < 10; i++)
        ck_assert(y[i] == (float)(i / 2));
    for (pos[0] = 5; pos[0] < 8; pos[0]++) {
        ck_assert_msg(run(1) == TFM_STATUS_OK, "%s", err.text);
        ck_assert(y[0] == (float)pos[0] && y[1] == (float)pos[0]);
    }
    ck_assert_int_eq(run(1), TFM_STATUS_CONTEXT_FULL);
    ck_assert_msg(strstr(err.text, "context full: position 8, the table ends at 8") != NULL, "%s",
                  err.text);
    pos[0] = -1;
    ck_assert_int_eq(run(1), TFM_STATUS_OUT_OF_RANGE);
    pos[0] = 0;
    ids[0] = 3;
    ck_assert_int_eq(run(1), TFM_STATUS_OUT_OF_RANGE);
    ids[0] = 2;
    ck_assert_msg(run(1) == TFM_STATUS_OK, "%s", err.text);
    ck_assert(y[0] == 0);
}
END_TEST

/* Positions of a rotation, as an input [N, T]: the last one of the last row is looked at. */
START_TEST(rotary_positions)
{
    static const int64_t shape[] = {0, 1, 3, 2}, many[] = {0, 3}, angles[] = {4, 1, 2};
    static const float table_values[8];
    float x[ROWS * 6] = {0}, y[ROWS * 6];
    int32_t pos[ROWS * 3] = {0};

    tfm_graph_output(graph,
                     tfm_op_rope_layout(graph, tfm_graph_input(graph, "x", TFM_DTYPE_F32, 4, shape),
                                        tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 2, many),
                                        tfm_graph_buffer(graph, "angles", TFM_DTYPE_F32, 3, angles),
                                        TFM_ROPE_HALVES, TFM_ROPE_HEADS_FIRST),
                     "y");
    set("angles", TFM_DTYPE_F32, 3, angles, table_values, sizeof table_values);
    open_exec();
    bind("x", x, sizeof x);
    bind("pos", pos, sizeof pos);
    bind("y", y, sizeof y);
    pos[5] = 4;
    ck_assert_msg(run(1) == TFM_STATUS_OK, "%s", err.text); /* row 1 is not of this run */
    ck_assert_int_eq(run(2), TFM_STATUS_CONTEXT_FULL);
    pos[5] = 3;
    ck_assert_msg(run(2) == TFM_STATUS_OK, "%s", err.text);
}
END_TEST

/* Indices beside the weights are looked at when a plan is compiled. */
START_TEST(indices_in_buffers)
{
    static const int32_t bad[] = {-1, 4, INT32_MAX};
    static const int64_t shape[] = {0, 1, 3, 2}, tokens[] = {3}, angles[] = {4, 1, 2};
    static const int64_t heads[] = {0, 1, 2}, biases[] = {4, 1};
    static const float numbers[8];
    const int is_bucket = _i >= 3;
    const int32_t index[3] = {0, 3, bad[_i % 3]};
    enum tfm_status want = TFM_STATUS_OUT_OF_RANGE;

    struct tfm_tensor *indices = tfm_graph_buffer(graph, "indices", TFM_DTYPE_I32, 1, tokens);
    set("indices", TFM_DTYPE_I32, 1, tokens, index, sizeof index);
    if (is_bucket) {
        struct tfm_tensor *q = tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, heads);
        const struct tfm_attention config = {
            .rel_bias = tfm_graph_parameter(graph, "bias", TFM_DTYPE_F32, 2, biases),
            .rel_bucket = indices};
        tfm_graph_output(graph, tfm_op_attention(graph, q, q, q, &config), "y");
        set("bias", TFM_DTYPE_F32, 2, biases, numbers, 4 * sizeof *numbers);
    } else {
        want = index[2] < 0 ? TFM_STATUS_OUT_OF_RANGE : TFM_STATUS_CONTEXT_FULL;
        tfm_graph_output(
            graph,
            tfm_op_rope_layout(graph, tfm_graph_input(graph, "x", TFM_DTYPE_F32, 4, shape), indices,
                               tfm_graph_buffer(graph, "angles", TFM_DTYPE_F32, 3, angles),
                               TFM_ROPE_HALVES, TFM_ROPE_HEADS_FIRST),
            "y");
        set("angles", TFM_DTYPE_F32, 3, angles, numbers, sizeof numbers);
    }
    ck_assert_int_eq(tfm_graph_check(graph, &err), TFM_STATUS_OK);
    const enum tfm_status status = compile();
    ck_assert_msg(status == want, "%s: %s", tfm_status_name(status), err.text);
    ck_assert_msg(strstr(err.text, "indices") != NULL, "%s", err.text);
}
END_TEST

/* Targets of a loss: -1 is none and passes, what is no class does not. */
START_TEST(targets)
{
    static const int32_t bad[] = {-2, 3, INT32_MIN};
    static const int64_t x_shape[] = {0, 2}, shape[] = {3, 2};
    static const float numbers[ROWS * 2];
    int32_t which[ROWS] = {0, -1, 2, -1, 1};
    float loss[ROWS];

    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, x_shape);
    struct tfm_tensor *w = tfm_graph_parameter(graph, "w", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *t = tfm_graph_input(graph, "targets", TFM_DTYPE_I32, 1, x_shape);
    tfm_graph_output(graph, tfm_op_cross_entropy(graph, x, w, t, 0, NULL), "loss");
    set("w", TFM_DTYPE_F32, 2, shape, numbers, 6 * sizeof *numbers);
    open_exec();
    bind("x", (void *)numbers, sizeof numbers);
    bind("targets", which, sizeof which);
    bind("loss", loss, sizeof loss);
    ck_assert_msg(run(5) == TFM_STATUS_OK, "%s", err.text);
    ck_assert(loss[1] == 0 && loss[3] == 0 && loss[0] > 1.09F && loss[0] < 1.1F);
    which[4] = bad[_i];
    ck_assert_int_eq(run(5), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_msg(strstr(err.text, "[-1, 3)") != NULL, "%s", err.text);
}
END_TEST

/* An attention without caches: every row belongs to a sequence, and no sequence has a past. */
START_TEST(nothing_kept)
{
    static const struct {
        uint32_t n_seq;
        int32_t start[2], past[2];
        enum tfm_status status;
    } lines[] = {
        {2, {0, 3}, {0, 0}, TFM_STATUS_OK},
        {1, {0, 0}, {0, 0}, TFM_STATUS_OK},
        {0, {0, 0}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
        {2, {0, 3}, {0, 2}, TFM_STATUS_INVALID_ARGUMENT},
        {2, {0, 6}, {0, 0}, TFM_STATUS_INVALID_ARGUMENT},
    };
    static const int64_t heads[] = {0, 1, 2};
    static const int32_t slot[] = {0, 0};
    const struct tfm_rows rows = {5,   lines[_i].n_seq, 0, slot, lines[_i].start, lines[_i].past,
                                  NULL};
    const struct tfm_attention config = {.bidirectional = 1};
    float q[ROWS * 2] = {0}, y[ROWS * 2];

    struct tfm_tensor *input = tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, heads);
    tfm_graph_output(graph, tfm_op_attention(graph, input, input, input, &config), "y");
    open_exec();
    bind("q", q, sizeof q);
    bind("y", y, sizeof y);
    const enum tfm_status status = tfm_exec_run(exec, &rows, &err);
    ck_assert_msg(status == lines[_i].status, "%s: %s", tfm_status_name(status), err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values");
    TCase *alone = tests_case(suite, "check"), *tcase = tests_case(suite, "plan");
    tcase_add_loop_test(alone, values, 0, (int)(sizeof table / sizeof *table));
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a13_learned_positions);
    tcase_add_test(tcase, rotary_positions);
    tcase_add_loop_test(tcase, indices_in_buffers, 0, 6);
    tcase_add_loop_test(tcase, nothing_kept, 0, 5);
    tcase_add_loop_test(tcase, targets, 0, 3);
    return tests_run(suite);
}
