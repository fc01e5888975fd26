/* SPDX-License-Identifier: MIT
 * Truncated normal numbers by rejection: a candidate is uniform in [-cut, cut] and kept with probability
 * exp(-x^2 / 2); what is kept has exactly the density of the normal distribution between the cuts.
 * Only additions, multiplications and comparisons in f64, so that no libm changes a bit. */
#include <math.h>

#include <tfm/init.h>

#include "lib/nn/philox.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT \
    OFF /* a fused multiply-add rounds otherwise; gcc never fuses under -std=c11 */
#endif

static const double cut_limit = 16; /* beyond it, f64 cannot tell a cut from none */

/* exp(-t) for t in [0, cut_limit^2 / 2]: a Taylor series of t / 2^k <= 1/8, squared k times; the relative
 * error of 1e-13 is far below what a draw can show. */
static double exp_of_minus(double t)
{
    double term = 1, sum = 1;
    int halvings = 0;

    for (; t > 0.125; t *= 0.5)
        halvings++;
    for (int i = 1; i <= 12; i++) {
        term *= -t / i;
        sum += term;
    }
    for (; halvings > 0; halvings--)
        sum *= sum;
    return sum;
}

/* In [0, 1), from the upper 53 bits. */
static double uniform(uint32_t high, uint32_t low)
{
    return (double)((((uint64_t)high << 32) | low) >> 11) * (1.0 / 9007199254740992.0);
}

struct source {
    uint64_t key;
    double std, cut;
    enum tfm_dtype dtype;
    int keeps_bound; /* plain dtypes: what rounding pushes over the bound is drawn again */
};

static uint64_t stream_of(const char *name)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a, 64 bits */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

static int within(const struct source *source, double value)
{
    unsigned char bytes[8];
    double rounded;

    if (!source->keeps_bound)
        return 1;
    tfm_dtype_from_f64(source->dtype, &value, bytes, 0, 1);
    tfm_dtype_to_f64(source->dtype, bytes, 0, 1, &rounded);
    return fabs(rounded) <= source->cut * source->std;
}

/* Number `index`. The counter holds index and try; the stream is mixed into the key, by Philox too. */
static double draw(const struct source *source, uint64_t index)
{
    for (uint32_t attempt = 0;; attempt++) {
        const struct tfm__philox counter = {{(uint32_t)index, (uint32_t)(index >> 32), attempt, 0}};
        const struct tfm__philox bits = tfm__philox(counter, source->key);
        const double x = (2 * uniform(bits.word[0], bits.word[1]) - 1) * source->cut;
        if (uniform(bits.word[2], bits.word[3]) < exp_of_minus(0.5 * x * x) &&
            within(source, x * source->std))
            return x * source->std;
    }
}

static uint64_t key_of(uint64_t seed, uint64_t stream)
{
    const struct tfm__philox counter = {
        {(uint32_t)stream, (uint32_t)(stream >> 32), 0, 1}}; /* 1: apart from every draw */
    const struct tfm__philox bits = tfm__philox(counter, seed);
    return ((uint64_t)bits.word[1] << 32) | bits.word[0];
}

enum tfm_status tfm_nn_init_truncated_normal(uint64_t seed, const char *stream, double std,
                                             double cut, enum tfm_dtype dtype, size_t n,
                                             void *values, struct tfm_error *err)
{
    enum { CHUNK = 256 }; /* a multiple of every block */
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    double chunk[CHUNK];

    tfm_error_clear(err);
    if (!info || info->dtype_class == TFM_DTYPE_INT || n % info->block != 0)
        return tfm_error_set(err, TFM_STATUS_DTYPE,
                             "init: %zu values of %s; whole blocks of a float or block dtype", n,
                             tfm_dtype_name(dtype));
    if (!(std >= 0) || !isfinite(std))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "init: a deviation of %g; it must be finite and not negative", std);
    if (!(cut > 0) || cut > cut_limit)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "init: a cut at %g deviations; it must be in (0, %g]", cut, cut_limit);
    const struct source source = {
        .key = key_of(seed, stream_of(stream)),
        .std = std,
        .cut = cut,
        .dtype = dtype,
        .keeps_bound = info->dtype_class == TFM_DTYPE_FLOAT,
    };
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        for (size_t i = 0; i < length; i++)
            chunk[i] = draw(&source, first + i);
        tfm_dtype_from_f64(dtype, chunk, values, first, length);
    }
    return TFM_STATUS_OK;
}
