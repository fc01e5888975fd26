/* SPDX-License-Identifier: MIT
 * For a test program that wants a shared object of tests/opencl/ in front of libOpenCL: it starts itself
 * again with the object preloaded. */
#ifndef TESTS_OPENCL_PRELOAD_H
#define TESTS_OPENCL_PRELOAD_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* name: "faults" for tests/opencl/.libs/faults.so. Returns only on failure, with the exit code. */
static inline int tests_preload(const char *name, char **argv)
{
    const char *build = getenv("TFM_TEST_BUILDDIR");
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/tests/opencl/.libs/%s.so", build ? build : ".", name);
    if (access(path, R_OK) || getenv("TFM_TEST_PRELOADED")) {
        fprintf(stderr, "%s is missing or cannot be preloaded\n", path);
        return 99;
    }
#ifdef __SANITIZE_ADDRESS__ /* it wants to be the first library, which the preloaded one is */
    char options[1024];
    const char *given = getenv("ASAN_OPTIONS");
    snprintf(options, sizeof options, "%s:verify_asan_link_order=0", given ? given : "");
    setenv("ASAN_OPTIONS", options, 1);
#endif
    setenv("TFM_TEST_PRELOADED", "1", 1);
    setenv("LD_PRELOAD", path, 1);
    execv("/proc/self/exe", argv);
    perror("/proc/self/exe");
    return 99;
}

#endif
