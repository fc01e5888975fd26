/* SPDX-License-Identifier: MIT
 * One pool a process, started by the first loop that can use it; workers sleep on a condition
 * variable between loops. A fork leaves the child without workers, so it starts its own. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <tfm/device.h>

#include "lib/core/env.h"
#include "lib/core/pool.h"

enum { WORKERS_MAX = 255 };

struct loop {
    size_t n, chunk;
    void (*body)(void *context, size_t begin, size_t end);
    void *context;
    atomic_size_t next;
};

static atomic_uint wanted; /* 0 = not set */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* who may use the pool */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static struct loop *current;
static uint64_t generation;
static uint32_t workers, allowed, busy;
static pid_t owner; /* process whose workers these are */

void tfm_threads_set(uint32_t threads)
{
    atomic_store(&wanted, threads);
}

uint32_t tfm_threads(void)
{
    uint32_t n = atomic_load(&wanted);
    if (n == 0) {
        const char *text = tfm__env("TFM_THREADS");
        const long value = text ? strtol(text, NULL, 10) : 0;
        n = value > 0 && value <= WORKERS_MAX ? (uint32_t)value : 0;
    }
    if (n == 0) {
        cpu_set_t set;
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    }
    return n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : n;
}

static void take_chunks(struct loop *loop)
{
    for (;;) {
        const size_t begin = atomic_fetch_add(&loop->next, loop->chunk);
        if (begin >= loop->n)
            return;
        const size_t end = loop->n - begin < loop->chunk ? loop->n : begin + loop->chunk;
        loop->body(loop->context, begin, end);
    }
}

static void *worker_main(void *argument)
{
    const uint32_t number = (uint32_t)(uintptr_t)argument;
    uint64_t seen = 0;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (!current || generation == seen || number >= allowed)
            pthread_cond_wait(&work, &lock);
        seen = generation;
        struct loop *loop = current;
        busy++;
        pthread_mutex_unlock(&lock);
        take_chunks(loop);
        pthread_mutex_lock(&lock);
        if (--busy == 0)
            pthread_cond_signal(&idle);
    }
    return NULL;
}

/* Called with `lock`. A thread that cannot be started is one worker less, not an error. */
static void start_workers(uint32_t n)
{
    if (owner != getpid()) {
        owner = getpid();
        workers = 0;
        busy = 0;
    }
    while (workers < n) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker_main, (void *)(uintptr_t)workers) != 0)
            break;
        pthread_detach(thread);
        workers++;
    }
}

void tfm__parallel_for(size_t n, void (*body)(void *context, size_t begin, size_t end),
                       void *context)
{
    const uint32_t threads = tfm_threads();

    if (n == 0)
        return;
    if (n == 1 || threads == 1 || pthread_mutex_trylock(&turn) != 0) {
        body(context, 0, n);
        return;
    }
    /* Chunks small enough that a thread that came late or was delayed does not hold up the rest. */
    struct loop loop = {.n = n, .body = body, .context = context};
    loop.chunk = n / ((size_t)threads * 8) + 1;

    pthread_mutex_lock(&lock);
    start_workers(threads - 1);
    allowed = threads - 1;
    current = &loop;
    generation++;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&lock);

    take_chunks(&loop);

    pthread_mutex_lock(&lock);
    current = NULL; /* who has not begun must not begin: `loop` ends with this call */
    while (busy > 0)
        pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&turn);
}
