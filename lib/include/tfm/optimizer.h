/* SPDX-License-Identifier: MIT
 * AdamW over all trainable parameters of a graph (Loshchilov and Hutter, arXiv:1711.05101), with clipping by the global
 * norm (Pascanu et al., arXiv:1211.5063). It works on the variables of an exec of forward and backward:
 * gradients that runs have summed up go in, parameters that the next run reads come out, nothing is copied.
 *
 *   run, run, ...   each adds to the gradients
 *   tfm_optimizer_step   parameters move, gradients are zero again
 *
 * An optimizer is used by one thread at a time, the same as the execs that it shares variables with. */
#ifndef TFM_OPTIMIZER_H
#define TFM_OPTIMIZER_H

#include <tfm/grad.h>
#include <tfm/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_optimizer;

/* 0.9, 0.95, 1e-8, 0.1, 1 are usual for language models. */
struct tfm_adamw {
    double beta1, beta2; /* in [0, 1): what is kept of the moments in a step */
    double eps;          /* added to the root of the second moment */
    double weight_decay; /* w -= rate weight_decay w, before the step of the gradient */
    double clip;         /* gradients of a larger global norm are made this long; 0 = never */
};

/* What a parameter has of its own. */
struct tfm_optimizer_rule {
    double rate;  /* factor on the rate of the step, >= 0 */
    double decay; /* factor on weight_decay, >= 0 */
};

/* Says it for one parameter of the graph that is trained; called while an optimizer is created. */
typedef struct tfm_optimizer_rule tfm_optimizer_rules(void *context, const struct tfm_graph *graph,
                                                      const struct tfm_tensor *parameter);

/* The usual rules: decay for matrices that multiply, none for norms, biases, tables that an embedding reads (of
 * tokens or positions, a tied head included) and biases of attention.
 *   context   NULL, or a const double *: the factor on the rate of the tables that an embedding reads */
TFM_API struct tfm_optimizer_rule tfm_optimizer_usual_rules(void *context,
                                                            const struct tfm_graph *graph,
                                                            const struct tfm_tensor *parameter);

/* Makes an optimizer for the trainable parameters of the plan's graph that tfm_graph_backward gave a gradient.
 *   plan, exec  forward and backward; both may go before the optimizer, the variables stay
 *   weights     those of the plan
 *   devices     the list that the plan was compiled for
 *   rules       NULL = tfm_optimizer_usual_rules with `context`
 * Its exec has the states "<name>.m" and "<name>.v" [shape of the parameter] F32 (F64 beside F64), zero, and for each
 * F16 or BF16 parameter "<name>.master" F32, which holds its exact values and begins as it is.
 * INVALID_ARGUMENT: a setting or rule is out of its range, or there is nothing to train; UNSUPPORTED: a parameter
 * lives on a device that does not take its update; NOMEM; whatever compiling says. */
TFM_API enum tfm_status
tfm_optimizer_create(struct tfm_plan *plan, struct tfm_exec *exec, struct tfm_weights *weights,
                     struct tfm_device *const *devices, size_t n_devices,
                     const struct tfm_adamw *config, tfm_optimizer_rules *rules, void *context,
                     struct tfm_optimizer **optimizer, struct tfm_error *err);
TFM_API void tfm_optimizer_destroy(struct tfm_optimizer *optimizer); /* NULL is fine */

struct tfm_optimizer_report {
    double norm;    /* of scale times the gradients, all of them, before clipping */
    double clipped; /* factor of clipping, 1 = they were short enough */
};

/* One step: all parameters move, all gradients are zero afterwards.
 *   rate    learning rate of this step, >= 0
 *   scale   on the summed gradients, > 0: 1 / (tokens that the loss was summed over)
 *   report  may be NULL
 * OUT_OF_RANGE: the norm is not finite; the text names the first parameter whose gradient is not. INVALID_ARGUMENT:
 * rate or scale. After these, and after a failure of the norm's run, nothing has changed, the count of steps and the
 * gradients included. A failure while parameters are written leaves them between two steps: the optimizer is poisoned, and
 * this and every later call says so with the status of that failure, until tfm_optimizer_heal. */
TFM_API enum tfm_status tfm_optimizer_step(struct tfm_optimizer *optimizer, double rate,
                                           double scale, struct tfm_optimizer_report *report,
                                           struct tfm_error *err);

/* OK unless it is poisoned: to be asked before parameters are saved or evaluated. */
TFM_API enum tfm_status tfm_optimizer_check(const struct tfm_optimizer *optimizer,
                                            struct tfm_error *err);
/* After parameters and moments were loaded anew: zeroes the gradients, and it is poisoned no longer. Also a way to
 * drop gradients that are not finite. What state_write says. */
TFM_API enum tfm_status tfm_optimizer_heal(struct tfm_optimizer *optimizer, struct tfm_error *err);

/* Steps taken, which the correction of the moments depends on: a checkpoint keeps them. */
TFM_API uint64_t tfm_optimizer_steps(const struct tfm_optimizer *optimizer);
TFM_API void tfm_optimizer_set_steps(struct tfm_optimizer *optimizer, uint64_t steps);

/* For tfm_exec_state_read and _write of all that an update changes: parameters, gradients, moments, exact values. Owned
 * by the optimizer; it is not to be run. */
TFM_API struct tfm_exec *tfm_optimizer_exec(struct tfm_optimizer *optimizer);
/* The graph of the update: its states and trainable parameters are what a checkpoint holds. */
TFM_API const struct tfm_graph *tfm_optimizer_graph(const struct tfm_optimizer *optimizer);
/* Both of its plans, the norm's and the update's, added up; state_bytes is that of the update, so variables that it shares
 * count too. */
TFM_API void tfm_optimizer_summarize(const struct tfm_optimizer *optimizer,
                                     struct tfm_plan_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
