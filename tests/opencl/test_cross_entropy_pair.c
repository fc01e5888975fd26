/* SPDX-License-Identifier: MIT
 * cross_entropy and its gradient in one plan: which pairs compute their logits once, and that these give the bits of
 * those that do not, over chunks of rows and several runs, in both shapes. */
#include "tests/opencl/parts.h"

#include <math.h>

#include <tfm/grad.h>

#include "backends/opencl/cross_entropy.h"

/* Three chunks of rows, the last of them odd; classes that fill neither a vector nor a chunk of them. */
enum { ROWS = 291, CLASSES = 8198, WIDTH = 20 };

static struct test_devices devices, plain;

static void open_reference(void)
{
    struct tfm_error err = {0};

    memset(&plain, 0, sizeof plain);
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &plain.registry, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_devices_open(plain.registry, "reference", 1, plain.device, 2, &plain.n,
                                   &err) == TFM_STATUS_OK,
                  "%s", err.text);
}

static void setup(void)
{
    parts_open(&devices);
    open_reference();
}

static void teardown(void)
{
    test_devices_close(&devices);
    test_devices_close(&plain);
}

enum what {
    PLAIN,
    LSE_AFTER,     /* lse is read behind the gradient */
    RECOMPUTED,    /* x is computed again for the gradient */
    LOSS_BEFORE,   /* somebody reads the loss between */
    LSE_BEFORE,    /* ... or lse */
    LOSS_UNREAD,   /* nobody reads the loss: its memory is another's by then */
    OTHER_X,       /* the gradient is that of another x */
    OTHER_NORM,    /* ... which only an attribute tells */
    OTHER_TARGETS, /* ... of other targets */
    OTHER_CAP,     /* ... of another soft cap */
    UPDATED,       /* ... of a weight that has changed since */
};

struct net {
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_tensor *x, *weight, *targets, *dloss, *loss, *lse, *dx;
};

static struct tfm_tensor *column(struct net *n, const char *name, enum tfm_dtype dtype)
{
    const int64_t shape[] = {0};
    return tfm_graph_input(n->graph, name, dtype, 1, shape);
}

static struct tfm_tensor *state(struct net *n, const char *name)
{
    const int64_t shape[] = {CLASSES, WIDTH};
    return tfm_graph_state(n->graph, name, TFM_DTYPE_F32, 2, shape);
}

static struct tfm_tensor *rows(struct net *n, const char *name, int64_t width)
{
    const int64_t shape[] = {0, width};
    return tfm_graph_input(n->graph, name, TFM_DTYPE_F32, 2, shape);
}

static void forward(struct net *n, enum what what, enum tfm_dtype dtype, double softcap)
{
    struct tfm_tensor *x;

    ck_assert_int_eq(tfm_graph_create(&n->graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&n->weights, NULL), TFM_STATUS_OK);
    n->x = rows(n, "x", WIDTH);
    n->weight = parts_parameter(n->graph, n->weights, "w", dtype, CLASSES, WIDTH, 1);
    n->targets = column(n, "targets", TFM_DTYPE_I32);
    n->dloss = column(n, "dloss", TFM_DTYPE_F32);
    tfm_graph_train(n->graph, n->weight);
    tfm_graph_watch(n->graph, n->x);
    x = tfm_op_scale(n->graph, n->x, 0.5);
    if (what == RECOMPUTED)
        tfm_graph_recompute(n->graph, x);
    n->loss = tfm_op_cross_entropy(n->graph, x, n->weight, n->targets, softcap, &n->lse);
    if (what != LOSS_UNREAD)
        tfm_graph_output(n->graph, n->loss, "loss");
    if (what == LOSS_BEFORE || what == LSE_BEFORE)
        tfm_graph_output(n->graph, tfm_op_scale(n->graph, what == LSE_BEFORE ? n->lse : n->loss, 1),
                         "read");
    if (what < OTHER_X) {
        ck_assert_int_eq(tfm_graph_backward(n->graph, 1, &n->loss, &n->dloss, NULL), TFM_STATUS_OK);
        n->dx = tfm_graph_gradient(n->graph, n->x);
    }
}

/* Gradients that tfm_graph_backward would not make. */
static void by_hand(struct net *n, enum what what)
{
    struct tfm_tensor *x = n->x, *targets = n->targets;

    if (what == OTHER_X)
        x = rows(n, "other", WIDTH);
    if (what != OTHER_X)
        x = tfm_op_scale(n->graph, x, what == OTHER_NORM ? 0.25 : 0.5);
    if (what == OTHER_TARGETS)
        targets = column(n, "more", TFM_DTYPE_I32);
    if (what == UPDATED)
        tfm_op_adamw(n->graph, n->weight, state(n, "g"), state(n, "m"), state(n, "v"),
                     rows(n, "hyper", TFM_ADAMW_HYPERS), NULL);
    n->dx = tfm_op_cross_entropy_grad(n->graph, x, n->weight, targets, n->lse, n->dloss,
                                      what == OTHER_CAP ? 3 : 0, NULL);
}

static void build(struct net *n, enum what what, enum tfm_dtype dtype, double softcap)
{
    struct tfm_error err = {0};

    memset(n, 0, sizeof *n);
    forward(n, what, dtype, softcap);
    if (what >= OTHER_X)
        by_hand(n, what);
    if (what == LSE_AFTER)
        tfm_graph_output(n->graph, tfm_op_scale(n->graph, n->lse, 1), "read");
    tfm_graph_output(n->graph, n->dx, "dx");
    ck_assert_msg(tfm_graph_check(n->graph, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* ---- which pairs ---- */

/* Fault: a condition is missing (loss or gradient would be wrong), or one too many (the work is done twice). */
static const struct {
    const char *name;
    enum what what;
    int together;
} pairs[] = {
    {"plain", PLAIN, 1},
    {"lse is read after the gradient", LSE_AFTER, 1},
    {"x is computed again", RECOMPUTED, 1},
    {"the loss is read before", LOSS_BEFORE, 0},
    {"lse is read before", LSE_BEFORE, 0},
    {"the loss is not read", LOSS_UNREAD, 0},
    {"another x", OTHER_X, 0},
    {"x with another attribute", OTHER_NORM, 0},
    {"other targets", OTHER_TARGETS, 0},
    {"another cap", OTHER_CAP, 0},
    {"the weight has changed", UPDATED, 0},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

/* The graph as one segment, as compile gets it. */
struct segment {
    struct tfm_segment public;
    const struct tfm_node *nodes[32];
    const struct tfm_tensor *tensors[64];
    int32_t index[64];
    uint8_t read_later[64];
};

static void note(struct segment *s, const struct tfm_tensor *tensor)
{
    if (!tensor)
        return;
    ck_assert_uint_lt(tensor->id, 64);
    s->index[tensor->id] = (int32_t)tensor->id;
    s->tensors[tensor->id] = tensor;
    s->read_later[tensor->id] = tensor->kind == TFM_TENSOR_OUTPUT;
}

static void gather(struct segment *s, const struct tfm_graph *graph)
{
    memset(s, 0, sizeof *s);
    for (const struct tfm_node *node;
         s->public.n_nodes < 32 && (node = tfm_graph_node(graph, s->public.n_nodes)) != NULL;) {
        s->nodes[s->public.n_nodes++] = node;
        for (uint32_t k = 0; k < node->n_inputs; k++)
            note(s, node->inputs[k]);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            note(s, node->outputs[k]);
    }
    s->public.n_tensors = 64;
    s->public.nodes = s->nodes;
    s->public.tensors = s->tensors;
    s->public.index = s->index;
    s->public.read_later = s->read_later;
}

START_TEST(which_go_together)
{
    const struct tfm_node *loss = NULL, *gradient = NULL;
    struct segment segment;
    struct net n;

    build(&n, pairs[_i].what, TFM_DTYPE_F32, 0);
    gather(&segment, n.graph);
    const struct tfm__cl_planner p = {.device = parts_handle(&devices), .segment = &segment.public};
    for (uint32_t i = 0; i < segment.public.n_nodes; i++) {
        if (segment.nodes[i]->op == TFM_OP_CROSS_ENTROPY)
            loss = segment.nodes[i];
        if (segment.nodes[i]->op == TFM_OP_CROSS_ENTROPY_GRAD)
            gradient = segment.nodes[i];
    }
    ck_assert(loss && gradient);
    ck_assert_msg(tfm__cl_cross_entropy_gradient(&p, loss) ==
                      (pairs[_i].together ? gradient : NULL),
                  "%s", pairs[_i].name);
    ck_assert_msg(tfm__cl_cross_entropy_forward(&p, gradient) == (pairs[_i].together ? loss : NULL),
                  "%s", pairs[_i].name);
    tfm_graph_destroy(n.graph);
    tfm_weights_release(n.weights);
}
END_TEST

/* ---- what they give ---- */

static const struct {
    const char *name, *shape;
    enum tfm_dtype dtype;
    double softcap;
    enum what what;
    double nmse; /* against the reference */
} kinds[] = {
    {"f32", "wide", TFM_DTYPE_F32, 0, PLAIN, 1e-9},
    {"f32, soft cap", "wide", TFM_DTYPE_F32, 1.5, PLAIN, 1e-9},
    {"f32, x again", "wide", TFM_DTYPE_F32, 0, RECOMPUTED, 1e-9},
    {"bf16", "wide", TFM_DTYPE_BF16, 0, PLAIN, 1e-4},
    {"bf16, soft cap", "wide", TFM_DTYPE_BF16, 1.5, PLAIN, 1e-4},
    {"f32, group", "group", TFM_DTYPE_F32, 0, PLAIN, 1e-9},
    {"f32, soft cap, group", "group", TFM_DTYPE_F32, 1.5, PLAIN, 1e-9},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

struct results {
    float loss[ROWS], dx[ROWS * WIDTH], dw[CLASSES * WIDTH];
};

static void bind(struct tfm_exec *exec, const char *name, void *memory, size_t words)
{
    ck_assert_int_eq(tfm_exec_bind(exec, name, memory, words * 4, NULL), TFM_STATUS_OK);
}

/* Runs of 291, 130 and 5 rows, whose gradients of the weight add up; loss and dx of the first. */
static struct results *results_of(enum what what, int i, struct test_devices *on)
{
    static const uint32_t counts[] = {ROWS, 130, 5};
    static float x[ROWS * WIDTH], dloss[ROWS], loss[ROWS], dx[ROWS * WIDTH], read[ROWS];
    static int32_t targets[ROWS];
    const struct tfm_capacity capacity = {ROWS, 1, ROWS};
    const int32_t zero = 0;
    struct results *made = calloc(1, sizeof *made);
    struct tfm_plan *plan = NULL;
    struct tfm_exec *exec = NULL;
    struct tfm_error err = {0};
    struct net n;

    ck_assert_ptr_nonnull(made);
    build(&n, what, kinds[i].dtype, kinds[i].softcap);
    ck_assert_msg(tfm_plan_compile(n.graph, n.weights, on->device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    for (size_t r = 0; r < ROWS; r++) {
        targets[r] = r % 7 == 3 ? -1 : (int32_t)(r * 389 % CLASSES);
        dloss[r] = 0.25f * (float)(1 + r % 3);
    }
    for (size_t k = 0; k < ROWS * WIDTH; k++)
        x[k] = 2 * parts_value(k, 3);
    bind(exec, "x", x, ROWS * WIDTH);
    bind(exec, "targets", targets, ROWS);
    bind(exec, "dloss", dloss, ROWS);
    bind(exec, "loss", loss, ROWS);
    bind(exec, "dx", dx, ROWS * WIDTH);
    if (what == LSE_BEFORE)
        bind(exec, "read", read, ROWS);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const struct tfm_rows run = {counts[k], 1, 0, &zero, &zero, &zero, NULL};
        ck_assert_msg(tfm_exec_run(exec, &run, &err) == TFM_STATUS_OK, "%s", err.text);
        if (k == 0) {
            memcpy(made->loss, loss, sizeof loss);
            memcpy(made->dx, dx, sizeof dx);
        }
        ck_assert_int_eq(memcmp(made->loss, loss, counts[k] * sizeof *loss), 0);
        ck_assert_int_eq(memcmp(made->dx, dx, counts[k] * WIDTH * sizeof *dx), 0);
    }
    ck_assert_int_eq(tfm_exec_state_read(exec, "w.grad", made->dw, sizeof made->dw, NULL),
                     TFM_STATUS_OK);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(n.graph);
    tfm_weights_release(n.weights);
    return made;
}

static void is_close(const char *name, const float *is, const float *want, size_t n, double bound)
{
    double error = 0, size = 0;

    for (size_t k = 0; k < n; k++) {
        error += pow((double)is[k] - (double)want[k], 2);
        size += pow((double)want[k], 2);
    }
    ck_assert_msg(size > 0 && error <= bound * size, "%s: nmse %g, at most %g", name, error / size,
                  bound);
}

/* Fault: a chunk of rows reads or writes that of another; slopes of another order; a row that has no target; loss of
 * this run and lse of the one before. */
START_TEST(the_bits_of_two_that_do_not)
{
    setenv("TFM_OPENCL_SHAPE", kinds[_i].shape, 1);
    setenv("TFM_ACT", kinds[_i].dtype == TFM_DTYPE_BF16 ? "bf16" : "f32", 1);
    setup();
    struct results *together = results_of(kinds[_i].what, _i, &devices);
    struct results *apart = results_of(LSE_BEFORE, _i, &devices);
    struct results *reference = results_of(LSE_BEFORE, _i, &plain);

    ck_assert_int_eq(memcmp(together, apart, sizeof *together), 0);
    is_close("loss", together->loss, reference->loss, ROWS, kinds[_i].nmse);
    is_close("dx", together->dx, reference->dx, ROWS * WIDTH, kinds[_i].nmse);
    is_close("dw", together->dw, reference->dw, CLASSES * WIDTH, kinds[_i].nmse);
    for (size_t r = 3; r < ROWS; r += 7) {
        ck_assert(together->loss[r] == 0);
        for (size_t k = 0; k < WIDTH; k++)
            ck_assert(together->dx[r * WIDTH + k] == 0);
    }
    free(together), free(apart), free(reference);
    teardown();
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("cross_entropy_pair");
    TCase *which = tests_case(suite, "which"), *bits = tests_case(suite, "bits");
    tcase_add_checked_fixture(which, setup, teardown);
    tcase_add_loop_test(which, which_go_together, 0, N_PAIRS);
    tcase_add_loop_test(bits, the_bits_of_two_that_do_not, 0, N_KINDS);
    return tests_run(suite);
}
