/* SPDX-License-Identifier: MIT
 * The phases of a program: what kernels/persistent.cl goes through for few rows. phases.c owns the list and
 * its memory, phase_rules.c knows the ops. */
#ifndef TFM_OPENCL_PHASES_H
#define TFM_OPENCL_PHASES_H

#include "backends/opencl/internal.h"

/* While they are made. */
struct tfm__cl_phaser {
    struct tfm__cl_planner *planner;
    struct tfm__cl_phases *phases;
    uint32_t *uses; /* [n_tensors] readers of a root tensor; one more if it is read later */
    uint8_t *made;  /* [n_tensors] 1 = a node of this segment writes the root */
    const struct tfm_tensor *k_cache, *v_cache; /* that the last projection appended to */
    size_t x, sums, raw;                        /* most floats that a part has of each */
    size_t partial;                             /* most bytes of attention splits */
    int failed;                                 /* out of memory */
};

/* Rows that `tensor` has here at most. */
size_t tfm__cl_phase_rows(const struct tfm__cl_phaser *phaser, const struct tfm_tensor *tensor);

/* Index of the root of a tensor in the segment. */
uint32_t tfm__cl_phase_root(const struct tfm__cl_phaser *phaser, const struct tfm_tensor *tensor);

/* 1 if `node` alone reads what `tensor` views, and nobody after this segment does. */
int tfm__cl_phase_sole(const struct tfm__cl_phaser *phaser, const struct tfm_tensor *tensor);

/* Appends a step of a node; barrier = 1 ends its phase. NULL: out of memory, noted. */
struct tfm__cl_launch *tfm__cl_phase_step(struct tfm__cl_phaser *phaser, uint32_t kind,
                                          const struct tfm_node *node, int barrier);
void tfm__cl_phase_operand(struct tfm__cl_phaser *phaser, struct tfm__cl_launch *step, uint32_t k,
                           const struct tfm_tensor *tensor, enum tfm__cl_form form);
/* Scratch of the parts, or the place of the splits. */
void tfm__cl_phase_place(struct tfm__cl_launch *step, uint32_t k, enum tfm__cl_place place);

/* Turns nodes from `i` on into steps; returns how many, 0 = it cannot be, phases->reason says why. */
uint32_t tfm__cl_phase_rules(struct tfm__cl_phaser *phaser, uint32_t i);

#endif
