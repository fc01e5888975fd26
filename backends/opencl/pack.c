/* SPDX-License-Identifier: MIT
 * The packed form of weights (kernels/step.h says how it lies): 16 rows become a panel, lane = row. A
 * bijection but for the padding rows. Plain host code, without OpenCL. */
#include <string.h>

#include <tfm/dtype.h>

#include "backends/opencl/internal.h"

/* How a type is stored in a file: `scales` f16 numbers, then `quants` bytes, for each block of a row. */
struct layout {
    size_t block; /* values of a row in a block */
    size_t scales, quants;
};

static int layout_of(enum tfm_dtype dtype, struct layout *layout)
{
    static const struct layout layouts[TFM_DTYPE_COUNT] = {
        [TFM_DTYPE_F32] = {1, 0, 4},    [TFM_DTYPE_F16] = {1, 0, 2},
        [TFM_DTYPE_BF16] = {1, 0, 2},   [TFM_DTYPE_Q4_0] = {32, 1, 16},
        [TFM_DTYPE_Q4_1] = {32, 2, 16}, [TFM_DTYPE_Q8_0] = {32, 1, 32},
    };

    if ((unsigned)dtype >= TFM_DTYPE_COUNT || layouts[dtype].block == 0)
        return 0;
    *layout = layouts[dtype];
    return 1;
}

static size_t row_block_bytes(const struct layout *l)
{
    return l->scales * 2 + l->quants;
}

size_t tfm__cl_panel_bytes(enum tfm_dtype dtype, size_t columns)
{
    struct layout l;

    if (!layout_of(dtype, &l) || columns % l.block != 0)
        return 0;
    return columns / l.block * row_block_bytes(&l) * TFM_PANEL;
}

enum direction { TO_PACKED, TO_FILE };

/* One number of each of `lanes` rows: `bytes` at `file`, in the next row `stride` further; lane by lane at
 * `packed`. Inlined with constants, so that a move is one load and one store. */
static inline __attribute__((always_inline)) void move_lanes(unsigned char *file, size_t stride,
                                                             unsigned char *packed, size_t lanes,
                                                             size_t bytes, enum direction to)
{
    for (size_t lane = 0; lane < lanes; lane++) {
        if (to == TO_PACKED)
            memcpy(packed + lane * bytes, file + lane * stride, bytes);
        else
            memcpy(file + lane * stride, packed + lane * bytes, bytes);
    }
}

/* All blocks of the first `lanes` rows of a panel. Plain types: one number a lane; block types: scales, then
 * quants by fours of k. */
static inline __attribute__((always_inline)) void move_panel(const struct layout *l,
                                                             unsigned char *file, size_t blocks,
                                                             unsigned char *packed, size_t lanes,
                                                             size_t unit, enum direction to)
{
    const size_t stride = blocks * row_block_bytes(l);

    for (size_t b = 0; b < blocks; b++) {
        for (size_t i = 0; i < l->scales; i++, file += 2, packed += 2 * TFM_PANEL)
            move_lanes(file, stride, packed, lanes, 2, to);
        for (size_t i = 0; i < l->quants; i += unit, file += unit, packed += unit * TFM_PANEL)
            move_lanes(file, stride, packed, lanes, unit, to);
    }
}

static inline __attribute__((always_inline)) void
move_panels(const struct layout *l, unsigned char *file, size_t rows, size_t columns, size_t begin,
            size_t end, unsigned char *packed, enum direction to)
{
    const size_t blocks = columns / l->block, bytes = blocks * row_block_bytes(l);
    const int wide = l->block > 1 || l->quants == 4;

    for (size_t panel = begin; panel < end; panel++) {
        const size_t left = rows - panel * TFM_PANEL;
        unsigned char *from = file + panel * TFM_PANEL * bytes;
        unsigned char *at = packed + panel * TFM_PANEL * bytes;
        if (left < TFM_PANEL)
            move_panel(l, from, blocks, at, left, wide ? 4 : 2, to);
        else if (wide)
            move_panel(l, from, blocks, at, TFM_PANEL, 4, to);
        else
            move_panel(l, from, blocks, at, TFM_PANEL, 2, to);
    }
}

void tfm__cl_pack(enum tfm_dtype dtype, const void *file, size_t rows, size_t columns, size_t begin,
                  size_t end, void *packed)
{
    struct layout l;

    if (!layout_of(dtype, &l))
        return;
    if (end * TFM_PANEL > rows && end > begin) { /* only the last panel has padding rows */
        const size_t bytes = tfm__cl_panel_bytes(dtype, columns);
        memset((unsigned char *)packed + (end - 1) * bytes, 0, bytes);
    }
    move_panels(&l, (unsigned char *)(uintptr_t)file, rows, columns, begin, end, packed, TO_PACKED);
}

void tfm__cl_unpack(enum tfm_dtype dtype, const void *packed, size_t rows, size_t columns,
                    size_t begin, size_t end, void *file)
{
    struct layout l;

    if (layout_of(dtype, &l))
        move_panels(&l, file, rows, columns, begin, end, (unsigned char *)(uintptr_t)packed,
                    TO_FILE);
}
