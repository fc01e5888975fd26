/* SPDX-License-Identifier: MIT
 * What the library gives a plugin: one constant table. */
#include <tfm/device.h>

#include "lib/core/alloc.h"
#include "lib/core/host.h"
#include "lib/core/log.h"
#include "lib/core/pool.h"
#include "lib/core/weights.h"

static const struct tfm_host host = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof host,
    .alloc = tfm__alloc,
    .free = tfm__free,
    .log = tfm__log_text,
    .error = tfm_error_set,
    .threads = tfm_threads,
    .parallel_for = tfm__parallel_for,
    .dtype_info = tfm_dtype_info,
    .to_f32 = tfm_dtype_to_f32,
    .from_f32 = tfm_dtype_from_f32,
    .weight = tfm__weights_host_get,
    .weight_taken = tfm__weights_host_taken,
    .private_get = tfm__weights_private_get,
    .private_set = tfm__weights_private_set,
};

const struct tfm_host *tfm__host(void)
{
    return &host;
}
