/* SPDX-License-Identifier: MIT
 * Everything of libtfm. A backend plugin needs tfm/backend.h only; models and text are in
 * tfm/llm.h (libtfm-llm). */
#ifndef TFM_TFM_H
#define TFM_TFM_H

#include <tfm/backend.h>
#include <tfm/checkpoint.h>
#include <tfm/dataset.h>
#include <tfm/device.h>
#include <tfm/dtype.h>
#include <tfm/grad.h>
#include <tfm/graph.h>
#include <tfm/nn.h>
#include <tfm/op.h>
#include <tfm/optimizer.h>
#include <tfm/plan.h>
#include <tfm/schedule.h>
#include <tfm/status.h>
#include <tfm/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
TFM_API const char *tfm_version(void);

#ifdef __cplusplus
}
#endif
#endif
