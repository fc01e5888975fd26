/* SPDX-License-Identifier: MIT
 * Buffers in memory that the backend maps itself: they hold zeros, cost nothing until they are touched, and go
 * when they are released; and those that it fills with zeros. */
#include "tests/opencl/parts.h"

#include <stdio.h>
#include <unistd.h>

static const size_t MANY = (size_t)64 << 20;

static struct test_devices devices;

static void setup(void)
{
    parts_open(&devices);
}

static void teardown(void)
{
    test_devices_close(&devices);
}

enum { ADDRESSES, PRESENT }; /* columns of /proc/self/statm */

/* Bytes of this process. */
static size_t memory(int column)
{
    FILE *file = fopen("/proc/self/statm", "re");
    size_t pages[2] = {0, 0};

    ck_assert(file && fscanf(file, "%zu %zu", &pages[ADDRESSES], &pages[PRESENT]) == 2);
    fclose(file);
    return pages[column] * (size_t)sysconf(_SC_PAGESIZE);
}

static void *zeroed(size_t bytes)
{
    struct tfm_error err = {0};
    void *buffer = NULL;

    ck_assert_msg(tfm__cl_alloc_zeroed(parts_handle(&devices), bytes, &buffer, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    return buffer;
}

/* Fault: what another buffer held before is still there. */
START_TEST(it_holds_zeros)
{
    static const size_t sizes[] = {1, 4095, 4097, (3 << 20) + 5, 16 << 20, (16 << 20) + 5};
    const size_t bytes = sizes[_i];
    unsigned char *data = malloc(bytes);

    ck_assert_ptr_nonnull(data);
    for (int round = 0; round < 3; round++) {
        void *buffer = zeroed(bytes);
        const struct tfm_memory at = {buffer, 0};
        memset(data, 0xA5, bytes);
        ck_assert_int_eq(tfm__cl_download(parts_handle(&devices), at, data, bytes, NULL),
                         TFM_STATUS_OK);
        for (size_t i = 0; i < bytes; i++)
            ck_assert_msg(data[i] == 0, "byte %zu of %zu is %u", i, bytes, data[i]);
        memset(data, 0xA5, bytes);
        ck_assert_int_eq(tfm__cl_upload(parts_handle(&devices), data, at, bytes, NULL),
                         TFM_STATUS_OK);
        tfm__cl_free(parts_handle(&devices), buffer);
    }
    free(data);
}
END_TEST

/* Fault: the zeros are written, so that a cache of which little is used is all there. */
START_TEST(nobody_pays_for_what_is_not_touched)
{
    const size_t before = memory(PRESENT);
    void *buffer = zeroed(MANY);

    ck_assert_uint_lt(memory(PRESENT), before + MANY / 8);
    tfm__cl_free(parts_handle(&devices), buffer);
}
END_TEST

/* Fault: a buffer is released, its memory is not. */
START_TEST(memory_goes_with_the_buffer)
{
    size_t before = 0;

    for (int i = 0; i < 20; i++) {
        cl_mem buffer = NULL;
        int clean = 0;
        ck_assert_int_eq(tfm__cl_buffer_create(parts_handle(&devices), CL_MEM_READ_WRITE, MANY,
                                               &buffer, &clean, NULL),
                         TFM_STATUS_OK);
        ck_assert_int_eq(clean, 1);
        tfm__cl_free(parts_handle(&devices), buffer);
        if (i == 0)
            before = memory(ADDRESSES);
    }
    ck_assert_uint_lt(memory(ADDRESSES), before + MANY);
}
END_TEST

/* Fault: more than a device allows is tried all the same, or the error lacks a number. */
START_TEST(too_much_is_refused)
{
    struct tfm__cl_device *d = parts_handle(&devices);
    struct tfm_error err = {0};
    void *buffer = NULL;

    d->max_alloc = 1000;
    ck_assert_int_eq(tfm__cl_alloc_zeroed(d, 1001, &buffer, &err), TFM_STATUS_NOMEM);
    ck_assert_ptr_null(buffer);
    ck_assert_msg(strstr(err.text, "1001") && strstr(err.text, "1000"), "%s", err.text);
}
END_TEST

/* Fault: where memory is not ours (a GPU), nobody fills it. */
START_TEST(others_fill_it)
{
    struct tfm__cl_device *d = parts_handle(&devices);
    unsigned char data[1000];
    void *buffer = NULL;

    d->kind = TFM_DEVICE_GPU;
    for (int round = 0; round < 3; round++) {
        memset(data, 0xA5, sizeof data);
        ck_assert_int_eq(tfm__cl_alloc_zeroed(d, sizeof data, &buffer, NULL), TFM_STATUS_OK);
        ck_assert_int_eq(
            tfm__cl_download(d, (struct tfm_memory){buffer, 0}, data, sizeof data, NULL),
            TFM_STATUS_OK);
        for (size_t i = 0; i < sizeof data; i++)
            ck_assert_uint_eq(data[i], 0);
        memset(data, 0xA5, sizeof data);
        ck_assert_int_eq(tfm__cl_upload(d, data, (struct tfm_memory){buffer, 0}, sizeof data, NULL),
                         TFM_STATUS_OK);
        tfm__cl_free(d, buffer);
    }
    d->kind = TFM_DEVICE_CPU;
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("host memory");
    TCase *tcase = tests_case(suite, "buffers");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, it_holds_zeros, 0, 6);
    tcase_add_test(tcase, nobody_pays_for_what_is_not_touched);
    tcase_add_test(tcase, memory_goes_with_the_buffer);
    tcase_add_test(tcase, too_much_is_refused);
    tcase_add_test(tcase, others_fill_it);
    return tests_run(suite);
}
