/* SPDX-License-Identifier: MIT
 * embedding for the checker: every table dtype; ids go through the table with both of its ends; a
 * learned table read by positions, ids of two extents. */
#include "lib/check/op.h"

enum { SHAPES = 4, KINDS = TFM__CHECK_WEIGHTS + 1 }; /* the last has a trainable table of F32 */
enum kind { IDS, POSITIONS, TWO_EXTENTS };

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, int trainable, uint32_t rows,
                 int64_t vocab, int64_t width, enum kind kind)
{
    static const char *const texts[] = {"", " by positions", " ids [N, 3]"};
    const int64_t shape[] = {vocab, width}, three[] = {3};

    tfm__sample_begin(sample, rows, "%s%s table [%lld, %lld]%s", trainable ? "trainable " : "",
                      tfm_dtype_name(dtype), (long long)vocab, (long long)width, texts[kind]);
    struct tfm_tensor *table = trainable ? tfm__sample_trainable(sample, "table", dtype, 2, shape)
                                         : tfm__sample_parameter(sample, "table", dtype, 2, shape);
    struct tfm_tensor *ids =
        tfm__sample_input(sample, "ids", TFM_DTYPE_I32, kind == TWO_EXTENTS ? 2 : 1, three);
    for (size_t r = 0; r < tfm__sample_count(sample, ids); r++) {
        const double id = (double)((vocab - 1 + (int64_t)r * (vocab > 13 ? 13 : 1)) % vocab);
        tfm__sample_set(sample, ids, r, 1, &id);
    }
    tfm__sample_output(sample, kind == POSITIONS
                                   ? tfm_op_position_embedding(sample->graph, table, ids)
                                   : tfm_op_embedding(sample->graph, table, ids));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int64_t vocab, width;
    } plain[SHAPES] = {{1, 1}, {7, 33}, {97, 65}, {70, 31}},
      blocks[SHAPES] = {{1, 32}, {7, 96}, {97, 576}, {70, 64}};
    static const enum kind kinds[SHAPES] = {IDS, TWO_EXTENTS, IDS, POSITIONS};
    const int trainable = i / SHAPES == TFM__CHECK_WEIGHTS;
    const enum tfm_dtype dtype = trainable ? TFM_DTYPE_F32 : tfm__check_weights[i / SHAPES];
    const int is_block = tfm_dtype_info(dtype)->block > 1;

    make(sample, dtype, trainable, TFM__CHECK_ROWS,
         is_block ? blocks[i % SHAPES].vocab : plain[i % SHAPES].vocab,
         is_block ? blocks[i % SHAPES].width : plain[i % SHAPES].width, kinds[i % SHAPES]);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, tfm__check_weights[i], 0, TFM__CHECK_LARGE_ROWS, 4096, 1024, IDS);
}

/* Only the rows that are asked for are read. */
static double bytes(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_tensor *table = tfm_graph_node(sample->graph, 0)->inputs[0];
    const int64_t n = tfm_tensor_rows(sample->outputs[0], rows);
    return (double)(tfm__drive_bytes(table, n) + tfm__drive_bytes(sample->outputs[0], n));
}

const struct tfm__check_op tfm__check_op_embedding = {
    .samples = KINDS * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_WEIGHTS,
    .build_large = build_large,
    .operations = tfm__check_elements,
    .bytes = bytes,
};
