/* SPDX-License-Identifier: MIT
 * A complete table with one fault: each module is this file with one macro set (see plugins.am). */
#include "tests/plugins/faults.h"
#include "tests/plugins/stub.h"

#ifndef BAD_SYMBOL
#define BAD_SYMBOL tfm_backend_v1
#endif
#ifndef BAD_MAJOR
#define BAD_MAJOR TFM_BACKEND_ABI_MAJOR
#endif
#ifndef BAD_SIZE
#define BAD_SIZE sizeof(struct tfm_backend)
#endif
#ifndef BAD_NAME
#define BAD_NAME "bad"
#endif
#ifndef BAD_PROBE
#define BAD_PROBE stub_probe
#endif
#ifndef BAD_CAPS
#define BAD_CAPS stub_caps
#endif
#ifndef BAD_SUPPORTS
#define BAD_SUPPORTS stub_supports
#endif
#ifndef BAD_RUN_NODE
#define BAD_RUN_NODE stub_run_node
#endif
#ifndef BAD_COMPILE
#define BAD_COMPILE NULL
#endif

#ifdef BAD_CONSTRUCTOR
__attribute__((constructor)) static void construct(void)
{
    leave_trace();
    BAD_CONSTRUCTOR;
}
#endif

extern const struct tfm_backend BAD_SYMBOL;
const struct tfm_backend BAD_SYMBOL = {
    .abi_major = BAD_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = BAD_SIZE,
    .name = BAD_NAME,
    .version = "1",
    .license = "MIT",
    .probe = BAD_PROBE,
    .open = stub_open,
    .close = stub_close,
    .caps = BAD_CAPS,
    .alloc = stub_alloc,
    .free = stub_free,
    .upload = stub_upload,
    .download = stub_download,
    .supports = BAD_SUPPORTS,
    .run_node = BAD_RUN_NODE,
    .compile = BAD_COMPILE,
};
