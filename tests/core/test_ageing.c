/* SPDX-License-Identifier: MIT
 * The ageing rule. This program and lib/core/ageing.c are compiled against lists of the future
 * (tests/core/future), which have lines younger than any of today. */
#include "lib/core/ageing.h"

#include <string.h>

#include "tests/core/runner.h"

static const struct tfm_tensor f32 = {.dtype = TFM_DTYPE_F32, .rank = 1};
static const struct tfm_tensor f8 = {.dtype = TFM_DTYPE_F8, .rank = 1};
static const struct tfm_tensor foreign = {.dtype = (enum tfm_dtype)99, .rank = 1};

static const struct tfm_tensor trained = {.dtype = TFM_DTYPE_F32, .rank = 1, .is_trainable = 1};
static const struct tfm_tensor cube = {.dtype = TFM_DTYPE_F32, .rank = 3};

static const struct age {
    enum tfm_op op;
    uint32_t n_inputs;
    const struct tfm_tensor *inputs[7], *output;
    int32_t window, stride;
    double cap;
    uint32_t needs;     /* the first minor that may see the node; 9 = none */
    const char *reason; /* part of it, one minor earlier */
} ages[] = {
    {TFM_OP_ADD, 2, {&f32, &f32}, &f32, 0, 0, 1.5, 0, NULL},
    {TFM_OP_LINEAR, 3, {&f32, &f32, NULL}, &f32, 0, 0, 1.5, 0, NULL},
    {TFM_OP_GQA_ATTENTION, 5, {&f32, &f32, &f32, &f32, &f32}, &f32, 0, 0, 1.5, 0, NULL},
    /* minor 1 */
    {TFM_OP_MUL, 2, {&f32, &f32}, &f32, 0, 0, 1.5, 1, "op mul came with ABI minor 1"},
    {TFM_OP_LINEAR, 2, {&cube, &f32}, &cube, 0, 0, 1.5, 1, "linear with x of more than two"},
    {TFM_OP_RMS_NORM, 2, {&cube, &f32}, &cube, 0, 0, 1.5, 1, "rms_norm with x of more than two"},
    {TFM_OP_SWIGLU, 2, {&cube, &cube}, &cube, 0, 0, 1.5, 1, "swiglu with a gate of more than two"},
    {TFM_OP_EMBEDDING, 2, {&f32, &cube}, &cube, 0, 0, 1.5, 1, "embedding with ids of more than"},
    {TFM_OP_GQA_ATTENTION,
     5,
     {&f32, &f32, &f32, &f32, &f32},
     &f32,
     64,
     0,
     1.5,
     1,
     "attribute window came with ABI minor 1"},
    {TFM_OP_GQA_ATTENTION, 3, {&f32, &f32, &f32}, &f32, 0, 0, 1.5, 1, "with no cache came"},
    {TFM_OP_GQA_ATTENTION,
     7,
     {&f32, &f32, &f32, NULL, NULL, &f32, &f32},
     &f32,
     0,
     0,
     1.5,
     1,
     "gqa_attention with no cache came with ABI minor 1"},
    {TFM_OP_GQA_ATTENTION,
     7,
     {&f32, &f32, &f32, &f32, &f32, &f32, &f32},
     &f32,
     0,
     0,
     1.5,
     1,
     "gqa_attention with a relative bias came with ABI minor 1"},
    /* minor 2 */
    {TFM_OP_LINEAR, 2, {&f32, &trained}, &f32, 0, 0, 1.5, 2, "trainable parameters came with ABI"},
    {TFM_OP_LINEAR_GRAD_X, 2, {&f32, &f32}, &f32, 0, 0, 1.5, 2, "op linear_grad_x came with ABI"},
    /* the future */
    {TFM_OP_ADD, 2, {&f32, &f8}, &f32, 0, 0, 1.5, 2, "dtype f8 came with ABI minor 2"},
    {TFM_OP_CAST, 1, {&f32}, &f8, 0, 0, 1.5, 2, "dtype f8 came with ABI minor 2"},
    {TFM_OP_ADD, 2, {&f32, &f32}, &f32, 0, 64, 1.5, 2, "attribute stride came with ABI minor 2"},
    {TFM_OP_ADD, 4, {&f32, &f32, &f32, &f32}, &f32, 0, 0, 1.5, 2, "add with a fourth input came"},
    {TFM_OP_ADD, 2, {&f32, &f32}, &f32, 0, 0, 0, 3, "attribute cap came with ABI minor 3"},
    {TFM_OP_ADD, 2, {&f8, &f32}, &f32, 0, 0, 0, 3, "attribute cap came with ABI minor 3"},
    {TFM_OP_ROLL, 1, {&f32}, &f32, 0, 0, 1.5, 3, "op roll came with ABI minor 3"},
    {(enum tfm_op)150, 1, {&f32}, &f32, 0, 0, 1.5, 9, "op 150 is not in the list"},
    {TFM_OP_ADD, 2, {&f32, &foreign}, &f32, 0, 0, 1.5, 9, "dtype 99 is not in the list"},
};

/* Catches: a node that an old plugin would take for another: the young op, dtype or attribute is not seen,
 * a neutral value counts as use, or a plugin that is new enough is not asked. */
START_TEST(a_plugin_sees_what_it_can_know)
{
    const struct age *item = &ages[_i];
    struct tfm_node node = {.op = item->op, .n_inputs = item->n_inputs, .n_outputs = 1};

    for (int i = 0; i < 7; i++)
        node.inputs[i] = item->inputs[i];
    node.outputs[0] = item->output;
    node.attrs.window = item->window;
    node.attrs.stride = item->stride;
    node.attrs.cap = item->cap;
    for (uint32_t minor = 0; minor < 5; minor++) {
        char reason[120] = "untouched";
        const int may = tfm__ageing_may_see(minor, &node, reason, sizeof reason);
        ck_assert_msg(may == (minor >= item->needs), "minor %u: %s", (unsigned)minor, reason);
        if (may)
            ck_assert_str_eq(reason, "untouched");
        else if (minor + 1 == item->needs || item->needs == 9)
            ck_assert_msg(strstr(reason, item->reason) != NULL, "%s", reason);
    }
}
END_TEST

/* Catches: a reason that runs over the caller's buffer. */
START_TEST(the_reason_keeps_to_its_size)
{
    struct tfm_node node = {.op = TFM_OP_ROLL};
    char reason[16];

    memset(reason, '#', sizeof reason);
    ck_assert_int_eq(tfm__ageing_may_see(0, &node, reason, 8), 0);
    ck_assert_str_eq(reason, "op roll");
    ck_assert_int_eq(reason[8], '#');
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ageing");
    TCase *tcase = tests_case(suite, "nodes");
    tcase_add_loop_test(tcase, a_plugin_sees_what_it_can_know, 0,
                        (int)(sizeof ages / sizeof *ages));
    tcase_add_test(tcase, the_reason_keeps_to_its_size);
    return tests_run(suite);
}
