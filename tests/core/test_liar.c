/* SPDX-License-Identifier: MIT
 * A plugin that lies in supports(): it takes nodes and then cannot run them. Faults caught: an error that
 * does not say which layer, tensors and shapes it was about, or who failed; one without any words; a graph,
 * weights or process that are of no use afterwards; results handed out although the run failed. */
#include <check.h>
#include <string.h>

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/core/memory_backend.h"
#include "tests/core/runner.h"

enum { ROWS = 3, IN = 6, OUT = 4 };

/* Where the lie comes out; words: NULL = the plugin says nothing but a status. */
enum place { NOWHERE, COMPILE, EXEC_OPEN, FIRST_RUN, EVERY_RUN };
static struct {
    enum place place;
    enum tfm_status status;
    const char *words;
    int whole;
} lie;

static const struct tfm_host *host;

static enum tfm_status tell(enum place place, struct tfm_error *err)
{
    if (lie.place != place)
        return TFM_STATUS_OK;
    return lie.words ? host->error(err, lie.status, "%s", lie.words) : lie.status;
}

/* ---- the plugin: honest about nothing, memory and transfers of the one of the other tests ---- */

static enum tfm_status liar_open(const struct tfm_host *h, uint32_t index, void **device,
                                 struct tfm_error *err)
{
    host = h;
    return memory_backend.open(h, index, device, err);
}

static void liar_caps(void *device, struct tfm_device_caps *caps)
{
    memory_backend.caps(device, caps);
    caps->whole_segments = lie.whole;
}

static int32_t liar_supports(void *device, const struct tfm_node *node,
                             const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)device, (void)node, (void)capacity, (void)reason, (void)size;
    return 1;
}

static enum tfm_status run(const struct tfm_rows *rows, struct tfm_error *err)
{
    const enum tfm_status status = tell(FIRST_RUN, err);
    return status != TFM_STATUS_OK || !rows->n ? status : tell(EVERY_RUN, err);
}

static enum tfm_status liar_run_node(void *device, const struct tfm_node *node,
                                     const struct tfm_memory *inputs,
                                     const struct tfm_memory *outputs, const struct tfm_rows *rows,
                                     struct tfm_error *err)
{
    (void)device, (void)node, (void)inputs, (void)outputs;
    return run(rows, err);
}

static enum tfm_status liar_compile(void *device, struct tfm_weights *weights,
                                    const struct tfm_segment *segment,
                                    const struct tfm_capacity *capacity,
                                    struct tfm_program *program, struct tfm_error *err)
{
    (void)device, (void)weights, (void)segment, (void)capacity;
    program->impl = &lie;
    return tell(COMPILE, err);
}

static void liar_release(void *device, struct tfm_program *program)
{
    (void)device, (void)program;
}

static enum tfm_status liar_exec_open(void *device, const struct tfm_program *program,
                                      const struct tfm_exec_memory *memory, void **exec,
                                      struct tfm_error *err)
{
    (void)device, (void)program, (void)memory;
    *exec = &lie;
    return tell(EXEC_OPEN, err);
}

static enum tfm_status liar_exec_run(void *exec, const struct tfm_rows *rows, struct tfm_error *err)
{
    (void)exec;
    return run(rows, err);
}

static void liar_exec_close(void *exec)
{
    (void)exec;
}

/* ---- a linear for it ---- */

static struct tfm_registry *registry;
static struct tfm_weights *weights;
static struct tfm_graph *graph;
static struct tfm_error err;
static float x[ROWS * IN], y[ROWS * OUT];

static void setup(void)
{
    float w[OUT * IN];

    ck_assert_int_eq(tfm_registry_create(NULL, 0, &registry, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_graph_create(&graph, &err), TFM_STATUS_OK);
    struct tfm_tensor *in = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, IN});
    tfm_graph_output(graph, tfm_nn_linear(graph, "blk.3.ffn.up", in, OUT, TFM_DTYPE_F32, 0), "y");
    for (int i = 0; i < OUT * IN; i++)
        w[i] = (float)(i / IN); /* row o of W is o, so y[o] = o times the sum of x */
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)(i + 1);
    ck_assert_int_eq(tfm_weights_set(weights, "blk.3.ffn.up.weight", TFM_DTYPE_F32, 2,
                                     (int64_t[]){OUT, IN}, w, sizeof w, &err),
                     TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    tfm_registry_destroy(registry);
    ck_assert_uint_eq(memory_backend_control.live, 0);
}

/* Compiles the graph for one backend, opens an exec and runs it twice; the first failure ends it. */
static enum tfm_status use(const char *spec, int runs)
{
    const struct tfm_capacity capacity = {ROWS, 1, ROWS};
    const struct tfm_rows rows = {.n = ROWS};
    struct tfm_device *device = NULL;
    struct tfm_plan *plan = NULL;
    struct tfm_exec *exec = NULL;
    size_t n = 0;

    memset(y, 0x55, sizeof y);
    ck_assert_msg(tfm_devices_open(registry, spec, 1, &device, 1, &n, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    enum tfm_status status = tfm_plan_compile(graph, weights, &device, 1, &capacity, &plan, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_exec_create(plan, &exec, &err);
    if (status == TFM_STATUS_OK) {
        ck_assert_int_eq(tfm_exec_bind(exec, "x", x, sizeof x, &err), TFM_STATUS_OK);
        ck_assert_int_eq(tfm_exec_bind(exec, "y", y, sizeof y, &err), TFM_STATUS_OK);
    }
    while (status == TFM_STATUS_OK && runs-- > 0)
        status = tfm_exec_run(exec, &rows, &err);
    if (exec && status != TFM_STATUS_OK) { /* the exec lives: once it tells the truth, it runs */
        const struct tfm_error told = err;
        const enum place place = lie.place;
        lie.place = NOWHERE;
        ck_assert_int_eq(tfm_exec_run(exec, &rows, &err), TFM_STATUS_OK);
        lie.place = place;
        err = told;
    }
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_device_release(device);
    return status;
}

START_TEST(a_lie_has_layer_tensors_and_shapes)
{
    static const struct {
        int whole;
        enum place place;
        enum tfm_status status;
        const char *words;
    } lies[] = {
        {0, FIRST_RUN, TFM_STATUS_UNSUPPORTED, "linear is not there yet"},
        {0, FIRST_RUN, TFM_STATUS_INTERNAL, NULL},
        {0, EVERY_RUN, TFM_STATUS_SHAPE, "rows of 6 do not fit"},
        {0, EVERY_RUN, TFM_STATUS_BACKEND, NULL},
        {1, COMPILE, TFM_STATUS_UNSUPPORTED, "no kernel"},
        {1, COMPILE, TFM_STATUS_DTYPE, NULL},
        {1, EXEC_OPEN, TFM_STATUS_NOMEM, NULL},
        {1, FIRST_RUN, TFM_STATUS_BACKEND, "the queue is gone"},
        {1, EVERY_RUN, TFM_STATUS_DEVICE_LOST, NULL},
    };
    static const char *const names[] = {"blk.3.ffn.up", "linear of", "'x' [N, 6] f32",
                                        "'blk.3.ffn.up.weight' [4, 6] f32", "on liar, which took"};
    struct tfm_backend liar = memory_backend;

    ck_assert_int_eq((int)(sizeof lies / sizeof *lies), 9);
    liar.name = "liar";
    liar.open = liar_open;
    liar.caps = liar_caps;
    liar.supports = liar_supports;
    liar.run_node = liar_run_node;
    liar.compile = liar_compile;
    liar.release = liar_release;
    liar.exec_open = liar_exec_open;
    liar.exec_run = liar_exec_run;
    liar.exec_close = liar_exec_close;
    lie.whole = lies[_i].whole;
    lie.place = lies[_i].place;
    lie.status = lies[_i].status;
    lie.words = lies[_i].words;
    ck_assert_msg(tfm_registry_add(registry, &liar, &err) == TFM_STATUS_OK, "%s", err.text);

    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(use("liar", 1), lie.status);
        ck_assert_int_eq(err.status, lie.status);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            ck_assert_msg(strstr(err.text, names[i]) != NULL, "no \"%s\" in: %s", names[i],
                          err.text);
        ck_assert_msg(strstr(err.text, lie.words ? lie.words : tfm_status_text(lie.status)) != NULL,
                      "%s", err.text);
        ck_assert_ptr_null(strchr(err.text, '\n'));

        /* graph, weights and process are as good as before */
        ck_assert_msg(use("reference", 2) == TFM_STATUS_OK, "%s", err.text);
        for (int r = 0; r < ROWS; r++)
            for (int o = 0; o < OUT; o++) {
                const float sum = (float)(IN * (IN * r + 1) + IN * (IN - 1) / 2);
                ck_assert_float_eq(y[r * OUT + o], (float)o * sum);
            }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("liar");
    TCase *tcase = tests_case(suite, "liar");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_lie_has_layer_tensors_and_shapes, 0, 9);
    return tests_run(suite);
}
