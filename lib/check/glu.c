/* SPDX-License-Identifier: MIT
 * glu for the checker. */
#include "lib/check/op.h"

/* A sigmoid and a product. */
static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 4 * tfm__check_elements(sample, rows);
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_binary(sample, i, tfm_op_glu);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_binary(sample, i, tfm_op_glu);
}

const struct tfm__check_op tfm__check_op_glu = {
    .samples = TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
