/* SPDX-License-Identifier: MIT
 * The arena: tensors whose lifetimes do not overlap share bytes. Larger ones are placed first, each
 * at the lowest offset that is free for its whole life. */
#include <stdlib.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/plan.h"

struct item {
    struct tfm__place *place;
    size_t size;
    uint32_t id;
};

static int by_size(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int overlap(const struct tfm__place *a, const struct tfm__place *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* items[0..n) are placed and sorted by offset; finds the lowest gap for `item`. */
static size_t lowest_gap(const struct item *items, size_t n, const struct item *item)
{
    size_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tfm__place *other = items[i].place;
        if (!overlap(other, item->place))
            continue;
        if (other->offset >= offset && other->offset - offset >= item->size)
            break;
        if (other->offset + items[i].size > offset)
            offset = other->offset + items[i].size;
    }
    return offset;
}

/* items[0..n) are sorted by offset; puts items[n] among them. */
static void insert(struct item *items, size_t n)
{
    const struct item item = items[n];
    size_t at = n;

    while (at > 0 && items[at - 1].place->offset > item.place->offset)
        at--;
    memmove(items + at + 1, items + at, (n - at) * sizeof *items);
    items[at] = item;
}

enum tfm_status tfm__plan_layout(struct tfm_plan *plan, struct tfm_error *err)
{
    struct item *items = tfm__alloc_array(plan->n_tensors + 1, sizeof *items);

    if (!items)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "plan: out of memory");
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        size_t n = 0;
        for (uint32_t t = 0; t < plan->n_tensors; t++) {
            struct tfm__place *place = &plan->places[(size_t)d * plan->n_tensors + t];
            if (place->home == TFM__HOME_ARENA) {
                items[n] = (struct item){place, 0, t};
                /* the graph bounds each tensor to a quarter of the address space */
                if (tfm__align_size(place->bytes, TFM_ALIGNMENT, &items[n].size)) {
                    tfm__free(items);
                    return tfm_error_set(err, TFM_STATUS_NOMEM, "plan: a tensor is too large");
                }
                n++;
            }
        }
        qsort(items, n, sizeof *items, by_size);
        plan->arena[d] = 0;
        for (size_t i = 0; i < n; i++) {
            const size_t offset = lowest_gap(items, i, &items[i]);
            size_t end;
            if (tfm__add_size(offset, items[i].size, &end)) {
                tfm__free(items);
                return tfm_error_set(err, TFM_STATUS_NOMEM, "plan: the arena is too large");
            }
            items[i].place->offset = offset;
            if (end > plan->arena[d])
                plan->arena[d] = end;
            insert(items, i);
        }
    }
    tfm__free(items);
    return TFM_STATUS_OK;
}
