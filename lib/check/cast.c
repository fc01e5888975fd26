/* SPDX-License-Identifier: MIT
 * cast for the checker: from each float dtype to each. */
#include "lib/check/op.h"

enum { SHAPES = 2, PAIRS = TFM__CHECK_FLOATS * TFM__CHECK_FLOATS };

static void make(struct tfm__sample *sample, uint32_t pair, uint32_t rows, const int64_t *shape)
{
    const enum tfm_dtype from = tfm__check_floats[pair / TFM__CHECK_FLOATS],
                         to = tfm__check_floats[pair % TFM__CHECK_FLOATS];

    tfm__sample_begin(sample, rows, "%s to %s [N, %lld]", tfm_dtype_name(from), tfm_dtype_name(to),
                      (long long)shape[0]);
    sample->exact = 1; /* rounded once, to nearest even */
    sample->special = tfm__sample_input(sample, "x", from, 2, shape);
    tfm__sample_output(sample, tfm_op_cast(sample->graph, sample->special, to));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shapes[SHAPES][1] = {{31}, {65}};
    make(sample, i / SHAPES, TFM__CHECK_ROWS, shapes[i % SHAPES]);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shape[] = {4096};
    make(sample, i, TFM__CHECK_LARGE_ROWS, shape);
}

const struct tfm__check_op tfm__check_op_cast = {
    .samples = SHAPES * PAIRS,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = PAIRS,
    .build_large = build_large,
    .operations = tfm__check_elements,
};
