/* SPDX-License-Identifier: MIT
 * rope for the checker: both kinds of pairs, whole and partial width, positions in no order and up to
 * the last of the table. */
#include <math.h>

#include "lib/check/op.h"

enum { SHAPES = 4, STYLES = 2 };

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, enum tfm_rope_style style,
                 uint32_t rows, int64_t heads, int64_t d, int64_t width)
{
    const enum tfm_dtype companion = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t shape[] = {heads, d}, table_shape[] = {rows + 35, width / 2, 2};

    tfm__sample_begin(sample, rows, "%s [N, %lld, %lld] %s, width %lld", tfm_dtype_name(dtype),
                      (long long)heads, (long long)d,
                      style == TFM_ROPE_HALVES ? "halves" : "adjacent", (long long)width);
    sample->special = tfm__sample_input(sample, "x", dtype, 3, shape);
    struct tfm_tensor *pos = tfm__sample_input(sample, "pos", TFM_DTYPE_I32, 1, NULL);
    struct tfm_tensor *table = tfm__sample_buffer(sample, "table", companion, 3, table_shape);
    for (uint32_t r = 0; r < rows && pos; r++) {
        const double position = (double)((table_shape[0] - 1 + 37 * (int64_t)r) % table_shape[0]);
        tfm__sample_set(sample, pos, r, 1, &position);
    }
    for (int64_t p = 0; table && p < table_shape[0]; p++) {
        for (int64_t i = 0; i < width / 2; i++) {
            const double angle = (double)p * pow(10000, -2 * (double)i / (double)width);
            const double pair[] = {cos(angle), sin(angle)};
            tfm__sample_set(sample, table, (size_t)(2 * (p * (width / 2) + i)), 2, pair);
        }
    }
    tfm__sample_output(sample, tfm_op_rope(sample->graph, sample->special, pos, table, style));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int64_t heads, d, width;
    } shapes[SHAPES] = {{1, 2, 2}, {3, 64, 64}, {9, 80, 32}, {7, 6, 4}};
    const uint32_t s = i % SHAPES, style = i / SHAPES % STYLES;

    make(sample, tfm__check_floats[i / SHAPES / STYLES], (enum tfm_rope_style)style,
         TFM__CHECK_ROWS, shapes[s].heads, shapes[s].d, shapes[s].width);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, tfm__check_floats[i / STYLES], (enum tfm_rope_style)(i % STYLES),
         TFM__CHECK_LARGE_ROWS, 32, 128, 128);
}

/* Four products and two sums a pair. */
static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 3 * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_rope = {
    .samples = TFM__CHECK_FLOATS * STYLES * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS * STYLES,
    .build_large = build_large,
    .operations = operations,
};
