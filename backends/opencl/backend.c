/* SPDX-License-Identifier: MIT
 * The opencl backend: its table, and what supports() checks for every op. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

#include "backends/opencl/counters.h"
#include "backends/opencl/doctor.h"
#include "backends/opencl/internal.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/tune.h"

static const struct tfm__cl_op *const ops[TFM_OP_LIMIT] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    [TFM_OP_##NAME] = &tfm__cl_op_##stem,
#include <tfm/ops.def>
#undef TFM_OP
};

const struct tfm__cl_op *tfm__cl_op(enum tfm_op op)
{
    return (unsigned)op < TFM_OP_LIMIT && ops[op] && ops[op]->supports ? ops[op] : NULL;
}

/* ---- supports ---- */

int tfm__cl_refuse(char *reason, size_t size, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (size > 0)
        vsnprintf(reason, size, format, list);
    va_end(list);
    return 0;
}

static const char *dtype_name(const struct tfm__cl_device *d, const struct tfm_tensor *tensor)
{
    const struct tfm_dtype_info *info = d->host->dtype_info(tensor->dtype);
    return info ? info->name : "?";
}

int tfm__cl_is_activation(const struct tfm__cl_device *d, const struct tfm_tensor *tensor,
                          char *reason, size_t size)
{
    if (tensor->dtype == TFM_DTYPE_F32 || tensor->dtype == TFM_DTYPE_F16 ||
        tensor->dtype == TFM_DTYPE_BF16)
        return 1;
    return tfm__cl_refuse(reason, size, "'%s' is %s; the kernel takes f32, f16 and bf16",
                          tensor->name ? tensor->name : "", dtype_name(d, tensor));
}

uint32_t tfm__cl_vectors(const struct tfm_tensor *tensor)
{
    uint32_t n = 1;

    for (int32_t i = 1; i < tensor->rank - 1; i++)
        n *= (uint32_t)tensor->shape[i];
    return n;
}

int tfm__cl_vectors_fit(const struct tfm_tensor *tensor, const struct tfm_capacity *capacity,
                        char *reason, size_t size)
{
    const uint32_t rows = (uint32_t)tfm_tensor_rows_most(tensor, capacity);

    if ((uint64_t)rows * tfm__cl_vectors(tensor) <= INT_MAX)
        return 1;
    return tfm__cl_refuse(reason, size, "%u rows of '%s' have more vectors than 31 bits count",
                          rows, tensor->name ? tensor->name : "");
}

int tfm__cl_elements_fit(const struct tfm_tensor *tensor, char *reason, size_t size)
{
    int64_t elements;

    if (!__builtin_mul_overflow(tensor->shape[0], tfm_tensor_row_elements(tensor), &elements) &&
        elements <= INT_MAX)
        return 1;
    return tfm__cl_refuse(reason, size, "'%s' has more elements than 31 bits count",
                          tensor->name ? tensor->name : "");
}

/* What holds for a tensor of any op: its row is counted in 32 bits, and there is no F64. */
static int tensor_fits(const struct tfm_tensor *tensor, char *reason, size_t size)
{
    int64_t elements = 1;

    if (tensor->dtype == TFM_DTYPE_F64)
        return tfm__cl_refuse(reason, size, "'%s' is f64; the kernels compute in f32",
                              tensor->name ? tensor->name : "");
    for (int32_t i = 0; i < tensor->rank; i++) {
        if (i == 0 && tensor->extent != TFM_EXTENT_FIXED)
            continue;
        if (tensor->shape[i] > INT_MAX ||
            (i > 0 && __builtin_mul_overflow(elements, tensor->shape[i], &elements)))
            return tfm__cl_refuse(reason, size, "an extent of '%s' does not fit 31 bits",
                                  tensor->name ? tensor->name : "");
    }
    if (elements > INT_MAX / 8) /* 8 bytes an element at most: bytes of a row fit too */
        return tfm__cl_refuse(reason, size, "a row of '%s' has more than %d elements",
                              tensor->name ? tensor->name : "", INT_MAX / 8);
    return 1;
}

static int32_t supports(void *device, const struct tfm_node *node,
                        const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const struct tfm__cl_device *d = device;
    const struct tfm__cl_op *op = tfm__cl_op(node->op);

    if (size > 0)
        reason[0] = 0;
    if (!op)
        return tfm__cl_refuse(reason, size, "there is no kernel for op %d", (int)node->op);
    if (capacity->rows > INT_MAX || capacity->out_rows > INT_MAX ||
        capacity->sequences > INT_MAX / 4)
        return tfm__cl_refuse(reason, size, "more rows than 31 bits count");
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && !tensor_fits(node->inputs[i], reason, size))
            return 0;
    }
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!tensor_fits(node->outputs[i], reason, size))
            return 0;
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && (op->panels & ~op->trains) >> i & 1 &&
            tfm__cl_is_trainable(d, node->inputs[i]))
            return tfm__cl_refuse(reason, size, "no kernel takes '%s' while it is trained",
                                  node->inputs[i]->name ? node->inputs[i]->name : "");
    }
    return op->supports(d, node, capacity, reason, size);
}

/* ---- counters ---- */

static uint64_t sgemm_calls(void)
{
    return atomic_load(&tfm__cl_sgemm_calls);
}

static uint64_t kernel_launches(void)
{
    return atomic_load(&tfm__cl_kernel_launches);
}

static uint64_t persistent_runs(void)
{
    return atomic_load(&tfm__cl_persistent_runs);
}

static uint64_t persistent_bails(void)
{
    return atomic_load(&tfm__cl_persistent_bails);
}

static const void *extension(void *device, const char *name)
{
    static const struct tfm_opencl_counters counters = {
        .struct_size = sizeof counters,
        .sgemm_calls = sgemm_calls,
        .kernel_launches = kernel_launches,
        .persistent_runs = persistent_runs,
        .persistent_bails = persistent_bails,
    };

    if (strcmp(name, TFM_TUNE) == 0)
        return device ? tfm__cl_tune(device) : NULL;
    if (strcmp(name, TFM_PROFILE_EXTENSION) == 0)
        return &tfm__cl_profile_table;
    if (strcmp(name, TFM_NOTES_EXTENSION) == 0)
        return &tfm__cl_notes;
    if (strcmp(name, TFM_DOCTOR) == 0)
        return &tfm__cl_doctor;
    if (strcmp(name, TFM_OPENCL_INTEROP) == 0)
        return &tfm__cl_interop;
    return strcmp(name, TFM_OPENCL_COUNTERS) == 0 ? &counters : NULL;
}

const struct tfm_backend tfm_backend_v1 = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof(struct tfm_backend),
    .name = "opencl",
    .version = PACKAGE_VERSION,
    .license = "MIT",
    .probe = tfm__cl_probe,
    .open = tfm__cl_open,
    .close = tfm__cl_close,
    .caps = tfm__cl_caps,
    .alloc = tfm__cl_guard_alloc,
    .free = tfm__cl_free,
    .alloc_zeroed = tfm__cl_guard_alloc_zeroed,
    .upload = tfm__cl_guard_upload,
    .download = tfm__cl_guard_download,
    .copy = tfm__cl_guard_copy,
    .supports = supports,
    .compile = tfm__cl_guard_compile,
    .release = tfm__cl_release,
    .exec_open = tfm__cl_guard_exec_open,
    .exec_run = tfm__cl_guard_exec_run,
    .exec_close = tfm__cl_exec_close,
    .sync = tfm__cl_guard_sync,
    .extension = extension,
};
