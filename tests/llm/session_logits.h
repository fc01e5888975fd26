/* SPDX-License-Identifier: MIT
 * What a model file answers: the logits after some tokens, with an F32 cache. */
#ifndef TESTS_LLM_SESSION_LOGITS_H
#define TESTS_LLM_SESSION_LOGITS_H

#include <string.h>

#include <tfm/session.h>

#include "tests/devices.h"
#include "tests/llm/tiny_llama.h"

static inline void session_logits(const char *path, const int32_t *ids, size_t n,
                                  float logits[TINY_VOCAB])
{
    struct tfm_session_options options;
    struct tfm_session *session = NULL;
    struct tfm_model *model = NULL;
    struct test_devices devices;
    struct tfm_error err = {0};

    test_devices_open(&devices);
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(tfm_session_create(model, devices.device, devices.n, &options, &session, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
    memcpy(logits, tfm_session_logits(session), TINY_VOCAB * sizeof *logits);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
}

#endif
