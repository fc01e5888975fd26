/* SPDX-License-Identifier: MIT
 * The parts of `tfm doctor`: facts are gathered into one JSON value, which is printed as it is or as text. */
#ifndef TFM__TOOLS_DOCTOR_H
#define TFM__TOOLS_DOCTOR_H

#include <jansson.h>

#include <tfm/doctor.h>

#include "lib/tools/setup.h"

/* One line of what is wrong, with what to do. */
void tfm__doctor_problem(json_t *report, const char *format, ...) TFM_PRINTF(2, 3);

/* ---- doctor_facts.c: what a backend tells of itself (tfm/doctor.h) ---- */

/* A sink that adds to `object`: lists of objects; a number of bytes has "_bytes" behind its key. */
struct tfm__doctor_tree {
    json_t *object; /* borrowed */
    json_t *item;   /* borrowed: the current one; NULL at first */
};
struct tfm_doctor_sink tfm__doctor_sink(struct tfm__doctor_tree *tree);

/* The facts of the backend in `file`, asked for in a process of its own, because drivers are what the doctor
 * is called for. A new object; what was told before that process ended too early is in it, and why[size] says
 * how it ended ("" = well). NULL when out of memory. */
json_t *tfm__doctor_facts(const char *file, char *why, size_t size);

/* ---- doctor_choice.c ---- */

/* Adds "choice": the device that --backend, TFM_BACKEND or auto takes. Exit code 1 when there is none. */
int tfm__doctor_choice(json_t *report, const struct tfm__options *options,
                       struct tfm__setup *setup);

/* ---- doctor_text.c ---- */

void tfm__doctor_put(const json_t *report);

#endif
