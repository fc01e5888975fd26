/* SPDX-License-Identifier: MIT
 * Facts for `tfm doctor`: doctor.c has what OpenCL tells, doctor_files.c what lies in the file system. */
#ifndef TFM_OPENCL_DOCTOR_H
#define TFM_OPENCL_DOCTOR_H

#include <tfm/doctor.h>

#include "backends/opencl/internal.h"

extern const struct tfm_doctor tfm__cl_doctor;

/* The loader of drivers, and what it is to load. Lists "loader" and "drivers". */
void tfm__cl_doctor_drivers(const struct tfm_doctor_sink *sink);
/* Where drivers keep compiled kernels. List "caches". */
void tfm__cl_doctor_caches(const struct tfm_doctor_sink *sink);

#endif
