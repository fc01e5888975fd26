/* SPDX-License-Identifier: MIT
 * The devices that a test program runs on: one backend, strict, so that nothing can fall back. Cases that
 * run on several backends set `test_backend` first; tests/x/x_cases.c holds them, with a main for each
 * backend. */
#ifndef TESTS_DEVICES_H
#define TESTS_DEVICES_H

#include <check.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/device.h>

#include "tests/skip.h"

#ifndef __has_feature /* clang's way to say what gcc says with __SANITIZE_ADDRESS__ */
#define __has_feature(x) 0
#endif

static const char *test_backend = "opencl";

struct test_devices {
    struct tfm_registry *registry;
    struct tfm_device *device[2];
    size_t n;
};

/* OpenCL tests take PoCL by name, also where a GPU is present. */
static inline enum tfm_status test_devices_try(struct test_devices *d, struct tfm_error *err)
{
    const char *spec =
        strcmp(test_backend, "opencl") ? test_backend : "opencl:Portable Computing Language";
    memset(d, 0, sizeof *d);
    enum tfm_status status = tfm_registry_create(NULL, 0, &d->registry, err);
    if (status == TFM_STATUS_OK)
        status = tfm_devices_open(d->registry, spec, 1, d->device, 2, &d->n, err);
    return status;
}

static inline void test_devices_close(struct test_devices *d)
{
    for (size_t i = 0; i < d->n; i++)
        tfm_device_release(d->device[i]);
    tfm_registry_destroy(d->registry);
}

/* Inside a test: fails it when they cannot be had. */
static inline void test_devices_open(struct test_devices *d)
{
    struct tfm_error err = {0};
    ck_assert_msg(test_devices_try(d, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(d->n, 1);
    ck_assert_str_eq(tfm_device_backend(d->device[0]), test_backend);
}

/* For tests_ask: can the backend be used here? Says why not on stderr. */
static inline int test_devices_present(void)
{
    struct test_devices d;
    struct tfm_error err = {0};
    int present = test_devices_try(&d, &err) == TFM_STATUS_OK;
    if (!present)
        fprintf(stderr, "%s\n", err.text);
    test_devices_close(&d);
    return present;
}

/* The real model, or NULL when there is none or this build is too slow for it. */
static inline const char *test_model_path(void)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    return NULL;
#endif
    const char *path = getenv("TFM_TEST_MODEL");
    if (!path)
        path = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
    return access(path, R_OK) == 0 ? path : NULL;
}

#endif
