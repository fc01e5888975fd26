/* SPDX-License-Identifier: MIT
 * A token reads all weights and all keys and values once. In pages of 4 KB each 4,096 bytes cost a walk through the
 * page tables, and the processor fetches ahead no further than a page: one thread then reads 18 GB/s instead of
 * 29. OpenCL has no word for pages, but a buffer of a CPU device can be mapped, and the memory under the mapping
 * is the buffer itself, or a copy, where the wish does no harm. */
#include "backends/opencl/huge_pages.h"

#include <sys/mman.h>

/* Below LEAST there is little to gain, and what is not used yet would become resident with what is. */
#define PAGE  ((uintptr_t)2 << 20)
#define LEAST ((size_t)16 << 20)

void tfm__cl_huge_pages(const struct tfm__cl_device *d, cl_mem buffer, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    cl_int code = CL_SUCCESS;

    if (d->kind != TFM_DEVICE_CPU || bytes < LEAST)
        return;
    void *at = clEnqueueMapBuffer(d->queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                  bytes, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return;
    const uintptr_t begin = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = ((uintptr_t)at + bytes) / PAGE * PAGE;
    (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    if (clEnqueueUnmapMemObject(d->queue, buffer, at, 0, NULL, NULL) == CL_SUCCESS)
        (void)clFinish(d->queue);
#else
    (void)d, (void)buffer, (void)bytes;
#endif
}
