/* SPDX-License-Identifier: MIT
 * For tests of exports: a folder with a tokenizer, a small decoder with random weights, its logits and a file's. */
#ifndef TESTS_LLM_EXPORT_SCENE_H
#define TESTS_LLM_EXPORT_SCENE_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/folder.h"
#include "tests/llm/session_logits.h"
#include "tests/nn/net.h"

enum { N = 9, WIDTH = 64 };

static const int32_t ids[N] = {256, 72, 101, 108, 108, 111, 32, 119, 111};

static const char *const leftovers[] = {
    "words.gguf", "m.gguf",        "f/config.json",    "f/tokenizer.json",    "f/model.safetensors",
    "f",          "g/config.json", "g/tokenizer.json", "g/model.safetensors", "g"};

static inline void enter_folder(void)
{
    struct tiny_llama tiny = tiny_llama_default();

    folder_enter();
    tiny_llama_write(&tiny, "words.gguf"); /* for its tokenizer */
}

static inline void leave_folder(void)
{
    folder_leave(leftovers, sizeof leftovers / sizeof *leftovers);
}

static inline struct tfm_nn_decoder small(void)
{
    return (struct tfm_nn_decoder){
        .vocab = TINY_VOCAB,
        .width = WIDTH,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 16,
        .ffn_width = 96,
        .eps = 1e-5,
        .positions = 32,
        .tied = 1,
        .relative = {.buckets = 8, .max_distance = 16},
    };
}

/* The decoder with random weights, and the logits of its last row. */
static inline void make(struct net *net, const struct tfm_nn_decoder *config, double *logits)
{
    static const int32_t pos[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct tfm_error err = {0};

    net_begin(net, N, 1);
    tfm_nn_decoder(net->graph, config);
    ck_assert_msg(tfm_graph_check(net->graph, &err) == TFM_STATUS_OK, "%s", err.text);
    net_disturb(net);
    net_compile(net, 1);
    net_put_i32(net, "ids", 0, N, ids);
    if (tfm_graph_find(net->graph, "pos"))
        net_put_i32(net, "pos", 0, N, pos);
    net_run_n(net, N, 0);
    net_get(net, "logits", (size_t)(N - 1) * TINY_VOCAB, TINY_VOCAB, logits);
}

static inline struct tfm_export of(const struct net *net, const struct tfm_nn_decoder *config)
{
    return (struct tfm_export){config, net->weights, "words.gguf", "small"};
}

/* Largest distance of the file's logits from these. */
static inline double distance(const char *path, const double *logits)
{
    float got[TINY_VOCAB];
    double most = 0;

    session_logits(path, ids, N, got);
    for (int i = 0; i < TINY_VOCAB; i++) {
        const double far = fabs((double)got[i] - logits[i]);
        most = far > most || isnan(far) ? far : most;
    }
    return most;
}

static inline void to_gguf(const struct tfm_export *trained, enum tfm_dtype dtype)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_export_to_gguf(trained, "m.gguf", dtype, &err) == TFM_STATUS_OK, "%s",
                  err.text);
}

static inline void to_folder(const struct tfm_export *trained, enum tfm_dtype dtype)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_export_to_folder(trained, "f", dtype, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* The decoder as `make` has it, as folder "f" in F32. */
static inline void make_folder(struct net *net, const struct tfm_nn_decoder *config, double *logits)
{
    make(net, config, logits);
    const struct tfm_export trained = of(net, config);
    to_folder(&trained, TFM_DTYPE_F32);
}

static inline int file_has(const char *path, const char *text)
{
    static char data[1 << 16];
    FILE *file = fopen(path, "rb");

    ck_assert_ptr_nonnull(file);
    const size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    data[size] = '\0';
    return strstr(data, text) != NULL;
}

#endif
