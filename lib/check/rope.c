/* SPDX-License-Identifier: MIT
 * rope for the checker: both kinds of pairs, whole and partial width, positions in no order and up to
 * the last of the table; heads outside and inside of the tokens, with positions of each row and as a
 * buffer. */
#include <math.h>

#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 10, STYLES = 2, TOKENS = 5 };

struct shape {
    int64_t heads, d, width;
    enum tfm_rope_layout layout;
    int shared; /* positions [T] as a buffer */
    int inverse;
};

static struct tfm_tensor *positions(struct tfm__sample *sample, const struct shape *s,
                                    int64_t table)
{
    static const int64_t tokens[] = {TOKENS};
    struct tfm_tensor *pos = s->shared
                                 ? tfm__sample_buffer(sample, "pos", TFM_DTYPE_I32, 1, tokens)
                                 : tfm__sample_input(sample, "pos", TFM_DTYPE_I32,
                                                     s->layout == TFM_ROPE_ROWS ? 1 : 2, tokens);

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
    static const char *const texts[] = {"", " of 5 tokens", " of 5 tokens, heads inside"};
    const enum tfm_dtype companion = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t shapes[][3] = {
        {s->heads, s->d}, {s->heads, TOKENS, s->d}, {TOKENS, s->heads, s->d}};
    const int64_t table_shape[] = {rows + 35, s->width / 2, 2};

    tfm__sample_begin(sample, rows, "%s [N, %lld, %lld] %s, width %lld%s%s%s",
                      tfm_dtype_name(dtype), (long long)s->heads, (long long)s->d,
                      style == TFM_ROPE_HALVES ? "halves" : "adjacent", (long long)s->width,
                      s->inverse ? ", inverse" : "", texts[s->layout],
                      s->shared ? ", pos a buffer" : "");
    sample->special = tfm__sample_input(sample, "x", dtype, s->layout == TFM_ROPE_ROWS ? 3 : 4,
                                        shapes[s->layout]);
    struct tfm_tensor *pos = positions(sample, s, table_shape[0]);
    struct tfm_tensor *table = tfm__sample_buffer(sample, "table", companion, 3, table_shape);
    fill_table(sample, table);
    tfm__sample_output(sample, (s->inverse ? tfm_op_rope_inverse : tfm_op_rope_layout)(
                                   sample->graph, sample->special, pos, table, style, s->layout));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct shape shapes[SHAPES] = {
        {1, 2, 2, TFM_ROPE_ROWS, 0, 0},           {3, 64, 64, TFM_ROPE_ROWS, 0, 0},
        {9, 80, 32, TFM_ROPE_ROWS, 0, 0},         {7, 6, 4, TFM_ROPE_ROWS, 0, 0},
        {3, 16, 12, TFM_ROPE_HEADS_FIRST, 0, 0},  {2, 34, 34, TFM_ROPE_HEADS_FIRST, 1, 0},
        {3, 16, 12, TFM_ROPE_TOKENS_FIRST, 0, 0}, {2, 34, 34, TFM_ROPE_TOKENS_FIRST, 1, 0},
        {9, 80, 34, TFM_ROPE_ROWS, 0, 1},         {2, 64, 64, TFM_ROPE_HEADS_FIRST, 1, 1},
    };
    const uint32_t style = i / SHAPES % STYLES;

    make(sample, tfm__check_floats[i / SHAPES / STYLES], (enum tfm_rope_style)style,
         TFM__CHECK_ROWS, &shapes[i % SHAPES]);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const struct shape large = {32, 128, 128, TFM_ROPE_ROWS, 0, 0};
    make(sample, tfm__check_floats[i / STYLES], (enum tfm_rope_style)(i % STYLES),
         TFM__CHECK_LARGE_ROWS, &large);
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
