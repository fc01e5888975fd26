/* SPDX-License-Identifier: MIT
 * Rotary table [P, r/2, 2]: cos and sin of p f_i, in f64, rounded once. Scaling of positions lives here
 * alone: the rope op only reads the table. Formulas and sources: tfm/positions.h. */
#include <math.h>

#include <tfm/positions.h>

#include "lib/core/alloc.h"

static const double two_pi = 6.283185307179586476925286766559;

static int positive(double value)
{
    return value > 0 && isfinite(value);
}

static double or_else(double value, double standard)
{
    return value != 0 ? value : standard;
}

/* ---- scalings: each checks what it reads (frequencies NULL = only that), then changes f [pairs] ---- */

static enum tfm_status wrong(struct tfm_error *err, const char *field, double value,
                             const char *must)
{
    return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "rope: %s is %g; it must be %s", field,
                         value, must);
}

static enum tfm_status check_factor(const struct tfm_nn_rope *rope, struct tfm_error *err)
{
    return rope->factor >= 1 && isfinite(rope->factor)
               ? TFM_STATUS_OK
               : wrong(err, "factor", rope->factor, "finite and at least 1");
}

static enum tfm_status check_context(const struct tfm_nn_rope *rope, struct tfm_error *err)
{
    return rope->original_context >= 1
               ? TFM_STATUS_OK
               : wrong(err, "original_context", (double)rope->original_context, "positive");
}

static enum tfm_status scale_none(const struct tfm_nn_rope *rope, int64_t pairs, double *f,
                                  double *attn_factor, struct tfm_error *err)
{
    (void)rope, (void)pairs, (void)f, (void)attn_factor, (void)err;
    return TFM_STATUS_OK;
}

static enum tfm_status scale_linear(const struct tfm_nn_rope *rope, int64_t pairs, double *f,
                                    double *attn_factor, struct tfm_error *err)
{
    const enum tfm_status status = check_factor(rope, err);

    (void)attn_factor;
    for (int64_t i = 0; status == TFM_STATUS_OK && f && i < pairs; i++)
        f[i] /= rope->factor;
    return status;
}

static enum tfm_status scale_ntk(const struct tfm_nn_rope *rope, int64_t pairs, double *f,
                                 double *attn_factor, struct tfm_error *err)
{
    const double dims = (double)rope->dims;
    const enum tfm_status status = check_factor(rope, err);

    (void)attn_factor;
    if (status == TFM_STATUS_OK && rope->dims < 4)
        return wrong(err, "dims", dims, "at least 4: another base changes only the later pairs");
    /* (theta factor^(r / (r - 2)))^(-2i/r) = f_i factor^(-2i / (r - 2)) */
    for (int64_t i = 0; status == TFM_STATUS_OK && f && i < pairs; i++)
        f[i] *= pow(rope->factor, -2 * (double)i / (dims - 2));
    return status;
}

/* The pair whose period fits the original context `turns` times. */
static double pair_of(const struct tfm_nn_rope *rope, double theta, double turns)
{
    return (double)rope->dims * log((double)rope->original_context / (turns * two_pi)) /
           (2 * log(theta));
}

static double between(double low, double value, double high)
{
    return value < low ? low : value > high ? high : value;
}

static enum tfm_status scale_yarn(const struct tfm_nn_rope *rope, int64_t pairs, double *f,
                                  double *attn_factor, struct tfm_error *err)
{
    const double theta = or_else(rope->theta, 10000);
    const double fast = or_else(rope->beta_fast, 32), slow = or_else(rope->beta_slow, 1);
    const double last = (double)rope->dims - 1;
    enum tfm_status status = check_factor(rope, err);

    if (status == TFM_STATUS_OK)
        status = check_context(rope, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (!(theta > 1))
        return wrong(err, "theta", theta, "greater than 1");
    if (!positive(slow) || !positive(fast) || fast < slow)
        return wrong(err, "beta_fast", fast, "at least beta_slow, both positive");
    if (rope->attn_factor != 0 && !positive(rope->attn_factor))
        return wrong(err, "attn_factor", rope->attn_factor, "positive");
    *attn_factor = or_else(rope->attn_factor, 0.1 * log(rope->factor) + 1);
    /* Whole pairs, as the models that use it were trained; then never a step of width 0. */
    const double low = between(0, floor(pair_of(rope, theta, fast)), last);
    double high = between(0, ceil(pair_of(rope, theta, slow)), last);
    if (high <= low)
        high = low + 0.001;
    for (int64_t i = 0; f && i < pairs; i++) {
        const double ramp = between(0, ((double)i - low) / (high - low), 1);
        f[i] = f[i] / rope->factor * ramp + f[i] * (1 - ramp);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status scale_llama3(const struct tfm_nn_rope *rope, int64_t pairs, double *f,
                                    double *attn_factor, struct tfm_error *err)
{
    const double low = or_else(rope->low_freq_factor, 1), high = or_else(rope->high_freq_factor, 4);
    enum tfm_status status = check_factor(rope, err);

    (void)attn_factor;
    if (status == TFM_STATUS_OK)
        status = check_context(rope, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (!positive(low) || !positive(high) || !(high > low))
        return wrong(err, "high_freq_factor", high,
                     "greater than low_freq_factor, both positive and finite");
    for (int64_t i = 0; f && i < pairs; i++) {
        const double turns = (double)rope->original_context * f[i] / two_pi;
        const double share = between(0, (turns - low) / (high - low), 1);
        f[i] = (1 - share) * f[i] / rope->factor + share * f[i];
    }
    return TFM_STATUS_OK;
}

static enum tfm_status scale_factors(const struct tfm_nn_rope *rope, int64_t pairs, double *f,
                                     double *attn_factor, struct tfm_error *err)
{
    if (!rope->factors)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "rope: factors are missing");
    if (rope->attn_factor != 0 && !positive(rope->attn_factor))
        return wrong(err, "attn_factor", rope->attn_factor, "positive");
    *attn_factor = or_else(rope->attn_factor, 1);
    for (int64_t i = 0; i < pairs; i++) {
        if (!positive((double)rope->factors[i]))
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "rope: factor %lld is %g, but factors are positive", (long long)i,
                                 (double)rope->factors[i]);
        if (f)
            f[i] /= (double)rope->factors[i];
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm_nn_rope_frequencies(const struct tfm_nn_rope *rope, double *frequencies,
                                        double *attn_factor, struct tfm_error *err)
{
    static enum tfm_status (*const scalings[])(const struct tfm_nn_rope *, int64_t, double *,
                                               double *, struct tfm_error *) = {
#define TFM_NN_ROPE_SCALING(id, NAME, name) [TFM_NN_ROPE_SCALING_##NAME] = scale_##name,
#include <tfm/nn_kinds.def>
    };
    const double theta = or_else(rope->theta, 10000);
    double factor = 1;

    tfm_error_clear(err);
    if (rope->dims <= 0 || rope->dims % 2 != 0)
        return wrong(err, "dims", (double)rope->dims, "even and positive");
    if (!positive(theta))
        return wrong(err, "theta", theta, "positive");
    if ((unsigned)rope->scaling >= sizeof scalings / sizeof *scalings)
        return wrong(err, "scaling", (double)rope->scaling, "one of the kinds that there are");
    for (int64_t i = 0; frequencies && i < rope->dims / 2; i++)
        frequencies[i] = pow(theta, -2.0 * (double)i / (double)rope->dims);
    const enum tfm_status status =
        scalings[rope->scaling](rope, rope->dims / 2, frequencies, &factor, err);
    if (status == TFM_STATUS_OK)
        *attn_factor = factor;
    return status;
}

enum tfm_status tfm_nn_rope_table_scaled(enum tfm_dtype dtype, int64_t positions,
                                         const struct tfm_nn_rope *rope, void *table,
                                         struct tfm_error *err)
{
    const int64_t dims = rope->dims;
    double attn_factor, *frequencies;
    enum tfm_status status;

    tfm_error_clear(err);
    if (dtype != TFM_DTYPE_F32 && dtype != TFM_DTYPE_F64)
        return tfm_error_set(err, TFM_STATUS_DTYPE, "rope table: %s, but it is f32 or f64",
                             tfm_dtype_name(dtype));
    if (positions <= 0)
        return wrong(err, "the number of positions", (double)positions, "positive");
    status = tfm_nn_rope_frequencies(rope, NULL, &attn_factor, err);
    if (status != TFM_STATUS_OK)
        return status;
    frequencies = tfm__alloc_array((size_t)dims / 2, sizeof *frequencies);
    if (!frequencies)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "rope table: out of memory");
    status = tfm_nn_rope_frequencies(rope, frequencies, &attn_factor, err);
    for (int64_t i = 0; status == TFM_STATUS_OK && i < dims / 2; i++) {
        for (int64_t p = 0; p < positions; p++) {
            const double angle = (double)p * frequencies[i];
            const double pair[2] = {attn_factor * cos(angle), attn_factor * sin(angle)};
            tfm_dtype_from_f64(dtype, pair, table, (size_t)(p * dims + 2 * i), 2);
        }
    }
    tfm__free(frequencies);
    return status;
}

enum tfm_status tfm_nn_rope_table(enum tfm_dtype dtype, int64_t positions, int64_t dims,
                                  double theta, const float *factors, void *table,
                                  struct tfm_error *err)
{
    const struct tfm_nn_rope rope = {
        .dims = dims,
        .theta = theta,
        .scaling = factors ? TFM_NN_ROPE_SCALING_FACTORS : TFM_NN_ROPE_SCALING_NONE,
        .factors = factors,
    };

    tfm_error_clear(err);
    if (!positive(theta))
        return wrong(err, "theta", theta, "positive");
    return tfm_nn_rope_table_scaled(dtype, positions, &rope, table, err);
}
