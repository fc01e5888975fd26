/* SPDX-License-Identifier: MIT
 * Buffers in memory that the backend maps itself: they hold zeros, cost nothing until they are touched, and go
 * when they are released; and those that it fills with zeros. */
#include "tests/opencl/parts.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
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
static size_t memory_of(int column)
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
        size_t i = 0;
        while (i < bytes && data[i] == 0)
            i++;
        ck_assert_msg(i == bytes, "byte %zu of %zu is not zero", i, bytes);
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
    const size_t before = memory_of(PRESENT);
    void *buffer = zeroed(MANY);

    ck_assert_uint_lt(memory_of(PRESENT), before + MANY / 8);
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
                                               TFM__CL_DENSE, &buffer, &clean, NULL),
                         TFM_STATUS_OK);
        ck_assert_int_eq(clean, 1);
        tfm__cl_free(parts_handle(&devices), buffer);
        if (i == 0)
            before = memory_of(ADDRESSES);
    }
    ck_assert_uint_lt(memory_of(ADDRESSES), before + MANY);
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

/* ---- huge pages of sparse buffers ---- */

static const size_t HUGE_PAGE = (size_t)2 << 20;

/* What the system does when it is asked for a huge page in place of the small one that is there; 1 = it makes one. */
static int makes_huge_pages(void)
{
#ifdef MADV_COLLAPSE
    const int collapse = MADV_COLLAPSE;
#else
    const int collapse = 25;
#endif
    unsigned char *memory =
        mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED);
    unsigned char *page = memory + HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE;
    page[0] = 1;
    const size_t before = memory_of(PRESENT);
    const int made = madvise(page, HUGE_PAGE, MADV_HUGEPAGE) == 0 &&
                     madvise(page, HUGE_PAGE, collapse) == 0 &&
                     memory_of(PRESENT) > before + HUGE_PAGE / 2;
    munmap(memory, 2 * HUGE_PAGE);
    return made;
}

static void touch(void *buffer, size_t offset, const void *bytes, size_t n)
{
    ck_assert_int_eq(
        tfm__cl_upload(parts_handle(&devices), bytes, (struct tfm_memory){buffer, offset}, n, NULL),
        TFM_STATUS_OK);
}

/* Faults: a byte costs a huge page at once; what was written is lost when small pages become a huge one; those that
 * nobody touched are made, too; the last are forgotten. */
START_TEST(small_pages_become_huge_ones_and_keep_what_they_hold)
{
    const size_t pages = MANY / HUGE_PAGE, stride = 2 * HUGE_PAGE;
    void *buffer = zeroed(MANY);
    void *const place = tfm__cl_sparse_find(buffer);
    unsigned char *data = malloc(MANY);
    const int huge = makes_huge_pages();

    ck_assert_ptr_nonnull(data);
    ck_assert_ptr_nonnull(place);
    const size_t before = memory_of(PRESENT);
    for (size_t at = stride - 1; at < MANY; at += stride)
        touch(buffer, at, "x", 1);
    ck_assert_uint_lt(memory_of(PRESENT), before + MANY / 8);
    for (size_t i = 0; i < pages; i += 3) /* the last call has one page, and is told of three */
        tfm__cl_sparse_fill(place, 3);
    ck_assert_uint_lt(memory_of(PRESENT), before + MANY / 2 + MANY / 8);
    if (huge)
        ck_assert_uint_gt(memory_of(PRESENT), before + MANY / 2 - MANY / 8);
    ck_assert_int_eq(
        tfm__cl_download(parts_handle(&devices), (struct tfm_memory){buffer, 0}, data, MANY, NULL),
        TFM_STATUS_OK);
    size_t i = 0;
    while (i < MANY && data[i] == (i % stride == stride - 1 ? 'x' : 0))
        i++;
    ck_assert_msg(i == MANY, "byte %zu is %d", i, i < MANY ? data[i] : 0);
    tfm__cl_free(parts_handle(&devices), buffer);
    free(data);
}
END_TEST

/* Faults: buffers of weights, small ones, or those that are gone count as sparse; the others are lost with them. */
START_TEST(sparse_buffers_are_found_while_they_live)
{
    void *buffers[3], *small = zeroed(4096);
    cl_mem dense = NULL;
    int clean = 0;

    ck_assert_int_eq(tfm__cl_buffer_create(parts_handle(&devices), CL_MEM_READ_WRITE, MANY,
                                           TFM__CL_DENSE, &dense, &clean, NULL),
                     TFM_STATUS_OK);
    ck_assert_ptr_null(tfm__cl_sparse_find(dense));
    ck_assert_ptr_null(tfm__cl_sparse_find(small));
    ck_assert_ptr_null(tfm__cl_sparse_find(NULL));
    for (int i = 0; i < 3; i++)
        buffers[i] = zeroed(MANY);
    for (int gone = 0; gone < 3; gone++) {
        static const int order[] = {1, 0, 2}; /* from the middle, the end, the only one */
        tfm__cl_free(parts_handle(&devices), buffers[order[gone]]);
        for (int i = gone + 1; i < 3; i++)
            ck_assert_ptr_nonnull(tfm__cl_sparse_find(buffers[order[i]]));
        ck_assert_ptr_null(tfm__cl_sparse_find(buffers[order[gone]]));
    }
    tfm__cl_free(parts_handle(&devices), dense);
    tfm__cl_free(parts_handle(&devices), small);
}
END_TEST

/* Fault: parameters that are trained lie in small pages for ever. */
START_TEST(what_is_filled_by_an_upload_gets_huge_pages)
{
    const size_t bytes = 1 << 20;
    void *buffer = zeroed(MANY), *data = calloc(1, bytes);

    ck_assert_ptr_nonnull(data);
    if (makes_huge_pages()) {
        const size_t before = memory_of(PRESENT);
        touch(buffer, 0, data, bytes);
        touch(buffer, MANY / 2, data, 1);
        ck_assert_uint_gt(memory_of(PRESENT), before + 2 * HUGE_PAGE - HUGE_PAGE / 2);
    }
    tfm__cl_free(parts_handle(&devices), buffer);
    free(data);
}
END_TEST

/* One attention with a cache of 2 MB for each of its slots. */
enum { SLOTS = 16, CELLS = 16384, DIM = 64 };

static void attend(struct tfm_exec *exec, int32_t slot, int32_t past, int times)
{
    const int32_t zero = 0;
    const struct tfm_rows rows = {1, 1, 0, &slot, &zero, &past, NULL};
    struct tfm_error err = {0};

    while (times-- > 0)
        ck_assert_msg(tfm_exec_run(exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* Faults: short texts take the memory of whole caches; long ones stay in small pages. */
START_TEST(caches_take_huge_pages_when_texts_are_long)
{
    static float vector[DIM];
    const int64_t row[] = {0, 1, DIM}, state[] = {SLOTS, CELLS, 1, DIM};
    const struct tfm_capacity capacity = {1, 1, 1};
    const size_t all = (size_t)2 * SLOTS * CELLS * DIM * 2;
    struct tfm_graph *graph = NULL;
    struct tfm_weights *weights = NULL;
    struct tfm_plan *plan = NULL;
    struct tfm_exec *exec = NULL;
    struct tfm_error err = {0};
    const int huge = makes_huge_pages();

    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, NULL), TFM_STATUS_OK);
    tfm_graph_output(
        graph,
        tfm_op_gqa_attention(graph, tfm_graph_input(graph, "q", TFM_DTYPE_F32, 3, row),
                             tfm_graph_input(graph, "k", TFM_DTYPE_F32, 3, row),
                             tfm_graph_input(graph, "v", TFM_DTYPE_F32, 3, row),
                             tfm_graph_state(graph, "k_cache", TFM_DTYPE_F16, 4, state),
                             tfm_graph_state(graph, "v_cache", TFM_DTYPE_F16, 4, state), 0),
        "y");
    ck_assert_msg(tfm_plan_compile(graph, weights, devices.device, 1, &capacity, &plan, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_exec_create(plan, &exec, &err) == TFM_STATUS_OK, "%s", err.text);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(tfm_exec_bind(exec, (const char *[]){"q", "k", "v", "y"}[i], vector,
                                       sizeof vector, NULL),
                         TFM_STATUS_OK);
    attend(exec, 0, 0, 1);
    const size_t before = memory_of(PRESENT);
    for (int32_t slot = 0; slot < SLOTS; slot++)
        attend(exec, slot, 0, 1);
    ck_assert_uint_lt(memory_of(PRESENT), before + all / 8);
    attend(exec, 0, 300, 2 * SLOTS);
    if (huge)
        ck_assert_uint_gt(memory_of(PRESENT), before + all / 2);
    tfm_exec_destroy(exec);
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
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
    tcase_add_test(tcase, small_pages_become_huge_ones_and_keep_what_they_hold);
    tcase_add_test(tcase, sparse_buffers_are_found_while_they_live);
    tcase_add_test(tcase, what_is_filled_by_an_upload_gets_huge_pages);
    tcase_add_test(tcase, caches_take_huge_pages_when_texts_are_long);
    return tests_run(suite);
}
