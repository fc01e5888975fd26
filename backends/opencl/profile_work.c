/* SPDX-License-Identifier: MIT
 * What a launch moves and computes at least, for the table of TFM_PROFILE: each tensor once, as it is stored. */
#include <string.h>

#include "backends/opencl/profile.h"

struct tfm__cl_run tfm__cl_run_of(const struct tfm_rows *rows)
{
    struct tfm__cl_run run = {.n = rows->n, .n_out = rows->n_out, .n_seq = rows->n_seq};

    run.decode = rows->n > 0 && rows->n == rows->n_seq;
    for (uint32_t s = 0; s < rows->n_seq; s++) {
        const uint64_t end = s + 1 < rows->n_seq ? (uint64_t)rows->start[s + 1] : rows->n;
        const uint64_t n = end - (uint64_t)rows->start[s], past = (uint64_t)rows->past[s];
        run.cells += past + n;
        run.looked += n * past + n * (n + 1) / 2;
    }
    return run;
}

static uint64_t rows_of(const struct tfm_step *step, const struct tfm__cl_run *run)
{
    return (uint64_t)(step->rows == TFM_STEP_OUT_ROWS ? run->n_out : run->n) * step->vectors;
}

/* Of a value that is stored plainly. */
static uint64_t value_bytes(uint32_t type)
{
    return type == TFM_STEP_F16 || type == TFM_STEP_BF16 ? 2 : type == TFM_STEP_F64 ? 8 : 4;
}

static struct tfm__cl_work linear(const struct tfm__cl_launch *launch,
                                  const struct tfm__cl_run *run)
{
    const struct tfm_step *s = &launch->step;
    const uint64_t rows = rows_of(s, run), panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    const uint64_t weight =
        panels * tfm__cl_panel_bytes((enum tfm_dtype)launch->operands[1].type, s->width);
    const uint64_t weights = s->project & TFM_PROJECT_GATE ? 2 : 1;

    return (struct tfm__cl_work){.bytes = weights * weight + 4 * rows * (s->width + s->out),
                                 .flop = weights * 2 * rows * s->width * s->out};
}

static struct tfm__cl_work attend(const struct tfm__cl_launch *launch,
                                  const struct tfm__cl_run *run)
{
    const struct tfm_step *s = &launch->step;
    const uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->kv_heads * s->head_dim;
    uint64_t cells = run->cells, looked = run->looked;

    if (s->window && cells > (uint64_t)s->window * run->n_seq)
        cells = (uint64_t)s->window * run->n_seq;
    if (s->window && looked > (uint64_t)s->window * run->n)
        looked = (uint64_t)s->window * run->n;
    return (struct tfm__cl_work){.bytes = 8 * run->n * q +
                                          2 * cells * kv * value_bytes(launch->operands[2].type),
                                 .flop = 4 * looked * q};
}

static struct tfm__cl_work append(const struct tfm__cl_launch *launch,
                                  const struct tfm__cl_run *run)
{
    const uint64_t kv = (uint64_t)launch->step.kv_heads * launch->step.head_dim;
    return (struct tfm__cl_work){
        .bytes = 2 * run->n * kv *
                 (value_bytes(launch->operands[0].type) + value_bytes(launch->operands[2].type))};
}

/* adamw: g, m, v and the exact values are read and written, a narrow w beside them is written. */
static struct tfm__cl_work update(const struct tfm__cl_launch *launch,
                                  const struct tfm__cl_run *run)
{
    const uint64_t n = run->n ? launch->step.width : 0;
    const uint64_t narrow =
        launch->operands[5].place == TFM__CL_ABSENT ? 0 : value_bytes(launch->operands[0].type);

    return (struct tfm__cl_work){.bytes = n * (32 + narrow), .flop = 16 * n};
}

/* What goes element by element: its tensors, and the cost that the planner knows. */
static struct tfm__cl_work plain(const struct tfm__cl_launch *launch, const struct tfm__cl_run *run)
{
    const struct tfm_step *s = &launch->step;
    const uint64_t n = s->rows == TFM_STEP_OUT_ROWS ? run->n_out : run->n;
    /* rope has heads instead of a width */
    const uint64_t width = s->width         ? s->width
                           : s->vectors > 1 ? s->head_dim
                                            : (uint64_t)s->heads * s->head_dim;
    struct tfm__cl_work work = {.flop = n * launch->cost};

    for (uint32_t k = 0; k < launch->n_operands; k++) {
        if (launch->operands[k].place == TFM__CL_MEMORY && launch->operands[k].type != TFM_STEP_I32)
            work.bytes += rows_of(s, run) * width * value_bytes(launch->operands[k].type);
    }
    return work;
}

/* The first whose kernel's name begins so. */
static const struct {
    const char *name;
    struct tfm__cl_work (*work)(const struct tfm__cl_launch *launch, const struct tfm__cl_run *run);
} kinds[] = {
    {"tfm_run_adamw", update},
    {"tfm_run_linear", linear},
    {"tfm_run_gqa_attention_attend", attend},
    {"tfm_run_gqa_attention_append", append},
};

/* What is not here goes element by element. */
static struct tfm__cl_work (*const phases[])(const struct tfm__cl_launch *launch,
                                             const struct tfm__cl_run *run) = {
    [TFM_PHASE_PROJECT] = linear,
    [TFM_PHASE_ATTEND] = attend,
    [TFM_PHASE_APPEND] = append,
};

struct tfm__cl_work tfm__cl_work_of(const struct tfm__cl_launch *launch,
                                    const struct tfm__cl_run *run)
{
    const char *name = launch->kernel.name;
    const uint32_t phase = launch->step.phase;

    if (!name)
        return phase < sizeof phases / sizeof *phases && phases[phase] ? phases[phase](launch, run)
                                                                       : plain(launch, run);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(name, kinds[i].name, strlen(kinds[i].name)) == 0)
            return kinds[i].work(launch, run);
    }
    return plain(launch, run);
}
