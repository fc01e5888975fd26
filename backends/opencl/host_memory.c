/* SPDX-License-Identifier: MIT
 * Buffers of a processor lie in memory that we map ourselves: it holds zeros that cost nothing until they
 * are touched, and large pages spare most of the page faults of a pool of weights. The buffer owns its
 * memory: it goes when OpenCL lets the buffer go. */
#include <stdint.h>
#include <sys/mman.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

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
static void *map(size_t bytes, enum tfm__cl_pages pages, struct head **head)
{
    const size_t align = pages == TFM__CL_PAGES_LARGE ? LARGE_PAGE : PAGE;
    size_t mapped;

    /* as much as is added is never touched, so it costs addresses only */
    if (tfm__align_size(bytes, align, &mapped) || tfm__add_size(mapped, (size_t)2 * align, &mapped))
        return NULL;
    unsigned char *memory =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    unsigned char *buffer = memory + align + (align - (uintptr_t)memory % align) % align;
    if (pages == TFM__CL_PAGES_LARGE)
        (void)madvise(buffer, mapped - (size_t)(buffer - memory), MADV_HUGEPAGE);
    *head = (struct head *)(void *)memory;
    (*head)->mapped = mapped;
    return buffer;
}

enum tfm_status tfm__cl_buffer_create(const struct tfm__cl_device *d, cl_mem_flags flags,
                                      size_t bytes, enum tfm__cl_pages pages, cl_mem *made,
                                      int *zeroed, struct tfm_error *err)
{
    struct head *head = NULL;
    void *memory = d->kind == TFM_DEVICE_CPU ? map(bytes, pages, &head) : NULL;
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
