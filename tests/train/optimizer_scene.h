/* SPDX-License-Identifier: MIT
 * A small net that is trained, with an optimizer, on the backend under test: an embedding, a norm, a linear with a
 * bias, whose gradients come from a pass or are written by hand. */
#ifndef TESTS_TRAIN_OPTIMIZER_SCENE_H
#define TESTS_TRAIN_OPTIMIZER_SCENE_H

#include <tfm/optimizer.h>

#include "tests/nn/net.h"

enum { SCENE_PARAMETERS = 4, SCENE_MOST = 66, SCENE_ROWS = 7 };

/* table [11, 6], gamma [6], weight [5, 6], bias [5] */
extern const char *const scene_names[SCENE_PARAMETERS];
extern const size_t scene_sizes[SCENE_PARAMETERS];

struct scene {
    struct net net;
    struct tfm_optimizer *optimizer;
    enum tfm_dtype dtype; /* of table and weight; of gamma and bias what goes with it */
};

/* 0.9, 0.95, 1e-8, 0.1, clip 1 */
extern const struct tfm_adamw scene_config;

/* The net alone: compiled, with weights. */
void scene_net(struct scene *scene, enum tfm_dtype dtype);
/* With an optimizer; rules as for tfm_optimizer_create. */
void scene_begin(struct scene *scene, enum tfm_dtype dtype, const struct tfm_adamw *config,
                 tfm_optimizer_rules *rules, void *context);
void scene_end(struct scene *scene);

/* A run of forward and backward with inputs that depend on the seed: gradients are added to. */
void scene_run(struct scene *scene, uint64_t seed);
/* A variable, "" or ".grad", ".m", ".v", ".master" of parameter i, as doubles [scene_sizes[i]]. */
void scene_read(struct scene *scene, int i, const char *suffix, double *values);
void scene_write(struct scene *scene, int i, const char *suffix, const double *values);
/* All variables one after another; returns how many. */
enum { SCENE_ALL = 5 * 107 };
size_t scene_read_all(struct scene *scene, double *values);
/* Fails the test unless it is OK. */
void scene_step(struct scene *scene, double rate, double scale,
                struct tfm_optimizer_report *report);

#endif
