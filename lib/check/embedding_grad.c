/* SPDX-License-Identifier: MIT
 * embedding_grad for the checker: ids that repeat, both ends of the table, two extents. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 4 };

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows, int64_t vocab,
                 int64_t width, int rank)
{
    const int64_t shape[] = {vocab, width}, dy_shape[] = {3, width};

    tfm__sample_begin(sample, rows, "%s table [%lld, %lld]%s", tfm_dtype_name(dtype),
                      (long long)vocab, (long long)width, rank > 1 ? " ids [N, 3]" : "");
    struct tfm_tensor *ids = tfm__sample_input(sample, "ids", TFM_DTYPE_I32, rank, (int64_t[]){3});
    for (size_t r = 0; r < tfm__sample_count(sample, ids); r++) {
        const double id = (double)((vocab - 1 + (int64_t)(r / 2) * (vocab > 13 ? 13 : 1)) % vocab);
        tfm__sample_set(sample, ids, r, 1, &id);
    }
    struct tfm_tensor *dy =
        tfm__sample_input(sample, "dy", dtype, rank + 1, &dy_shape[rank > 1 ? 0 : 1]);
    struct tfm_tensor *dtable = tfm__sample_sum(sample, "dtable", dtype, 2, shape);
    tfm__sample_output(sample, tfm_op_embedding_grad(sample->graph, ids, dy, dtable, 0));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shapes[SHAPES][2] = {{1, 1}, {7, 33}, {97, 65}, {70, 31}};

    make(sample, dtypes[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES][0], shapes[i % SHAPES][1],
         i % SHAPES == 1 ? 2 : 1);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    make(sample, dtypes[i], TFM__CHECK_LARGE_ROWS, 4096, 1024, 1);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    return (double)rows->n * (double)tfm_tensor_row_elements(node->inputs[1]);
}

/* dy, and the rows of the table that ids name, there and back. */
static double bytes(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 3 * (double)tfm__drive_bytes(tfm_graph_node(sample->graph, 0)->inputs[1], rows->n);
}

const struct tfm__check_op tfm__check_op_embedding_grad = {
    .samples = 2 * SHAPES,
    .build = build,
    .ways = tfm__check_sums,
    .n_ways = TFM__CHECK_SUM_WAYS,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
    .bytes = bytes,
};
