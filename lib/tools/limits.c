/* SPDX-License-Identifier: MIT
 * Two loops, each on every thread at once: a sum over a large block, and multiply-adds in registers. Compiled
 * with -ffp-contract=fast: a * b + c is one instruction where there is one. */
#include "lib/tools/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/tools/clock.h"

/* 16 floats: one register of AVX-512, two of AVX, four of SSE and NEON. */
typedef float lanes __attribute__((vector_size(64)));
typedef uint64_t words __attribute__((vector_size(64)));

enum { LANES = 16, MOST_CHAINS = 8, PASSES = 5, MOST_THREADS = 1024 };
enum { LEAST_BLOCK = 256 << 20, MOST_BLOCK = 512 << 20 };

static const double pass_seconds = 0.05;

/* ---- multiply and add ---- */

/* Independent chains, enough of them to hide the latency of one and few enough to stay in registers.
 * Returns something that depends on every operation, so that none can be left out. */
static inline __attribute__((always_inline)) float multiply_add(size_t rounds, int chains)
{
    lanes a[MOST_CHAINS], b = {0}, c = {0};
    float sum = 0;

    for (int i = 0; i < LANES; i++) {
        for (int k = 0; k < chains; k++)
            a[k][i] = (float)(i + k);
        b[i] = 0.999f;
        c[i] = 0.001f;
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 8
        for (int k = 0; k < chains; k++)
            a[k] = a[k] * b + c;
    }
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < chains; k++)
            sum += a[k][i];
    return sum;
}

static float run_baseline(size_t rounds)
{
    return multiply_add(rounds, 3);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static float run_avx2(size_t rounds)
{
    return multiply_add(rounds, 5);
}

__attribute__((target("avx512f"))) static float run_avx512(size_t rounds)
{
    return multiply_add(rounds, 8);
}
#endif

struct kernel {
    const char *name;
    int chains;
    float (*run)(size_t rounds);
};

static struct kernel best_kernel(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return (struct kernel){"avx512f", 8, run_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct kernel){"avx2 and fma", 5, run_avx2};
#endif
    return (struct kernel){"the compiler's baseline", 3, run_baseline};
}

/* ---- read ---- */

static uint64_t sum_words(const words *block, size_t n)
{
    words s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    uint64_t sum = 0;

    for (size_t i = 0; i + 4 <= n; i += 4) {
        s0 += block[i];
        s1 += block[i + 1];
        s2 += block[i + 2];
        s3 += block[i + 3];
    }
    s0 += s1 + s2 + s3;
    for (size_t i = 0; i < sizeof s0 / sizeof s0[0]; i++)
        sum += s0[i];
    return sum;
}

/* Four times the last-level cache, within bounds. */
static size_t block_bytes(void)
{
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const size_t wanted = cache > 0 ? 4 * (size_t)cache : 0;

    return wanted < LEAST_BLOCK ? LEAST_BLOCK : wanted > MOST_BLOCK ? MOST_BLOCK : wanted;
}

/* ---- all threads at once ---- */

struct crew {
    pthread_mutex_t gate; /* closed until all threads are there, or it is known that they are not */
    int called_off;
    pthread_barrier_t barrier;
    struct kernel kernel;
    size_t words; /* of each thread */
    size_t rounds;
};

struct worker {
    struct crew *crew;
    words *part;
    pthread_t thread;
    double read_seconds[PASSES], fma_seconds[PASSES]; /* begin and end are taken at barriers */
    uint64_t kept;                                    /* results, so that they are computed */
};

static double since(double start)
{
    return tfm__seconds() - start;
}

/* The barriers make every thread measure the slowest one. */
static void *work(void *context)
{
    struct worker *w = context;
    struct crew *crew = w->crew;

    pthread_mutex_lock(&crew->gate);
    const int called_off = crew->called_off;
    pthread_mutex_unlock(&crew->gate);
    if (called_off)
        return NULL;
    memset(w->part, 1, crew->words * sizeof *w->part); /* pages where they are read */
    for (int i = 0; i < PASSES; i++) {
        pthread_barrier_wait(&crew->barrier);
        double start = tfm__seconds();
        w->kept += sum_words(w->part, crew->words);
        pthread_barrier_wait(&crew->barrier);
        w->read_seconds[i] = since(start);
        start = tfm__seconds();
        w->kept += (uint64_t)crew->kernel.run(crew->rounds);
        pthread_barrier_wait(&crew->barrier);
        w->fma_seconds[i] = since(start);
    }
    return NULL;
}

static double least(const double *seconds)
{
    double best = seconds[0];

    for (int i = 1; i < PASSES; i++)
        best = seconds[i] < best ? seconds[i] : best;
    return best > 1e-9 ? best : 1e-9;
}

/* Rounds that take about as long as one pass should. */
static size_t calibrate(const struct kernel *kernel)
{
    size_t rounds = 1 << 16;
    volatile float kept = 0;

    for (;;) {
        const double start = tfm__seconds();
        kept = kept + kernel->run(rounds);
        const double seconds = since(start);
        if (seconds > pass_seconds / 8 || rounds > (size_t)1 << 34)
            return (size_t)((double)rounds * pass_seconds / seconds) + 1;
        rounds *= 4;
    }
}

static int run_crew(struct crew *crew, struct worker *workers, uint32_t threads)
{
    uint32_t started = 0;

    if (pthread_barrier_init(&crew->barrier, NULL, threads))
        return 1;
    pthread_mutex_init(&crew->gate, NULL);
    pthread_mutex_lock(&crew->gate);
    while (started + 1 < threads &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    crew->called_off = started + 1 < threads;
    pthread_mutex_unlock(&crew->gate);
    work(&workers[threads - 1]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&crew->gate);
    pthread_barrier_destroy(&crew->barrier);
    return crew->called_off;
}

int tfm__limits_measure(uint32_t threads, struct tfm__limits *limits)
{
    struct crew crew = {.kernel = best_kernel()};
    uint32_t n = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    struct worker *workers = calloc(n, sizeof *workers);
    void *block = NULL;
    int failed = 1;

    crew.words = block_bytes() / sizeof(words) / n / 4 * 4;
    crew.rounds = calibrate(&crew.kernel);
    if (workers && posix_memalign(&block, sizeof(words), crew.words * n * sizeof(words)) == 0) {
        for (uint32_t i = 0; i < n; i++)
            workers[i] = (struct worker){.crew = &crew, .part = (words *)block + i * crew.words};
        failed = run_crew(&crew, workers, n);
    }
    if (!failed) {
        const double read = least(workers[n - 1].read_seconds),
                     fma = least(workers[n - 1].fma_seconds);
        limits->threads = n;
        limits->read_bytes = crew.words * n * sizeof(words);
        limits->read = (double)limits->read_bytes / read;
        limits->fma = 2.0 * LANES * crew.kernel.chains * (double)crew.rounds * n / fma;
        limits->fma_kind = crew.kernel.name;
    }
    free(block);
    free(workers);
    return failed;
}
