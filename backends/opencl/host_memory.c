/* SPDX-License-Identifier: MIT
 * Large buffers of a processor lie in memory that we map ourselves, in huge pages. A token reads all weights and all
 * keys and values once: in pages of 4 KB each 4,096 bytes cost a walk through the page tables, and the processor
 * fetches ahead no further than a page, so that one thread reads 18 GB/s instead of 29. And the memory holds zeros
 * that cost nothing until they are touched. But a short text touches little of each layer's cache, and the system
 * would clear 2 MB for it, or wait until its host gives them: so caches begin with small pages, and get huge ones a
 * few at a time when a text is long. The buffer owns its memory: it goes when OpenCL lets the buffer go. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* asm-generic/mman-common.h, since Linux 6.1 */
#endif

/* Below LEAST there is little to gain, and what is not used yet would become resident with what is. */
enum { HUGE_PAGE = 2 << 20, LEAST = 16 << 20 };

/* Small pages of the smallest kind that a huge one has. */
enum { SMALL_PAGES = HUGE_PAGE / 4096 };

/* In front of the buffer, in a page of its own. */
struct head {
    size_t mapped; /* bytes from here on */
    unsigned char *buffer;
    size_t bytes; /* of it, whole huge pages */
    cl_mem owner;
    atomic_size_t dense;       /* so many bytes at its begin were seen to; it may count further */
    struct head *next, **link; /* sparse buffers; link = NULL for others */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct head *sparse; /* under the lock */

static void CL_CALLBACK unmap(cl_mem memory, void *data)
{
    struct head *head = data;

    (void)memory;
    pthread_mutex_lock(&lock);
    if (head->link) {
        *head->link = head->next;
        if (head->next)
            head->next->link = head->link;
    }
    pthread_mutex_unlock(&lock);
    munmap(data, head->mapped);
}

static void want_huge(const struct head *head)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(head->buffer, head->bytes, MADV_HUGEPAGE); /* a wish */
#else
    (void)head;
#endif
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
    *head = (struct head *)(void *)memory;
    **head = (struct head){.mapped = mapped, .buffer = buffer};
    (void)tfm__align_size(bytes, HUGE_PAGE, &(*head)->bytes);
    return buffer;
}

/* ---- sparse buffers ---- */

static void add_sparse(struct head *head, cl_mem owner)
{
    pthread_mutex_lock(&lock);
    head->owner = owner;
    head->next = sparse;
    head->link = &sparse;
    if (sparse)
        sparse->link = &head->next;
    sparse = head;
    pthread_mutex_unlock(&lock);
}

void *tfm__cl_sparse_find(cl_mem buffer)
{
    pthread_mutex_lock(&lock);
    struct head *head = sparse;
    while (head && head->owner != buffer)
        head = head->next;
    pthread_mutex_unlock(&lock);
    return head;
}

/* Small pages that are there become one huge page; where none is there, the first touch makes one. */
static void collapse(unsigned char *page)
{
    unsigned char there[SMALL_PAGES] = {0};
    int any = 0;

    if (mincore(page, HUGE_PAGE, there) != 0)
        return;
    for (size_t i = 0; i < SMALL_PAGES; i++)
        any |= there[i] & 1;
    /* Linux before 6.1 cannot do it at once: its daemon does, later */
    if (any)
        (void)madvise(page, HUGE_PAGE, MADV_COLLAPSE);
}

void tfm__cl_sparse_fill(void *place, size_t pages)
{
    struct head *head = place;

    if (atomic_load_explicit(&head->dense, memory_order_relaxed) >= head->bytes)
        return;
    const size_t begin = atomic_fetch_add(&head->dense, pages * HUGE_PAGE);
    if (begin == 0)
        want_huge(head);
    for (size_t at = begin; at < begin + pages * HUGE_PAGE && at < head->bytes; at += HUGE_PAGE)
        collapse(head->buffer + at);
}

void tfm__cl_sparse_used(cl_mem buffer)
{
    const struct head *head = tfm__cl_sparse_find(buffer);

    if (head)
        want_huge(head);
}

/* ---- buffers ---- */

enum tfm_status tfm__cl_buffer_create(const struct tfm__cl_device *d, cl_mem_flags flags,
                                      size_t bytes, enum tfm__cl_filling filling, cl_mem *made,
                                      int *zeroed, struct tfm_error *err)
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
        if (filling == TFM__CL_SPARSE)
            add_sparse(head, buffer);
        else
            want_huge(head);
    }
    *zeroed = memory != NULL;
    *made = buffer;
    return TFM_STATUS_OK;
}
