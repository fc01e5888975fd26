/* SPDX-License-Identifier: MIT
 * Chooses a token from logits. Order of the filters: temperature, top-k, top-p (of what top-k
 * kept), as they apply to probabilities. What is kept is walked in order of index, so that the
 * choice depends on logits, options and seed only, not on how the selection went about it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/sampler.h>

#include "lib/core/checked.h"

struct candidate {
    double weight; /* exp((logit - max) / temperature) */
    float logit;
    int32_t id;
};

struct tfm_sampler {
    size_t vocab;
    struct tfm_sampler_options options;
    uint64_t state;            /* of the generator */
    struct candidate *kept;    /* [vocab] in order of index */
    struct candidate *scratch; /* [vocab] for selections */
};

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The total order of candidates: larger logit first, lower index first among equals. */
static int before(const struct candidate *a, const struct candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* Moves what is before a random pivot to the front of c[low, high); returns where the pivot is. */
static size_t partition(struct candidate *c, size_t low, size_t high, uint64_t *random)
{
    size_t chosen = low + (size_t)(random_next(random) % (high - low)), at = low;
    struct candidate pivot = c[chosen];

    c[chosen] = c[high - 1];
    for (size_t i = low; i + 1 < high; i++)
        if (before(&c[i], &pivot)) {
            struct candidate swap = c[at];
            c[at++] = c[i];
            c[i] = swap;
        }
    c[high - 1] = c[at];
    c[at] = pivot;
    return at;
}

/* The k-th of c[0, n), 1 <= k <= n. */
static struct candidate select_kth(struct candidate *c, size_t n, size_t k)
{
    size_t low = 0, high = n;
    uint64_t random = 0;

    for (;;) {
        size_t at = partition(c, low, high, &random);
        if (at == k - 1)
            return c[at];
        if (at > k - 1)
            high = at;
        else
            low = at + 1;
    }
}

/* The first of c[0, n), n >= 1, at which the weights up to and with it reach `target`; the last if
 * rounding keeps them below. */
static struct candidate select_mass(struct candidate *c, size_t n, double target)
{
    size_t low = 0, high = n;
    double sum = 0;
    uint64_t random = 0;
    struct candidate last = c[0];

    while (low < high) {
        size_t at = partition(c, low, high, &random);
        double upper = sum;
        for (size_t i = low; i < at; i++)
            upper += c[i].weight;
        if (at > low && upper >= target) {
            high = at;
            continue;
        }
        last = c[at];
        sum = upper + c[at].weight;
        if (sum >= target)
            break;
        low = at + 1;
    }
    return last;
}

/* Index of the largest logit, the lowest of equals. */
static enum tfm_status find_best(const float *logits, size_t n, size_t *best, struct tfm_error *err)
{
    size_t at = 0;
    int finite = 0;

    for (size_t i = 0; i < n; i++) {
        if (isnan(logits[i]))
            return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "sampler: logit %zu of %zu is NaN",
                                 i, n);
        finite |= isfinite(logits[i]) != 0;
        if (logits[i] > logits[at])
            at = i;
    }
    if (!finite)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "sampler: none of %zu logits is finite",
                             n);
    *best = at;
    return TFM_STATUS_OK;
}

/* The k-th of all logits that are not banned, in the order of candidates; the last if there are fewer.
 * The best so far are gathered until there are twice as many as wanted, then the worse half goes, and only
 * what is better than the worst left gets in: most logits cost one comparison. */
static struct candidate find_kth(struct candidate *best, const float *logits, size_t vocab,
                                 size_t k)
{
    struct candidate last = {.logit = -INFINITY, .id = INT32_MAX};
    size_t n = 0;

    for (size_t i = 0; i < vocab; i++) {
        if (!(logits[i] > last.logit)) /* equal ones lie behind, their index is higher */
            continue;
        best[n].logit = logits[i];
        best[n++].id = (int32_t)i;
        if (n / 2 >= k) {
            last = select_kth(best, n, k);
            n = k;
        }
    }
    return n > k ? select_kth(best, n, k) : last;
}

/* Keeps the top_k largest that are not banned. Returns how many. */
static size_t keep_top_k(struct tfm_sampler *s, const float *logits)
{
    struct candidate last = {.logit = -INFINITY, .id = INT32_MAX};
    size_t n = 0;

    if (s->options.top_k > 0 && (uint64_t)s->options.top_k < s->vocab)
        last = find_kth(s->scratch, logits, s->vocab, (size_t)s->options.top_k);
    for (size_t i = 0; i < s->vocab; i++) {
        float x = logits[i];
        if (x < last.logit || x == -INFINITY || (x == last.logit && (int32_t)i > last.id))
            continue;
        s->kept[n].logit = x;
        s->kept[n++].id = (int32_t)i;
    }
    return n;
}

/* Keeps the fewest of kept[0, n) whose share of `sum` reaches top_p. Returns how many. */
static size_t keep_top_p(struct tfm_sampler *s, size_t n, double sum)
{
    /* what weighs less than this adds up to less than the rest that top_p leaves out */
    double cutoff = (1 - s->options.top_p) * sum / (double)n;
    size_t heavy = 0, kept = 0;
    struct candidate last;

    for (size_t i = 0; i < n; i++)
        if (s->kept[i].weight >= cutoff)
            s->scratch[heavy++] = s->kept[i];
    if (heavy == 0) /* rounding: all weigh the same and top_p is next to 0 */
        memcpy(s->scratch, s->kept, (heavy = n) * sizeof *s->kept);
    last = select_mass(s->scratch, heavy, s->options.top_p * sum);
    for (size_t i = 0; i < n; i++)
        if (!before(&last, &s->kept[i]))
            s->kept[kept++] = s->kept[i];
    return kept;
}

static double weigh(const struct tfm_sampler *s, size_t n, float max)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        struct candidate *c = &s->kept[i];
        /* the best weighs 1 also where it is infinite */
        c->weight =
            c->logit == max ? 1 : exp(((double)c->logit - (double)max) / s->options.temperature);
        sum += c->weight;
    }
    return sum;
}

static int32_t draw(struct tfm_sampler *s, size_t n)
{
    double sum = 0, at, up_to = 0;
    int32_t id = s->kept[0].id;

    for (size_t i = 0; i < n; i++)
        sum += s->kept[i].weight;
    at = (double)(random_next(&s->state) >> 11) * 0x1p-53 * sum;
    for (size_t i = 0; i < n; i++) {
        if (s->kept[i].weight <= 0)
            continue;
        id = s->kept[i].id;
        up_to += s->kept[i].weight;
        if (up_to > at)
            break;
    }
    return id;
}

static enum tfm_status check(size_t vocab, const struct tfm_sampler_options *options,
                             struct tfm_error *err)
{
    if (vocab == 0 || vocab > INT32_MAX)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "sampler: a vocabulary of %zu tokens, must be 1 to %d", vocab,
                             INT32_MAX);
    if (!(options->temperature >= 0) || !isfinite(options->temperature))
        return tfm_error_set(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "sampler: temperature is %g, must be a finite number, 0 (greedy) or more",
            options->temperature);
    if (!(options->top_p >= 0))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "sampler: top_p is %g, must be from 0 to 1 (1 = off)", options->top_p);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_sampler_create(size_t vocab, const struct tfm_sampler_options *options,
                                   struct tfm_sampler **sampler, struct tfm_error *err)
{
    struct tfm_sampler *s;
    enum tfm_status status;

    tfm_error_clear(err);
    status = check(vocab, options, err);
    if (status != TFM_STATUS_OK)
        return status;
    s = calloc(1, sizeof *s);
    if (s) {
        s->vocab = vocab;
        s->options = *options;
        s->state = options->seed;
        if (options->temperature > 0) { /* greedy needs no memory */
            s->kept = calloc(vocab, sizeof *s->kept);
            s->scratch = calloc(vocab, sizeof *s->scratch);
        }
    }
    if (!s || (options->temperature > 0 && (!s->kept || !s->scratch))) {
        tfm_sampler_destroy(s);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "sampler: out of memory for %zu tokens", vocab);
    }
    *sampler = s;
    return TFM_STATUS_OK;
}

void tfm_sampler_destroy(struct tfm_sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->kept);
    free(sampler->scratch);
    free(sampler);
}

enum tfm_status tfm_sampler_next(struct tfm_sampler *sampler, const float *logits, int32_t *id,
                                 struct tfm_error *err)
{
    size_t best = 0, n;
    double sum;
    enum tfm_status status;

    tfm_error_clear(err);
    status = find_best(logits, sampler->vocab, &best, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (sampler->options.temperature <= 0 || sampler->options.top_p <= 0) {
        *id = (int32_t)best;
        return TFM_STATUS_OK;
    }
    n = keep_top_k(sampler, logits);
    sum = weigh(sampler, n, logits[best]);
    if (sampler->options.top_p < 1)
        n = keep_top_p(sampler, n, sum);
    *id = draw(sampler, n);
    return TFM_STATUS_OK;
}
