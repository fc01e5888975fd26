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

/* Calls move(file piece, packed piece, bytes) for every piece of one block of one row. */
typedef void move(unsigned char *file, unsigned char *packed, size_t bytes);

static void to_packed(unsigned char *file, unsigned char *packed, size_t bytes)
{
    memcpy(packed, file, bytes);
}

static void to_file(unsigned char *file, unsigned char *packed, size_t bytes)
{
    memcpy(file, packed, bytes);
}

static inline void move_block(const struct layout *l, unsigned char *file, unsigned char *packed,
                              size_t lane, move *m)
{
    /* plain types: one number a lane; block types: scales, then quants by fours of k */
    const size_t unit = l->block == 1 ? l->quants : 4;

    for (size_t i = 0; i < l->scales; i++, file += 2, packed += 2 * TFM_PANEL)
        m(file, packed + 2 * lane, 2);
    for (size_t i = 0; i < l->quants; i += unit, file += unit, packed += unit * TFM_PANEL)
        m(file, packed + unit * lane, unit);
}

static void move_panels(const struct layout *l, unsigned char *file, size_t rows, size_t columns,
                        size_t begin, size_t end, unsigned char *packed, move *m)
{
    const size_t blocks = columns / l->block, bytes = row_block_bytes(l);

    for (size_t panel = begin; panel < end; panel++) {
        unsigned char *to = packed + panel * blocks * bytes * TFM_PANEL;
        for (size_t lane = 0; lane < TFM_PANEL; lane++) {
            const size_t row = panel * TFM_PANEL + lane;
            if (row >= rows)
                break;
            for (size_t b = 0; b < blocks; b++)
                move_block(l, file + (row * blocks + b) * bytes, to + b * bytes * TFM_PANEL, lane,
                           m);
        }
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
    move_panels(&l, (unsigned char *)(uintptr_t)file, rows, columns, begin, end, packed, to_packed);
}

void tfm__cl_unpack(enum tfm_dtype dtype, const void *packed, size_t rows, size_t columns,
                    size_t begin, size_t end, void *file)
{
    struct layout l;

    if (layout_of(dtype, &l))
        move_panels(&l, file, rows, columns, begin, end, (unsigned char *)(uintptr_t)packed,
                    to_file);
}
