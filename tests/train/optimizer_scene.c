/* SPDX-License-Identifier: MIT
 * A small net that is trained, with an optimizer. */
#include "tests/train/optimizer_scene.h"

#include <stdio.h>

const char *const scene_names[SCENE_PARAMETERS] = {"table", "gamma", "weight", "bias"};
const size_t scene_sizes[SCENE_PARAMETERS] = {66, 6, 30, 5};
const struct tfm_adamw scene_config = {0.9, 0.95, 1e-8, 0.1, 1};

static enum tfm_dtype beside(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

static struct tfm_tensor *trained(struct scene *s, int i, enum tfm_dtype dtype, int rank,
                                  int64_t d0, int64_t d1)
{
    struct tfm_graph *g = s->net.graph;

    return tfm_graph_train(
        g, tfm_graph_parameter(g, scene_names[i], dtype, rank, (int64_t[]){d0, d1}));
}

void scene_net(struct scene *s, enum tfm_dtype dtype)
{
    const enum tfm_dtype other = beside(dtype);
    struct tfm_error err = {0};
    double values[SCENE_MOST];

    memset(s, 0, sizeof *s);
    s->dtype = dtype;
    net_begin(&s->net, SCENE_ROWS, 1);
    struct tfm_graph *g = s->net.graph;
    struct tfm_tensor *ids = net_input(&s->net, "ids", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *x = tfm_op_embedding(g, trained(s, 0, dtype, 2, 11, 6), ids);
    x = tfm_op_rms_norm(g, x, trained(s, 1, other, 1, 6, 0), 1e-5);
    struct tfm_tensor *weight = trained(s, 2, dtype, 2, 5, 6);
    struct tfm_tensor *y = tfm_op_linear(g, x, weight, trained(s, 3, other, 1, 5, 0));
    struct tfm_tensor *dy = net_input(&s->net, "dy", other, 5, 0);
    net_output(&s->net, y);
    ck_assert_msg(tfm_graph_backward(g, 1, &y, &dy, &err) == TFM_STATUS_OK, "%s", err.text);
    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        net_fill(values, scene_sizes[i], (uint64_t)i + 1);
        net_set(&s->net, scene_names[i], values);
    }
    net_compile(&s->net, 1);
}

void scene_begin(struct scene *s, enum tfm_dtype dtype, const struct tfm_adamw *config,
                 tfm_optimizer_rules *rules, void *context)
{
    struct tfm_error err = {0};

    scene_net(s, dtype);
    ck_assert_msg(tfm_optimizer_create(s->net.plan, s->net.exec, s->net.weights,
                                       s->net.devices.device, s->net.devices.n, config, rules,
                                       context, &s->optimizer, &err) == TFM_STATUS_OK,
                  "%s", err.text);
}

void scene_end(struct scene *s)
{
    tfm_optimizer_destroy(s->optimizer);
    net_end(&s->net);
}

void scene_run(struct scene *s, uint64_t seed)
{
    int32_t ids[SCENE_ROWS];
    double dy[SCENE_ROWS * 5];

    for (int32_t i = 0; i < SCENE_ROWS; i++)
        ids[i] = (int32_t)((seed * 3 + (uint64_t)i * i) % 11);
    net_fill(dy, SCENE_ROWS * 5, seed);
    net_put_i32(&s->net, "ids", 0, SCENE_ROWS, ids);
    net_put(&s->net, "dy", 0, SCENE_ROWS * 5, dy);
    net_run_n(&s->net, SCENE_ROWS, 0);
}

/* Name, dtype and bytes of a variable. */
static enum tfm_dtype locate(const struct scene *s, int i, const char *suffix, char name[32],
                             size_t *bytes)
{
    const enum tfm_dtype dtype =
        suffix[0] || i % 2 ? beside(s->dtype) : s->dtype; /* gamma and bias are not narrow */

    snprintf(name, 32, "%s%s", scene_names[i], suffix);
    *bytes = scene_sizes[i] * tfm_dtype_info(dtype)->bytes;
    return dtype;
}

void scene_read(struct scene *s, int i, const char *suffix, double *values)
{
    double raw[SCENE_MOST];
    struct tfm_error err = {0};
    char name[32];
    size_t bytes;
    const enum tfm_dtype dtype = locate(s, i, suffix, name, &bytes);
    struct tfm_exec *exec = s->optimizer ? tfm_optimizer_exec(s->optimizer) : s->net.exec;

    ck_assert_msg(tfm_exec_state_read(exec, name, raw, bytes, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    tfm_dtype_to_f64(dtype, raw, 0, scene_sizes[i], values);
}

void scene_write(struct scene *s, int i, const char *suffix, const double *values)
{
    double raw[SCENE_MOST];
    struct tfm_error err = {0};
    char name[32];
    size_t bytes;
    const enum tfm_dtype dtype = locate(s, i, suffix, name, &bytes);

    tfm_dtype_from_f64(dtype, values, raw, 0, scene_sizes[i]);
    ck_assert_msg(tfm_exec_state_write(tfm_optimizer_exec(s->optimizer), name, raw, bytes, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
}

size_t scene_read_all(struct scene *s, double *values)
{
    static const char *const suffixes[] = {"", ".grad", ".m", ".v", ".master"};
    const int narrow = s->dtype != beside(s->dtype);
    size_t n = 0;

    for (int i = 0; i < SCENE_PARAMETERS; i++) {
        for (int k = 0; k < (narrow && i % 2 == 0 ? 5 : 4); k++) {
            scene_read(s, i, suffixes[k], values + n);
            n += scene_sizes[i];
        }
    }
    return n;
}

void scene_step(struct scene *s, double rate, double scale, struct tfm_optimizer_report *report)
{
    struct tfm_error err = {0};

    ck_assert_msg(tfm_optimizer_step(s->optimizer, rate, scale, report, &err) == TFM_STATUS_OK,
                  "%s", err.text);
}
