/* SPDX-License-Identifier: MIT
 * The host table of the driver: counts allocations, splits loops awkwardly, looks weights up by
 * name. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/drive_host.h"

static const size_t MOST = SIZE_MAX / 65536; /* bytes of one block */

static atomic_uint_fast64_t allocations;
static atomic_int_fast64_t blocks;
static atomic_int_fast64_t until_failure = -1; /* calls that still find memory; < 0 = all do */
static atomic_int failed;
static int whole_loops;
static void (*log_sink)(enum tfm_log_level level, const char *backend, const char *text);

uint64_t tfm__drive_allocations(void)
{
    return atomic_load(&allocations);
}

int64_t tfm__drive_blocks(void)
{
    return atomic_load(&blocks);
}

void tfm__drive_fail(int64_t call)
{
    if (call >= 0)
        atomic_store(&failed, 0);
    atomic_store(&until_failure, call);
}

int tfm__drive_failed(void)
{
    return atomic_load(&failed);
}

void tfm__drive_log(void (*sink)(enum tfm_log_level level, const char *backend, const char *text))
{
    log_sink = sink;
}

void tfm__drive_parallel_whole(int whole)
{
    whole_loops = whole;
}

static void *host_alloc(size_t bytes)
{
    const size_t size = bytes ? bytes : 1;
    void *memory = NULL;

    atomic_fetch_add(&allocations, 1);
    if (atomic_load(&until_failure) >= 0 && atomic_fetch_sub(&until_failure, 1) == 0) {
        atomic_store(&failed, 1);
        return NULL;
    }
    /* a sanitizer takes a size that no machine has for a fault of the caller */
    if (size > MOST || posix_memalign(&memory, 64, size) != 0)
        return NULL;
    atomic_fetch_add(&blocks, 1);
    return memset(memory, 0, size);
}

static void host_free(void *memory)
{
    if (memory)
        atomic_fetch_sub(&blocks, 1);
    free(memory);
}

static void host_log(enum tfm_log_level level, const char *backend, const char *text)
{
    if (log_sink)
        log_sink(level, backend, text);
    else if (level <= TFM_LOG_WARN)
        fprintf(stderr, "# %s: %s\n", backend, text);
}

static uint32_t host_threads(void)
{
    return 2;
}

static void host_parallel_for(size_t n, void (*body)(void *context, size_t begin, size_t end),
                              void *context)
{
    const size_t pieces = whole_loops || n < 2 ? 1 : n < 5 ? n : 5;

    for (size_t p = n ? pieces : 0; p-- > 0;) {
        const size_t begin = n * p * p / (pieces * pieces);
        const size_t end = n * (p + 1) * (p + 1) / (pieces * pieces);
        if (begin < end)
            body(context, begin, end);
    }
}

static enum tfm_status host_weight(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                   struct tfm_weight *weight, struct tfm_error *err)
{
    const struct tfm_tensor *known = tfm_graph_find(weights->graph, tensor->name);

    if (!weights->compiling)
        return tfm_error_set(err, TFM_STATUS_INTERNAL, "weight '%s' asked for outside of compile",
                             tensor->name);
    if (!known || !weights->data[known->id])
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "there is no weight '%s'", tensor->name);
    weight->data = weights->data[known->id];
    weight->bytes = (size_t)tfm_tensor_elements(known) / tfm_dtype_info(known->dtype)->block *
                    tfm_dtype_info(known->dtype)->bytes;
    return TFM_STATUS_OK;
}

static void host_weight_taken(struct tfm_weights *weights, const struct tfm_tensor *tensor)
{
    (void)weights;
    (void)tensor;
}

static void *host_private_get(struct tfm_weights *weights)
{
    return weights->private_data;
}

static void host_private_set(struct tfm_weights *weights, void *data, void (*destroy)(void *data))
{
    weights->private_data = data;
    weights->destroy = destroy;
}

static const struct tfm_host host = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof host,
    .alloc = host_alloc,
    .free = host_free,
    .log = host_log,
    .error = tfm_error_set,
    .threads = host_threads,
    .parallel_for = host_parallel_for,
    .dtype_info = tfm_dtype_info,
    .to_f32 = tfm_dtype_to_f32,
    .from_f32 = tfm_dtype_from_f32,
    .weight = host_weight,
    .weight_taken = host_weight_taken,
    .private_get = host_private_get,
    .private_set = host_private_set,
};

const struct tfm_host *tfm__drive_host(void)
{
    return &host;
}
