/* SPDX-License-Identifier: MIT
 * Names of the tensors of a Llama in GGUF files, in folders and in our decoder, from llama.def. */
#include <stdio.h>
#include <string.h>

#include "lib/llm/folder.h"

static const struct {
    const char *file, *theirs;
} whole[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};

static const struct {
    const char *file, *theirs, *ours;
} stems[] = {
#define TFM_LLAMA_NORM(file, theirs, ours)                                 {file, theirs, ours},
#define TFM_LLAMA_LINEAR(file, theirs, ours, field, out_dim, in_dim, bias) {file, theirs, ours},
#include "lib/llm/llama.def"
#undef TFM_LLAMA_NORM
#undef TFM_LLAMA_LINEAR
};

enum { WHOLE = sizeof whole / sizeof *whole, STEMS = sizeof stems / sizeof *stems };

/* Splits "PREFIX N . STEM . weight|bias" ; returns 1 if it is not of that form. */
static int split(const char *name, const char *prefix, unsigned *layer, char stem[64],
                 const char **kind)
{
    const size_t n_prefix = strlen(prefix);
    const char *last = strrchr(name, '.');
    unsigned value = 0;

    if (strncmp(name, prefix, n_prefix) != 0 || !last)
        return 1;
    const char *at = name + n_prefix;
    /* one way to write a number: the names there and back are the same */
    if (*at < '0' || *at > '9' || (*at == '0' && at[1] != '.'))
        return 1;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = 10 * value + (unsigned)(*at - '0');
        if (value > 1 << 24)
            return 1;
    }
    if (*at != '.' || last <= at + 1 || last - at > 63 ||
        (strcmp(last, ".weight") != 0 && strcmp(last, ".bias") != 0))
        return 1;
    snprintf(stem, 64, "%.*s", (int)(last - at - 1), at + 1);
    *layer = value;
    *kind = last;
    return 0;
}

int tfm__folder_name_in(const char *theirs, char name[64])
{
    const char *kind;
    char stem[64];
    unsigned layer;

    for (size_t i = 0; i < WHOLE; i++)
        if (strcmp(whole[i].theirs, theirs) == 0) {
            snprintf(name, 64, "%s", whole[i].file);
            return 0;
        }
    if (split(theirs, "model.layers.", &layer, stem, &kind))
        return 1;
    for (size_t i = 0; i < STEMS; i++)
        if (strcmp(stems[i].theirs, stem) == 0) {
            snprintf(name, 64, "blk.%u.%s%s", layer, stems[i].file, kind);
            return 0;
        }
    return 1;
}

int tfm__folder_name_out(const char *name, char theirs[128])
{
    const char *kind;
    char stem[64];
    unsigned layer;

    for (size_t i = 0; i < WHOLE; i++)
        if (strcmp(whole[i].file, name) == 0) {
            snprintf(theirs, 128, "%s", whole[i].theirs);
            return 0;
        }
    if (split(name, "blk.", &layer, stem, &kind))
        return 1;
    for (size_t i = 0; i < STEMS; i++)
        if (strcmp(stems[i].file, stem) == 0) {
            snprintf(theirs, 128, "model.layers.%u.%s%s", layer, stems[i].theirs, kind);
            return 0;
        }
    return 1;
}

int tfm__llama_name(const char *ours, char name[64])
{
    const char *kind;
    char stem[64];
    unsigned layer;

    for (size_t i = 0; i < WHOLE; i++)
        if (strcmp(whole[i].file, ours) == 0) { /* those are the same */
            snprintf(name, 64, "%s", ours);
            return 0;
        }
    if (split(ours, "blk.", &layer, stem, &kind))
        return 1;
    for (size_t i = 0; i < STEMS; i++)
        if (strcmp(stems[i].ours, stem) == 0) {
            snprintf(name, 64, "blk.%u.%s%s", layer, stems[i].file, kind);
            return 0;
        }
    return 1;
}
