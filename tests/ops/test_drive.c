/* SPDX-License-Identifier: MIT
 * The driver itself: a backend of whole segments with handles that are no addresses, right in one run and
 * wrong in a chosen way in the next. Each wrong way must be seen, or no op test means anything. */
#include <stdlib.h>
#include <string.h>

#include "backends/reference/backend.h"
#include "tests/core/runner.h"
#include "lib/check/drive.h"
#include "lib/check/drive_host.h"

enum fault {
    NONE,
    BEFORE_OUTPUT,
    AFTER_OUTPUT,
    FAR_AFTER_OUTPUT,
    INPUT_CHANGED,
    PAST_WORKSPACE,
    ALLOCATES,
    GIVES_OUTPUT_AWAY,
    REFUSES,
    FAULTS
};

static enum fault fault;

struct handle {
    unsigned char *memory;
};

struct program {
    struct tfm_segment segment;
    struct tfm_weights *weights;
    const void *constants[8];
};

struct exec {
    const struct program *program;
    struct tfm_exec_memory memory;
};

/* A device of the reference does the work. */
static void *worker;

static enum tfm_status alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    struct handle *handle = malloc(sizeof *handle);
    (void)device;
    (void)err;
    ck_assert_ptr_nonnull(handle);
    handle->memory = malloc(bytes);
    ck_assert_ptr_nonnull(handle->memory);
    *buffer = handle;
    return TFM_STATUS_OK;
}

static void release_buffer(void *device, void *buffer)
{
    (void)device;
    free(((struct handle *)buffer)->memory);
    free(buffer);
}

static unsigned char *at(struct tfm_memory memory)
{
    return ((struct handle *)memory.buffer)->memory + memory.offset;
}

static enum tfm_status upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                              struct tfm_error *err)
{
    (void)device;
    (void)err;
    memcpy(at(dst), src, bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                struct tfm_error *err)
{
    (void)device;
    (void)err;
    memcpy(dst, at(src), bytes);
    return TFM_STATUS_OK;
}

static int32_t supports(void *device, const struct tfm_node *node,
                        const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)device;
    (void)node;
    (void)capacity;
    if (fault == REFUSES && size > 4)
        memcpy(reason, "tired", 5 < size ? 6 : size);
    return fault != REFUSES;
}

static enum tfm_status compile(void *device, struct tfm_weights *weights,
                               const struct tfm_segment *segment,
                               const struct tfm_capacity *capacity, struct tfm_program *program,
                               struct tfm_error *err)
{
    struct program *p = calloc(1, sizeof *p);

    (void)device;
    (void)capacity;
    ck_assert_ptr_nonnull(p);
    p->segment = *segment;
    ck_assert_uint_le(segment->n_tensors, 8);
    for (uint32_t i = 0; i < segment->n_tensors; i++) {
        struct tfm_weight weight;
        if (segment->tensors[i]->kind != TFM_TENSOR_PARAMETER)
            continue;
        if (tfm__drive_host()->weight(weights, segment->tensors[i], &weight, err) != TFM_STATUS_OK)
            return err->status;
        p->constants[i] = weight.data;
        ck_assert_uint_eq((uintptr_t)weight.data % 2, 1);
    }
    program->impl = p;
    program->workspace = 100;
    for (uint32_t i = 0; i < segment->n_tensors; i++) {
        if (fault == GIVES_OUTPUT_AWAY && segment->tensors[i]->kind == TFM_TENSOR_OUTPUT)
            program->not_written[i] = 1;
    }
    return TFM_STATUS_OK;
}

static void release(void *device, struct tfm_program *program)
{
    (void)device;
    free(program->impl);
}

static enum tfm_status exec_open(void *device, const struct tfm_program *program,
                                 const struct tfm_exec_memory *memory, void **exec,
                                 struct tfm_error *err)
{
    struct exec *e = malloc(sizeof *e);

    (void)device;
    (void)err;
    ck_assert_ptr_nonnull(e);
    *e = (struct exec){program->impl, *memory};
    *exec = e;
    return TFM_STATUS_OK;
}

static void exec_close(void *exec)
{
    free(exec);
}

/* The memory of a tensor as an address, which the reference takes for a buffer. */
static struct tfm_memory address(const struct exec *e, const struct tfm_tensor *tensor)
{
    const int32_t i = e->program->segment.index[tensor->id];
    struct tfm_memory memory = {NULL, 0};

    if (tensor->kind == TFM_TENSOR_PARAMETER) {
        ck_assert_ptr_null(e->memory.memory[i].buffer);
        memory.buffer = (void *)e->program->constants[i];
    } else {
        memory.buffer = at(e->memory.memory[i]);
    }
    return memory;
}

static enum tfm_status exec_run(void *exec, const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct exec *e = exec;

    for (uint32_t n = 0; n < e->program->segment.n_nodes; n++) {
        const struct tfm_node *node = e->program->segment.nodes[n];
        struct tfm_memory inputs[TFM_MAX_INPUTS], output = address(e, node->outputs[0]);
        for (uint32_t i = 0; i < node->n_inputs; i++)
            inputs[i] = address(e, node->inputs[i]);
        const enum tfm_status status =
            tfm__backend_reference.run_node(worker, node, inputs, &output, rows, err);
        if (status != TFM_STATUS_OK || rows->n == 0)
            return status;
        unsigned char *y = output.buffer;
        const size_t bytes = tfm__drive_bytes(node->outputs[0], rows->n);
        switch (fault) {
        case BEFORE_OUTPUT:
            y[-1] ^= 1;
            break;
        case AFTER_OUTPUT:
            y[bytes] ^= 1;
            break;
        case FAR_AFTER_OUTPUT:
            y[bytes + 255] ^= 1;
            break;
        case INPUT_CHANGED:
            ((unsigned char *)inputs[0].buffer)[2] ^= 1;
            break;
        case PAST_WORKSPACE:
            memset(at(e->memory.workspace), 1, 101);
            break;
        case ALLOCATES:
            tfm__drive_host()->free(tfm__drive_host()->alloc(1));
            break;
        default:
            break;
        }
    }
    memset(at(e->memory.workspace), 0, 100);
    return TFM_STATUS_OK;
}

static const struct tfm_backend table = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof table,
    .name = "faulty",
    .version = "0",
    .license = "MIT",
    .alloc = alloc,
    .free = release_buffer,
    .upload = upload,
    .download = download,
    .supports = supports,
    .compile = compile,
    .release = release,
    .exec_open = exec_open,
    .exec_run = exec_run,
    .exec_close = exec_close,
};

/* y = w-scaled rms_norm of x, in [3, 4]; the status of opening or, that being OK, of running it. */
static enum tfm_status tfm__drive_once(unsigned flags, float *y, struct tfm_error *err)
{
    const struct tfm__drive_backend backend = {
        .table = &table, .caps = {.whole_segments = 1}, .name = "faulty"};
    static const int64_t shape[] = {0, 4}, width[] = {4};
    static const int32_t zero[] = {0};
    const struct tfm_rows rows = {3, 1, 0, zero, zero, zero, NULL};
    const struct tfm_capacity capacity = {3, 1, 0};
    float x[12], gamma[4] = {1, 1, 1, 1};
    struct tfm_graph *graph;
    struct tfm__drive_plan *plan = NULL;

    for (int i = 0; i < 12; i++)
        x[i] = 2;
    ck_assert_int_eq(tfm_graph_create(&graph, err), TFM_STATUS_OK);
    struct tfm_tensor *in = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *w = tfm_graph_parameter(graph, "gamma", TFM_DTYPE_F32, 1, width);
    struct tfm_tensor *out = tfm_graph_output(graph, tfm_op_rms_norm(graph, in, w, 0), "y");
    void *data[3];
    data[in->id] = x;
    data[w->id] = gamma;
    data[out->id] = y;
    enum tfm_status status =
        tfm__drive_plan_open(&backend, graph, data, &capacity, flags, &plan, err);
    if (status == TFM_STATUS_OK)
        status = tfm__drive_plan_run(plan, data, &rows, err);
    tfm__drive_plan_close(plan);
    tfm_graph_destroy(graph);
    return status;
}

/* Fault of the driver: it does not see what a backend does wrong. */
START_TEST(faults)
{
    static const struct {
        enum tfm_status status;
        const char *text;
    } want[FAULTS] = {
        [NONE] = {TFM_STATUS_OK, ""},
        [BEFORE_OUTPUT] = {TFM_STATUS_INTERNAL, "-1 from the first of 'y'"},
        [AFTER_OUTPUT] = {TFM_STATUS_INTERNAL, "48 from the first of 'y'"},
        [FAR_AFTER_OUTPUT] = {TFM_STATUS_INTERNAL, "not its output"},
        [INPUT_CHANGED] = {TFM_STATUS_INTERNAL, "2 from the first of 'x'"},
        [PAST_WORKSPACE] = {TFM_STATUS_INTERNAL, "not its output"},
        [ALLOCATES] = {TFM_STATUS_INTERNAL, "allocated 1 times"},
        [GIVES_OUTPUT_AWAY] = {TFM_STATUS_INTERNAL, "gave 'y' away"},
        [REFUSES] = {TFM_STATUS_UNSUPPORTED, "refuses rms_norm: tired"},
    };
    static const unsigned ways[] = {0, TFM__DRIVE_ELEMENT_OFFSETS, TFM__DRIVE_IN_PLACE};

    ck_assert_int_eq(tfm__backend_reference.open(tfm__drive_host(), 0, &worker, NULL),
                     TFM_STATUS_OK);
    fault = (enum fault)_i;
    for (size_t w = 0; w < (fault == INPUT_CHANGED ? 2 : 3); w++) { /* in place it is the output */
        float y[12] = {0};
        struct tfm_error err = {0};
        const enum tfm_status status = tfm__drive_once(ways[w], y, &err);
        const int placed = fault == BEFORE_OUTPUT || fault == AFTER_OUTPUT;
        ck_assert_msg(status == want[_i].status, "way %zu: %s", w, err.text);
        if (ways[w] != TFM__DRIVE_IN_PLACE || !placed)
            ck_assert_msg(strstr(err.text, want[_i].text) != NULL, "way %zu: %s", w, err.text);
        for (int i = 0; i < 12 && status == TFM_STATUS_OK; i++)
            ck_assert(y[i] == 1);
    }
    tfm__backend_reference.close(worker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drive");
    TCase *tcase = tests_case(suite, "drive");

    tcase_add_loop_test(tcase, faults, 0, FAULTS);
    return tests_run(suite);
}
