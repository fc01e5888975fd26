/* SPDX-License-Identifier: MIT
 * A whole run of few rows in one launch: each part, a work-group of one work-item, goes through the same
 * table of steps and does its share of each; where a step ends a phase, the parts wait for each other.
 *
 *   part 0   norm q.. [ attend ] merge o.. [ norm gate.. ] down [ ...
 *   part 1   norm ..kv[ attend ] merge ..o [ norm ..up   ] down [ ...
 *                     ^ barrier
 *
 * OpenCL does not promise that work-groups run at the same time. So no part waits for long: all leave
 * at the same phase or none does, every step up to there was done exactly once, and the host launches
 * the phases that are left one by one: the same kernel with `first` and `end` around one phase, which
 * meets no barrier. Both ways run the same machine code; how many parts there are shows in no sum.
 *
 * Arguments: the buffers that operands lie in, the table, the control words (see step.h), steps
 * [first, end), 1 (0 = the first step again and again), parts, the bound of a wait in polls. */
#ifndef TFM_PERSISTENT
#define TFM_PERSISTENT 1
#endif
#ifndef TFM_ADD_CL
#include "add.cl"
#endif
#ifndef TFM_EMBEDDING_CL
#include "embedding.cl"
#endif
#ifndef TFM_ATTENTION_FEW_MERGE_CL
#include "gqa_attention_few_merge.cl"
#endif
#ifndef TFM_RMS_NORM_CL
#include "rms_norm.cl"
#endif
#ifndef TFM_TAKE_ROWS_CL
#include "take_rows.cl"
#endif

/* What a plan has: a bit for each TFM_PHASE_*, and for each dtype id of a weight. Only that is compiled. */
#ifndef TFM_PHASES
#define TFM_PHASES 0xffffffffu
#endif
#ifndef TFM_PROJECT_TYPES
#define TFM_PROJECT_TYPES 0xffffffffu
#endif
#define TFM_IS(s, name) ((TFM_PHASES >> TFM_PHASE_##name & 1u) && (s)->phase == TFM_PHASE_##name)
#define TFM_PROJECTS(s, name) \
    ((TFM_PROJECT_TYPES >> TFM_STEP_##name & 1u) && (s)->type[1] == TFM_STEP_##name)

/* While it polls a processor may be told that it does. The host sets this where it knows that the compiler
 * takes it. */
#ifdef TFM_PAUSE
#define TFM_POLL() __asm__ volatile("pause" ::: "memory")
#else
#define TFM_POLL() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

#define TFM_POISON 0x40000000

/* Word: arrivals so far, and a poison bit. 1 = all parts have arrived; 0 = leave, all others do. A part
 * arrives by compare-exchange, so that it is not counted on a poisoned word; the bit is set only while the
 * count is incomplete. So a count that completes is never poisoned, and one that is poisoned never
 * completes. */
static int tfm_barrier(volatile __global int *word, int complete, uint polls)
{
    int seen = *word;

    mem_fence(CLK_GLOBAL_MEM_FENCE);
    for (int was;; seen = was) {
        if (seen & TFM_POISON)
            return 0;
        was = atomic_cmpxchg(word, seen, seen + 1);
        if (was == seen)
            break;
    }
    for (uint i = 0; i < polls; i++) {
        seen = *word;
        TFM_POLL();
        if ((seen & ~TFM_POISON) >= complete)
            break;
        if (seen & TFM_POISON)
            return 0;
    }
    for (seen = atomic_add(word, 0); (seen & ~TFM_POISON) < complete;) {
        if (seen & TFM_POISON)
            return 0;
        const int was = atomic_cmpxchg(word, seen, seen | TFM_POISON);
        if (was == seen)
            return 0;
        seen = was;
    }
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    return 1;
}

/* rms_norm of all rows into the scratch of this part. */
static void tfm_phase_norm(__global uchar *const *o, __global const struct tfm_step *s,
                           __global const int *rows, uint part)
{
    __global float *own = (__global float *)o[2] + (ulong)part * s->scratch;
    const uint n = tfm_rows(s, rows);

    for (uint row = 0; row < n; row++)
        tfm_rms_norm_row(o[0], o[1], (__global uchar *)own, (ulong)row * s->width, s);
}

TFM_INLINE void tfm_phase_project(__global uchar *const *o, __global const struct tfm_step *s,
                                  __global const int *rows, uint part, uint parts)
{
    if (TFM_PROJECTS(s, Q4_1))
        tfm_project(TFM_STEP_Q4_1, o, s, rows, part, parts);
    else if (TFM_PROJECTS(s, Q8_0))
        tfm_project(TFM_STEP_Q8_0, o, s, rows, part, parts);
    else if (TFM_PROJECTS(s, Q4_0))
        tfm_project(TFM_STEP_Q4_0, o, s, rows, part, parts);
    else if (TFM_PROJECTS(s, F16))
        tfm_project(TFM_STEP_F16, o, s, rows, part, parts);
    else if (TFM_PROJECTS(s, BF16))
        tfm_project(TFM_STEP_BF16, o, s, rows, part, parts);
    else if (TFM_PROJECTS(s, F32))
        tfm_project(TFM_STEP_F32, o, s, rows, part, parts);
}

TFM_INLINE void tfm_phase(__global uchar *const *o, __global const struct tfm_step *s,
                          __global const int *rows, uint part, uint parts)
{
    if (TFM_IS(s, PROJECT))
        tfm_phase_project(o, s, rows, part, parts);
    else if (TFM_IS(s, NORM))
        tfm_phase_norm(o, s, rows, part);
    else if (TFM_IS(s, ATTEND))
        tfm_attention_few(o, s, rows, part, parts);
    else if (TFM_IS(s, MERGE))
        tfm_attention_few_merge(o, s, rows, part);
    else if (TFM_IS(s, APPEND))
        tfm_attention_few_append(o, s, rows, part, parts);
    else if (TFM_IS(s, EMBEDDING))
        tfm_embedding(o[0], (__global const int *)o[1], (__global float *)o[2], s, rows, part,
                      parts);
    else if (TFM_IS(s, TAKE_ROWS))
        tfm_take_rows(o[0], o[1], s, rows, part, parts);
    else if (TFM_IS(s, RMS_NORM))
        tfm_rms_norm(o[0], o[1], o[2], s, rows, part, parts);
    else if (TFM_IS(s, ROPE))
        tfm_rope(o[0], (__global const int *)o[1], (__global const float *)o[2], o[3], s, rows,
                 part, parts);
    else if (TFM_IS(s, ADD))
        tfm_add(o[0], o[1], o[2], s, rows, part, parts);
    else if (TFM_IS(s, SWIGLU))
        tfm_swiglu(o[0], o[1], o[2], s, rows, part, parts);
}

__kernel void tfm_run_persistent(__global uchar *b0, __global uchar *b1, __global uchar *b2,
                                 __global uchar *b3, __global uchar *b4, __global uchar *b5,
                                 __global uchar *b6, __global uchar *b7,
                                 __global const struct tfm_step *steps, __global int *control,
                                 uint first, uint end, uint stride, uint parts, uint polls)
{
    __global uchar *const base[8] = {b0, b1, b2, b3, b4, b5, b6, b7};
    __global const int *rows = control + TFM_CONTROL_ROWS;
    __global const int *stall = control + TFM_CONTROL_STALL;
    const uint part = get_group_id(0);
    int complete = 0;
    uint i = first;

    while (i < end) {
        __global const struct tfm_step *s = steps + (ulong)i * stride;
        __global uchar *o[TFM_STEP_OPERANDS];
        for (uint k = 0; k < TFM_STEP_OPERANDS; k++)
            o[k] = base[s->buffer[k] & 7u] + s->at[k];
        tfm_phase(o, s, rows, part, parts);
        i++;
        if (!s->barrier || i == end)
            continue;
        if ((stall[0] == (int)i || stall[0] < 0) && (uint)stall[1] == part) {
            for (int wait = stall[2]; wait > 0; wait--)
                TFM_POLL();
        }
        complete += (int)parts;
        if (!tfm_barrier(control + TFM_CONTROL_BARRIER, complete, polls * s->patience))
            break;
    }
    control[TFM_CONTROL_LEFT + part] = (int)i;
}
