/* SPDX-License-Identifier: MIT
 * The order of windows. A permutation of an epoch is not stored: a Feistel network permutes the numbers below a power of
 * four, and what falls outside of the epoch is sent through it again (cycle walking; Black and Rogaway, CT-RSA 2002).
 * So each place is computed alone, from seed, epoch and place. */
#include <math.h>

#include <tfm/dataset.h>

enum { ROUNDS = 4 };

/* splitmix64 (Steele et al., OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t tfm_windows_at(const struct tfm_windows *windows, uint64_t place)
{
    const uint64_t n = windows->train, key = mix(windows->seed ^ mix(place / n));
    uint64_t at = place % n;
    unsigned half = 1; /* bits: n <= 4^half */

    while (half < 32 && (n - 1) >> (2 * half) != 0)
        half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = at >> half, right = at & mask;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            const uint64_t next = left ^ (mix(key ^ mix(round << 32 ^ right)) & mask);
            left = right;
            right = next;
        }
        at = left << half | right;
    } while (at >= n);
    return at;
}

enum tfm_status tfm_windows_split(const struct tfm_dataset *dataset, size_t length, double held_out,
                                  uint64_t seed, struct tfm_windows *windows, struct tfm_error *err)
{
    const size_t count = tfm_dataset_count(dataset);

    tfm_error_clear(err);
    if (length == 0 || !(held_out >= 0 && held_out < 1))
        return tfm_error_set(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "windows of %zu ids, a share of %g held out: must be at least 1, and in "
            "[0, 1)",
            length, held_out);
    const uint64_t all = count > 0 ? (count - 1) / length : 0;
    uint64_t held = (uint64_t)llround((double)all * held_out);
    if (held_out > 0 && held == 0)
        held = 1;
    if (all <= held)
        return tfm_error_set(
            err, TFM_STATUS_OUT_OF_RANGE,
            "%zu ids are %llu windows of %zu: %llu are held out, which leaves none "
            "to train on; take more text or shorter windows",
            count, (unsigned long long)all, length, (unsigned long long)held);
    *windows = (struct tfm_windows){length, all - held, held, seed};
    return TFM_STATUS_OK;
}

/* One window: inputs, and the same moved by one. */
static enum tfm_status read(const struct tfm_windows *w, const struct tfm_dataset *dataset,
                            uint64_t index, int32_t *inputs, int32_t *targets,
                            struct tfm_error *err)
{
    const size_t first = (size_t)index * w->length;
    enum tfm_status status = tfm_dataset_read(dataset, first, w->length, inputs, err);

    if (status == TFM_STATUS_OK)
        status = tfm_dataset_read(dataset, first + 1, w->length, targets, err);
    return status;
}

enum tfm_status tfm_windows_train(const struct tfm_windows *windows,
                                  const struct tfm_dataset *dataset, uint64_t *place, size_t rows,
                                  int32_t *inputs, int32_t *targets, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    tfm_error_clear(err);
    for (size_t i = 0; i < rows && status == TFM_STATUS_OK; i++)
        status = read(windows, dataset, tfm_windows_at(windows, *place + i),
                      inputs + i * windows->length, targets + i * windows->length, err);
    if (status == TFM_STATUS_OK)
        *place += rows;
    return status;
}

enum tfm_status tfm_windows_held(const struct tfm_windows *windows,
                                 const struct tfm_dataset *dataset, uint64_t first, size_t rows,
                                 int32_t *inputs, int32_t *targets, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    tfm_error_clear(err);
    if (first > windows->held || rows > windows->held - first)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "held-out windows %llu to %llu of %llu",
                             (unsigned long long)first, (unsigned long long)(first + rows),
                             (unsigned long long)windows->held);
    for (size_t i = 0; i < rows && status == TFM_STATUS_OK; i++)
        status = read(windows, dataset, windows->train + first + i, inputs + i * windows->length,
                      targets + i * windows->length, err);
    return status;
}
