/* SPDX-License-Identifier: MIT
 * A backend inside the test program: it computes `add` for F32 alone, its buffers are no host addresses
 * (so that the core must copy), and it can be told to fail. Registered from memory. It takes memory of the
 * program: "memory.interop-1". */
#ifndef TESTS_CORE_MEMORY_BACKEND_H
#define TESTS_CORE_MEMORY_BACKEND_H

#include <tfm/backend.h>

extern const struct tfm_backend memory_backend; /* name "memory" */

#define MEMORY_INTEROP "memory.interop-1" /* objects: struct memory_backend_objects */

struct memory_backend_objects {
    const char *name;
};

struct memory_backend_control {
    int fail_runs;    /* this many runs fail from now on */
    size_t max_alloc; /* caps; 0 = no limit */
    unsigned live;    /* buffers alive */
    unsigned runs;    /* nodes computed */
    size_t largest;   /* largest buffer asked for */
    uint32_t access;  /* TFM_ACCESS_* that the core asked for last */
    int refuse_takes; /* this many from now on */
};
extern struct memory_backend_control memory_backend_control;

#endif
