/* SPDX-License-Identifier: MIT
 * rope for the checker: both kinds of pairs, whole and partial width, positions in no order and up to
 * the last of the table; heads outside the tokens, with positions of each row and as a buffer. */
#include <math.h>

#include "lib/check/op.h"

enum { SHAPES = 4, STYLES = 2, TOKENS = 5 };
enum layout { ROWS, HEADS_FIRST, POS_BUFFER, LAYOUTS };

struct shape {
    int64_t heads, d, width;
    enum layout layout;
};

static struct tfm_tensor *positions(struct tfm__sample *sample, enum layout layout, int64_t table)
{
    static const int64_t tokens[] = {TOKENS};
    struct tfm_tensor *pos =
        layout == POS_BUFFER
            ? tfm__sample_buffer(sample, "pos", TFM_DTYPE_I32, 1, tokens)
            : tfm__sample_input(sample, "pos", TFM_DTYPE_I32, layout == ROWS ? 1 : 2, tokens);

    for (size_t i = 0; i < tfm__sample_count(sample, pos); i++) {
        const double position = (double)((table - 1 + 37 * (int64_t)i) % table);
        tfm__sample_set(sample, pos, i, 1, &position);
    }
    return pos;
}

static void fill_table(struct tfm__sample *sample, const struct tfm_tensor *table)
{
    const int64_t pairs = table ? table->shape[1] : 0;

    for (int64_t p = 0; table && p < table->shape[0]; p++) {
        for (int64_t i = 0; i < pairs; i++) {
            const double angle = (double)p * pow(10000, -(double)i / (double)pairs);
            const double pair[] = {cos(angle), sin(angle)};
            tfm__sample_set(sample, table, (size_t)(2 * (p * pairs + i)), 2, pair);
        }
    }
}

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, enum tfm_rope_style style,
                 uint32_t rows, const struct shape *s)
{
    static const char *const texts[] = {"", " of 5 tokens", " of 5 tokens, pos a buffer"};
    const enum tfm_dtype companion = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t shape[] = {s->heads, s->d}, first[] = {s->heads, TOKENS, s->d};
    const int64_t table_shape[] = {rows + 35, s->width / 2, 2};

    tfm__sample_begin(sample, rows, "%s [N, %lld, %lld] %s, width %lld%s", tfm_dtype_name(dtype),
                      (long long)s->heads, (long long)s->d,
                      style == TFM_ROPE_HALVES ? "halves" : "adjacent", (long long)s->width,
                      texts[s->layout]);
    sample->special = s->layout == ROWS ? tfm__sample_input(sample, "x", dtype, 3, shape)
                                        : tfm__sample_input(sample, "x", dtype, 4, first);
    struct tfm_tensor *pos = positions(sample, s->layout, table_shape[0]);
    struct tfm_tensor *table = tfm__sample_buffer(sample, "table", companion, 3, table_shape);
    fill_table(sample, table);
    tfm__sample_output(
        sample, tfm_op_rope_layout(sample->graph, sample->special, pos, table, style,
                                   s->layout == ROWS ? TFM_ROPE_ROWS : TFM_ROPE_HEADS_FIRST));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct shape shapes[SHAPES + LAYOUTS - 1] = {
        {1, 2, 2, ROWS}, {3, 64, 64, ROWS},        {9, 80, 32, ROWS},
        {7, 6, 4, ROWS}, {3, 16, 12, HEADS_FIRST}, {2, 34, 34, POS_BUFFER},
    };
    const uint32_t n = SHAPES + LAYOUTS - 1, style = i / n % STYLES;

    make(sample, tfm__check_floats[i / n / STYLES], (enum tfm_rope_style)style, TFM__CHECK_ROWS,
         &shapes[i % n]);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const struct shape large = {32, 128, 128, ROWS};
    make(sample, tfm__check_floats[i / STYLES], (enum tfm_rope_style)(i % STYLES),
         TFM__CHECK_LARGE_ROWS, &large);
}

/* Four products and two sums a pair. */
static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 3 * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_rope = {
    .samples = TFM__CHECK_FLOATS * STYLES * (SHAPES + LAYOUTS - 1),
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS * STYLES,
    .build_large = build_large,
    .operations = operations,
};
