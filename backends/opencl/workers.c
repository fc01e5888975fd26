/* SPDX-License-Identifier: MIT
 * A scheduler wakes the two threads of a launch where they slept last. If that is one processor, the second waits
 * there behind the first for a time slice, some milliseconds, while the other processor idles: a part of a
 * persistent kernel is then never there in time, and a short launch takes twice as long. So each thread is bound to
 * a processor of its own. OpenCL has no word for its threads, but runs native kernels on them: one for each, which
 * wait for each other and tell who they are. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_COUNT */
#endif
#include "backends/opencl/workers.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/opencl/internal.h"

/* Threads that are bound at most, and how long they wait until all are there. */
enum { WORKERS = 64, PATIENCE_MS = 50 };

/* The threads belong to the process: all its devices share them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bound {
    uint32_t holders, n; /* devices that want them bound; threads that are */
    int lost;            /* a native kernel may still begin: no more of them */
    pid_t ids[WORKERS];
    cpu_set_t before[WORKERS];
} bound;

/* What the native kernels of a meeting share. Static, since one whose end could not be waited for may use it at
 * any time. */
static struct meeting {
    atomic_uint arrived;
    uint32_t n;
    pid_t ids[WORKERS];
} meeting;

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void CL_CALLBACK meet(void *arguments)
{
    struct meeting *m = &meeting;
    const double end = milliseconds() + PATIENCE_MS;
    const unsigned i = atomic_fetch_add(&m->arrived, 1);

    (void)arguments;
    if (i < m->n)
        m->ids[i] = (pid_t)syscall(SYS_gettid);
    while (atomic_load(&m->arrived) < m->n && milliseconds() < end)
        sched_yield();
}

/* Each thread takes one kernel, since none of them ends before all run. NULL, or why not. */
static const char *gather(const struct tfm__cl_device *d)
{
    const struct meeting *m = &meeting;
    cl_command_queue queues[WORKERS];
    cl_int code = CL_SUCCESS;
    uint32_t n = 0;

    while (n < m->n && code == CL_SUCCESS) {
        queues[n] = clCreateCommandQueue(d->context, d->id, 0, &code);
        if (code != CL_SUCCESS)
            break;
        code = clEnqueueNativeKernel(queues[n], meet, NULL, 0, 0, NULL, NULL, 0, NULL, NULL);
        if (code == CL_SUCCESS)
            code = clFlush(queues[n]);
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        const cl_int ended = clFinish(queues[i]);
        bound.lost |= ended != CL_SUCCESS;
        code = code == CL_SUCCESS ? ended : code;
        (void)clReleaseCommandQueue(queues[i]);
    }
    return code == CL_SUCCESS ? NULL : tfm__cl_code_name(code);
}

/* A thread of this process that is not the caller, and not there twice. */
static int is_worker(const struct meeting *m, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (m->ids[k] == m->ids[i])
            return 0;
    }
    return m->ids[i] != (pid_t)syscall(SYS_gettid);
}

static void release_all(struct bound *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        /* an id may have been given to another process since */
        if (syscall(SYS_tgkill, getpid(), b->ids[i], 0) == 0)
            (void)sched_setaffinity(b->ids[i], sizeof b->before[i], &b->before[i]);
    }
    b->n = 0;
}

/* Thread i to the i-th processor that it may have. NULL, or why not. */
static const char *bind_all(struct bound *b, const struct meeting *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        cpu_set_t one;
        int cpu = 0;

        if (!is_worker(m, i))
            return "its units are not threads of their own";
        if (sched_getaffinity(m->ids[i], sizeof b->before[i], &b->before[i]) != 0 ||
            (uint32_t)CPU_COUNT(&b->before[i]) != m->n)
            return "there is not one processor for each unit";
        for (uint32_t k = 0; k <= i; cpu++)
            k += CPU_ISSET(cpu, &b->before[i]) != 0;
        CPU_ZERO(&one);
        CPU_SET(cpu - 1, &one);
        if (sched_setaffinity(m->ids[i], sizeof one, &one) != 0)
            return "the system does not allow it";
        b->ids[b->n++] = m->ids[i];
    }
    return NULL;
}

uint32_t tfm__cl_processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 0;
}

/* NULL, or why the threads stay as they are. The caller holds the lock. */
static const char *bind_workers(const struct tfm__cl_device *d)
{
    cl_device_exec_capabilities can = 0;

    if (bound.lost)
        return "their last meeting has not ended";
    if (d->kind != TFM_DEVICE_CPU || d->units < 2)
        return "only a CPU of several units has threads to bind";
    if (d->units > WORKERS || tfm__cl_processors() != d->units)
        return "there is not one processor for each unit";
    if (clGetDeviceInfo(d->id, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, NULL) !=
            CL_SUCCESS ||
        !(can & CL_EXEC_NATIVE_KERNEL))
        return "it has no native kernels";
    atomic_store(&meeting.arrived, 0);
    meeting.n = d->units;
    const char *why = gather(d);
    if (why)
        return why;
    if (atomic_load(&meeting.arrived) < meeting.n)
        return "its threads were busy";
    why = bind_all(&bound, &meeting);
    if (why)
        release_all(&bound);
    return why;
}

void tfm__cl_workers_open(struct tfm__cl_device *d)
{
    const char *why = NULL;
    char text[48];

    if (!d->settings.pin || d->lent) {
        tfm__cl_choose(d, "threads", "where the system puts them",
                       d->lent ? "the device is the program's own" : "TFM_OPENCL_PIN says so");
        return;
    }
    pthread_mutex_lock(&lock);
    if (bound.holders == 0 || d->units != bound.n)
        why = bound.holders == 0 ? bind_workers(d) : "another device has bound them";
    if (!why) {
        bound.holders++;
        d->pinned = 1;
    }
    pthread_mutex_unlock(&lock);
    snprintf(text, sizeof text, "%u, each on a processor of its own", d->units);
    tfm__cl_choose(d, "threads", why ? "where the system puts them" : text,
                   why ? why : "there are as many processors as units");
}

void tfm__cl_workers_close(struct tfm__cl_device *d)
{
    if (!d->pinned)
        return;
    pthread_mutex_lock(&lock);
    d->pinned = 0;
    if (--bound.holders == 0)
        release_all(&bound);
    pthread_mutex_unlock(&lock);
}
