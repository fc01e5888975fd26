/* SPDX-License-Identifier: MIT
 * A layer between this process and libOpenCL, preloaded: it counts calls and objects, lets the k-th call
 * (or every call of a name) fail, and can hide what a device has. */
#ifndef TESTS_OPENCL_FAULTS_H
#define TESTS_OPENCL_FAULTS_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

/* What is counted; an object counts for each reference. */
enum fault_kind {
    FAULT_CONTEXT,
    FAULT_QUEUE,
    FAULT_MEMORY,
    FAULT_PROGRAM,
    FAULT_KERNEL,
    FAULT_EVENT,
    FAULT_DEVICE, /* sub-devices */
    FAULT_KINDS,
};

struct fault {
    unsigned long
        at; /* number of the call that fails, from 1 since the last arm; 0 = none by number */
    const char *call; /* instead: every call of this name */
    cl_int code;
    int lasting; /* from `at` on every call that needs a live device fails, until a context is created */
    cl_device_info info; /* clGetDeviceInfo answers `value` to this question; 0 = none */
    cl_ulong value;
};

struct fault_layer {
    void (*arm)(const struct fault *fault); /* NULL = no fault from here on; counts calls from 0 */
    unsigned long (*calls)(void);           /* since the last arm */
    const char *(*struck)(void); /* name of the first call that failed; NULL = none did */
    long (*live)(enum fault_kind kind);
    int (*covers)(const char *name); /* 1 if calls of this name come through the layer */
};

/* The symbol to look for with dlsym: `const struct fault_layer fault_layer`. */
extern const struct fault_layer fault_layer;

#endif
