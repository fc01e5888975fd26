/* SPDX-License-Identifier: MIT
 * What `tfm tune` may choose for a device. Candidates are the ways that there really are; which of them compute
 * right values and are fast is for the device to show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/tune.h"

/* Sets of CLBlast's Xgemm parameters, in the order of tfm__cl_gemm_names: local memory and groups are for
 * GPUs, on CPUs they only cost. */
static const struct {
    int for_cpu;
    const char *name;
    size_t values[TFM__CL_GEMM_PARAMETERS];
} sets[] = {
    /* GEMMK KREG KWG KWI MDIMA MDIMC MWG NDIMB NDIMC NWG SA SB STRM STRN VWM VWN */
    {1, "CLBlast, 16 x 16, vectors of 8", {0, 1, 16, 2, 1, 1, 16, 1, 1, 16, 0, 0, 0, 0, 8, 8}},
    {1, "CLBlast, 32 x 16, vectors of 8", {0, 1, 16, 2, 1, 1, 32, 1, 1, 16, 0, 0, 0, 0, 8, 8}},
    {1, "CLBlast, 16 x 8, vectors of 8", {0, 1, 16, 2, 1, 1, 16, 1, 1, 8, 0, 0, 0, 0, 8, 8}},
    {0, "CLBlast, 32 x 32", {0, 1, 16, 2, 8, 8, 32, 8, 8, 32, 0, 0, 0, 0, 1, 1}},
    {0, "CLBlast, 32 x 64, local memory", {0, 1, 16, 2, 8, 8, 32, 8, 8, 64, 1, 1, 0, 0, 1, 1}},
    {0, "CLBlast, 64 x 64, vectors of 2", {0, 1, 32, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 2, 2}},
    {0, "CLBlast, 64 x 64, vectors of 4", {0, 1, 32, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4}},
    {0,
     "CLBlast, 128 x 128, vectors of 4",
     {0, 1, 16, 2, 16, 16, 128, 16, 16, 128, 1, 1, 0, 1, 4, 4}},
};
enum { SETS = sizeof sets / sizeof *sets };
_Static_assert((int)SETS <= (int)TFM__CL_TUNE_SETS, "tune.h has room for all sets");

enum { CPU = 1, OTHER = 2, ANY = CPU | OTHER }; /* kinds of devices, bits */

struct choice {
    uint32_t where;
    const char *name, *lines;
};
enum { CHOICES = 8 };

static const struct choice shapes[CHOICES] = {
    {CPU, "groups of 64 work-items", "shape = group\ngroup = 64\n"},
    {OTHER, "groups of 64 work-items", "shape = group\ngroup = 64\n"},
    {OTHER, "groups of 128 work-items", "shape = group\ngroup = 128\n"},
    {OTHER, "wide", "shape = wide\n"},
};
static const struct choice parts[CHOICES] = {
    {ANY, "1 a compute unit", "parts = 1\n"},
    {ANY, "2 a compute unit", "parts = 2\n"},
    {ANY, "8 a compute unit", "parts = 8\n"},
    {OTHER, "16 a compute unit", "parts = 16\n"},
};
static const struct choice gemms[CHOICES] = {
    {ANY, "our own kernel", "gemm = own\n"}, /* and the sets */
};
static const struct choice acts[CHOICES] = {
    {ANY, "f32", "act = f32\n"},
    {ANY, "8 bits", "act = int8\n"},
};
static const struct choice persistents[CHOICES] = {
    {CPU, "a launch a phase", "persistent = off\n"},
};
static const struct choice splits[CHOICES] = {
    {CPU, "32 cells", "attention.few = 32\n"},
    {CPU, "128 cells", "attention.few = 128\n"},
    {CPU, "256 cells", "attention.few = 256\n"},
    {OTHER, "64 cells", "attention.split = 64\n"},
    {OTHER, "128 cells", "attention.split = 128\n"},
    {OTHER, "512 cells", "attention.split = 512\n"},
};

static const struct {
    const char *name;
    uint32_t where, work, elsewhere; /* elsewhere: the work on what is no CPU */
    const char *variable, *given;
    const struct choice *choices; /* [CHOICES], up to the first without a name */
} areas[] = {
    {"shape of the kernels", ANY, TFM_TUNE_TOKEN, TFM_TUNE_TOKEN, "TFM_OPENCL_SHAPE", "", shapes},
    {"parts of a launch", ANY, TFM_TUNE_LINEAR, TFM_TUNE_TOKEN, NULL, "", parts},
    {"GEMM of many rows", ANY, TFM_TUNE_LINEAR, TFM_TUNE_LINEAR, "TFM_OPENCL_GEMM", "act = f32\n",
     gemms},
    {"activations", ANY, TFM_TUNE_LINEAR, TFM_TUNE_LINEAR, "TFM_ACT", "", acts},
    {"persistent kernel", CPU, TFM_TUNE_TOKEN, TFM_TUNE_TOKEN, "TFM_OPENCL_PERSISTENT", "",
     persistents},
    {"splits of a context", ANY, TFM_TUNE_CONTEXT, TFM_TUNE_CONTEXT, NULL, "", splits},
};
enum { AREAS = sizeof areas / sizeof *areas };
_Static_assert((int)AREAS <= (int)TFM__CL_TUNE_AREAS, "tune.h has room for all areas");
_Static_assert((int)CHOICES < (int)TFM__CL_TUNE_CANDIDATES &&
                   (int)SETS + 2 <= (int)TFM__CL_TUNE_CANDIDATES,
               "tune.h has room for all candidates");

static void add_set(struct tfm__cl_tune_table *t, struct tfm_tune_area *area,
                    struct tfm_tune_candidate *candidates, size_t i)
{
    char *lines = t->lines[i];
    int n = snprintf(lines, TFM__CL_TUNE_LINES, "gemm = clblast\n");

    for (size_t k = 0; k < TFM__CL_GEMM_PARAMETERS; k++)
        n += snprintf(lines + n, TFM__CL_TUNE_LINES - (size_t)n, "xgemm.%s = %zu\n",
                      tfm__cl_gemm_names[k], sets[i].values[k]);
    candidates[area->n++] = (struct tfm_tune_candidate){sets[i].name, lines};
}

void tfm__cl_tune_fill(const struct tfm__cl_device *d, struct tfm__cl_tune_table *t)
{
    const int cpu = d->kind == TFM_DEVICE_CPU;
    const uint32_t where = cpu ? CPU : OTHER;

    t->table = (struct tfm_tune){
        .struct_size = sizeof t->table,
        .variable = TFM__CL_TUNE_VARIABLE,
        .path = t->path,
        .head = t->head,
        .areas = t->areas,
    };
    for (size_t i = 0; i < AREAS; i++) {
        if (!(areas[i].where & where))
            continue;
        struct tfm_tune_candidate *candidates = t->candidates[t->table.n];
        struct tfm_tune_area *area = &t->areas[t->table.n++];
        const char *forced = areas[i].variable ? secure_getenv(areas[i].variable) : NULL;
        *area = (struct tfm_tune_area){
            .name = areas[i].name,
            .work = cpu ? areas[i].work : areas[i].elsewhere,
            .forced = forced && forced[0] && strcmp(forced, "auto") != 0 ? areas[i].variable : NULL,
            .given = areas[i].given,
            .candidates = candidates,
        };
        candidates[area->n++] = (struct tfm_tune_candidate){"as shipped", ""};
        for (size_t k = 0; k < CHOICES && areas[i].choices[k].name; k++)
            if (areas[i].choices[k].where & where)
                candidates[area->n++] = (struct tfm_tune_candidate){areas[i].choices[k].name,
                                                                    areas[i].choices[k].lines};
        for (size_t k = 0; k < SETS && areas[i].choices == gemms; k++)
            if (sets[k].for_cpu == cpu)
                add_set(t, area, candidates, k);
    }
}

const struct tfm_tune *tfm__cl_tune(const struct tfm__cl_device *d)
{
    return &d->tune->table;
}
