/* SPDX-License-Identifier: MIT
 * Large buffers of a processor lie in memory that we map ourselves, in huge pages. A token reads all weights and all
 * keys and values once: in pages of 4 KB each 4,096 bytes cost a walk through the page tables, and the processor
 * fetches ahead no further than a page, so that one thread reads 18 GB/s instead of 29. And the memory holds zeros
 * that cost nothing until they are touched. The buffer owns its memory: it goes when OpenCL lets the buffer go. */
#include <stdint.h>
#include <sys/mman.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Below LEAST there is little to gain, and what is not used yet would become resident with what is. */
enum { HUGE_PAGE = 2 << 20, LEAST = 16 << 20 };

/* In front of the buffer, in a page of its own. */
struct head {
    size_t mapped; /* bytes from here on */
};

static void CL_CALLBACK unmap(cl_mem memory, void *data)
{
    const struct head *head = data;

    (void)memory;
    munmap(data, head->mapped);
}

/* NULL when there is none. *head is what `unmap` wants. */
static void *map(size_t bytes, struct head **head)
{
    size_t mapped;

    /* as much as is added is never touched, so it costs addresses only */
    if (tfm__align_size(bytes, HUGE_PAGE, &mapped) ||
        tfm__add_size(mapped, (size_t)2 * HUGE_PAGE, &mapped))
        return NULL;
    unsigned char *memory =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    unsigned char *buffer = memory + 2 * (size_t)HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    (void)madvise(buffer, mapped - (size_t)(buffer - memory), MADV_HUGEPAGE); /* a wish */
#endif
    *head = (struct head *)(void *)memory;
    (*head)->mapped = mapped;
    return buffer;
}

enum tfm_status tfm__cl_buffer_create(const struct tfm__cl_device *d, cl_mem_flags flags,
                                      size_t bytes, cl_mem *made, int *zeroed,
                                      struct tfm_error *err)
{
    struct head *head = NULL;
    void *memory = d->kind == TFM_DEVICE_CPU && bytes >= LEAST ? map(bytes, &head) : NULL;
    cl_int code = CL_SUCCESS;

    const cl_mem buffer = clCreateBuffer(d->context, memory ? flags | CL_MEM_USE_HOST_PTR : flags,
                                         bytes, memory, &code);
    if (code != CL_SUCCESS) {
        if (memory)
            munmap(head, head->mapped);
        return tfm__cl_fail(d->host, err, "clCreateBuffer", code);
    }
    if (memory) {
        code = clSetMemObjectDestructorCallback(buffer, unmap, head);
        if (code != CL_SUCCESS) {
            const size_t mapped = head->mapped;
            (void)clReleaseMemObject(buffer);
            munmap(head, mapped);
            return tfm__cl_fail(d->host, err, "clSetMemObjectDestructorCallback", code);
        }
    }
    *zeroed = memory != NULL;
    *made = buffer;
    return TFM_STATUS_OK;
}
