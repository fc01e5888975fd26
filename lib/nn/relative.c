/* SPDX-License-Identifier: MIT
 * T5's buckets of relative distances (Raffel et al., arXiv:1910.10683, section 2.1): made on the host, so
 * that no device computes a logarithm. */
#include <math.h>

#include <tfm/positions.h>

/* Buckets of one direction; the first half of them hold one distance each. */
static int64_t buckets_of(const struct tfm_nn_relative *relative)
{
    return relative->bidirectional ? relative->buckets / 2 : relative->buckets;
}

static enum tfm_status check(const struct tfm_nn_relative *relative, struct tfm_error *err)
{
    if (relative->buckets > INT32_MAX || buckets_of(relative) < 2)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "relative positions: %lld buckets; each direction needs 2 at least",
                             (long long)relative->buckets);
    if (relative->max_distance <= buckets_of(relative) / 2 ||
        relative->max_distance > INT32_MAX / 2 - 1)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "relative positions: max_distance is %lld; %lld buckets hold one "
                             "distance each already",
                             (long long)relative->max_distance,
                             (long long)(buckets_of(relative) / 2));
    return TFM_STATUS_OK;
}

/* `far` >= 0: how far the key lies in its direction. */
static int64_t bucket_of(const struct tfm_nn_relative *relative, int64_t far)
{
    const int64_t buckets = buckets_of(relative), exact = buckets / 2;

    if (far < exact)
        return far;
    if (far >= relative->max_distance)
        return buckets - 1;
    /* A distance that is a power exactly belongs to the bucket it opens: without the small addition the
     * quotient of two rounded logarithms may fall below the whole number. */
    const double share = log((double)far / (double)exact) /
                         log((double)relative->max_distance / (double)exact) *
                         (double)(buckets - exact);
    const int64_t bucket = exact + (int64_t)floor(share + 1e-9);
    return bucket < buckets ? bucket : buckets - 1;
}

static int32_t signed_bucket(const struct tfm_nn_relative *relative, int64_t distance)
{
    if (distance <= 0)
        return (int32_t)bucket_of(relative, -distance);
    if (!relative->bidirectional)
        return 0;
    return (int32_t)(buckets_of(relative) + bucket_of(relative, distance));
}

enum tfm_status tfm_nn_relative_bucket(const struct tfm_nn_relative *relative, int64_t distance,
                                       int32_t *bucket, struct tfm_error *err)
{
    tfm_error_clear(err);
    const enum tfm_status status = check(relative, err);
    if (status == TFM_STATUS_OK) {
        const int64_t most = relative->max_distance;
        distance = distance < -most ? -most : distance > most ? most : distance;
        *bucket = signed_bucket(relative, distance);
    }
    return status;
}

enum tfm_status tfm_nn_relative_table(const struct tfm_nn_relative *relative, int32_t *table,
                                      struct tfm_error *err)
{
    tfm_error_clear(err);
    const enum tfm_status status = check(relative, err);
    if (status == TFM_STATUS_OK) {
        const int64_t most = relative->max_distance;
        for (int64_t distance = -most; distance <= most; distance++)
            table[distance + most] = signed_bucket(relative, distance);
    }
    return status;
}
