/* SPDX-License-Identifier: MIT
 * The ageing rule: each line of the .def lists carries the ABI minor that brought it, and a node
 * that uses a younger line is never offered to a plugin that cannot know what it means. Reads the
 * lists alone, so that a test can compile it against lists of the future. */
#include "lib/core/ageing.h"

#include <stdio.h>

struct line {
    int32_t id;
    uint32_t minor;
    const char *name;
};

static const struct line ops[] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    {id, minor, #stem},
#include <tfm/ops.def>
#undef TFM_OP
};

static const struct line dtypes[] = {
#define TFM_DTYPE(id, NAME, name, block, bytes, class, minor) {id, minor, name},
#include <tfm/dtypes.def>
#undef TFM_DTYPE
};

/* 1 if line `id` of a list is known at `abi_minor`. */
static int known(const char *what, const struct line *lines, size_t n, int32_t id,
                 uint32_t abi_minor, char *reason, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (lines[i].id != id)
            continue;
        if (lines[i].minor <= abi_minor)
            return 1;
        snprintf(reason, size, "%s %s came with ABI minor %u, the plugin was built for minor %u",
                 what, lines[i].name, (unsigned)lines[i].minor, (unsigned)abi_minor);
        return 0;
    }
    snprintf(reason, size, "%s %d is not in the list", what, (int)id);
    return 0;
}

static int tensors_known(const struct tfm_tensor *const *tensors, uint32_t n, uint32_t abi_minor,
                         char *reason, size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        if (tensors[i] && !known("dtype", dtypes, sizeof dtypes / sizeof *dtypes,
                                 (int32_t)tensors[i]->dtype, abi_minor, reason, size))
            return 0;
    }
    return 1;
}

/* `away` is 1 if the attribute has another value than its neutral one: an old plugin computes as if
 * every attribute that it does not know were neutral. */
static int attribute_known(const char *name, int away, uint32_t minor, uint32_t abi_minor,
                           char *reason, size_t size)
{
    if (!away || minor <= abi_minor)
        return 1;
    snprintf(reason, size, "attribute %s came with ABI minor %u, the plugin was built for minor %u",
             name, (unsigned)minor, (unsigned)abi_minor);
    return 0;
}

/* `used` is 1 if the node needs what this line of uses.def says. */
static int use_known(const struct tfm_node *node, int used, const char *what, uint32_t minor,
                     uint32_t abi_minor, char *reason, size_t size)
{
    const char *name = "?";

    if (!used || minor <= abi_minor)
        return 1;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        name = ops[i].id == (int32_t)node->op ? ops[i].name : name;
    snprintf(reason, size, "%s with %s came with ABI minor %u, the plugin was built for minor %u",
             name, what, (unsigned)minor, (unsigned)abi_minor);
    return 0;
}

/* An old plugin takes every parameter for a constant. */
static int trainable_known(const struct tfm_node *node, uint32_t abi_minor, char *reason,
                           size_t size)
{
    enum { CAME = 2 };

    for (uint32_t i = 0; i < node->n_inputs && abi_minor < CAME; i++) {
        if (!node->inputs[i] || !node->inputs[i]->is_trainable)
            continue;
        snprintf(reason, size,
                 "trainable parameters came with ABI minor %d, the plugin was built for minor %u",
                 CAME, (unsigned)abi_minor);
        return 0;
    }
    return 1;
}

int tfm__ageing_may_see(uint32_t abi_minor, const struct tfm_node *node, char *reason, size_t size)
{
    if (!known("op", ops, sizeof ops / sizeof *ops, (int32_t)node->op, abi_minor, reason, size) ||
        !tensors_known(node->inputs, node->n_inputs, abi_minor, reason, size) ||
        !tensors_known(node->outputs, node->n_outputs, abi_minor, reason, size) ||
        !trainable_known(node, abi_minor, reason, size))
        return 0;
#define TFM_ATTR(ctype, name, neutral, minor, meaning)                                          \
    if (!attribute_known(#name, node->attrs.name != (neutral), minor, abi_minor, reason, size)) \
        return 0;
#include <tfm/attrs.def>
#undef TFM_ATTR
#define TFM_USE(NAME, condition, minor, what)                                \
    if (node->op == TFM_OP_##NAME &&                                         \
        !use_known(node, (condition), what, minor, abi_minor, reason, size)) \
        return 0;
#include <tfm/uses.def>
#undef TFM_USE
    return 1;
}
