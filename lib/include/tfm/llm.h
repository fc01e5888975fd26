/* SPDX-License-Identifier: MIT
 * Everything of libtfm-llm: model files, tokenizer, sampler, sessions. */
#ifndef TFM_LLM_H
#define TFM_LLM_H

#include <tfm/bpe_train.h>
#include <tfm/config.h>
#include <tfm/convert.h>
#include <tfm/export.h>
#include <tfm/gguf.h>
#include <tfm/gguf_write.h>
#include <tfm/model.h>
#include <tfm/safetensors.h>
#include <tfm/sampler.h>
#include <tfm/session.h>
#include <tfm/tfm.h>
#include <tfm/tokenizer.h>
#include <tfm/train_settings.h>

#endif
