/* SPDX-License-Identifier: MIT
 * A conversation with a model on a list of devices: KV cache, chunked prompt, logits of the last token; or
 * several of them side by side, fed by the same runs. One thread at a time. */
#ifndef TFM_SESSION_H
#define TFM_SESSION_H

#include <tfm/device.h>
#include <tfm/model.h>
#include <tfm/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_session;

struct tfm_session_options {
    int64_t context;      /* cells of the KV cache; 0 = the model's own, at most 4096 */
    int64_t chunk;        /* rows of one run while a prompt is read; 0 = 512 */
    enum tfm_dtype cache; /* TFM_DTYPE_F16 or TFM_DTYPE_F32 */
    int64_t position;     /* added to every position that RoPE sees; 0 */
    int64_t sequences;    /* texts side by side, each with a cache of `context` cells; 0 = 1 */
    int64_t outputs;      /* most tokens of one run that get logits; 0 = one for each sequence */
    /* called while weights are packed: bytes done of all; may be NULL */
    void (*progress)(void *context, size_t done, size_t total);
    void *progress_context;
};

/* F16 cache, everything else 0. */
TFM_API void tfm_session_defaults(struct tfm_session_options *options);

/* Sessions of one model on one device share its weights there. options NULL = defaults.
 * INVALID_ARGUMENT: an option out of range (named); whatever compile says. */
TFM_API enum tfm_status tfm_session_create(struct tfm_model *model,
                                           struct tfm_device *const *devices, size_t n_devices,
                                           const struct tfm_session_options *options,
                                           struct tfm_session **session, struct tfm_error *err);
TFM_API void tfm_session_destroy(struct tfm_session *session); /* NULL is fine */

/* Appends n >= 1 tokens to sequence 0, in chunks; afterwards the logits are those of the last one.
 * OUT_OF_RANGE: a token id outside the vocabulary (named); CONTEXT_FULL: they do not fit (both counts
 * named); the session is unchanged then. Backend errors leave it at the last finished chunk. */
TFM_API enum tfm_status tfm_session_feed(struct tfm_session *session, const int32_t *ids, size_t n,
                                         struct tfm_error *err);

/* Tokens that one run appends to one sequence. */
struct tfm_session_part {
    int64_t sequence;   /* in [0, sequences), each at most once in a run */
    const int32_t *ids; /* [n] */
    size_t n;           /* >= 1 */
    size_t n_logits;    /* logits are wanted of its last n_logits tokens, in [0, n] */
};

/* One run of all parts together: at most `chunk` tokens. Afterwards the logits are those that were asked
 * for, in the order of the parts and of their tokens.
 * INVALID_ARGUMENT: no part, more tokens than a chunk, more logits than `outputs` or than tokens, a sequence
 * that is not there or named twice (numbers named); else as tfm_session_feed. The sequences are unchanged
 * after any failure. */
TFM_API enum tfm_status tfm_session_run(struct tfm_session *session,
                                        const struct tfm_session_part *parts, size_t n_parts,
                                        struct tfm_error *err);

/* [vocab], of the last token fed, or [rows, vocab] of the last run; NULL when there are none. Overwritten
 * by the next feed or run. */
TFM_API const float *tfm_session_logits(const struct tfm_session *session);
TFM_API size_t tfm_session_logits_rows(const struct tfm_session *session);
/* Tokens in the cache of sequence 0, and cells of it. */
TFM_API int64_t tfm_session_used(const struct tfm_session *session);
TFM_API int64_t tfm_session_context(const struct tfm_session *session);
/* Tokens in the cache of a sequence; -1 when it is not there. */
TFM_API int64_t tfm_session_used_by(const struct tfm_session *session, int64_t sequence);
/* Forgets everything after the first `used` tokens of sequence 0, or of the one named. OUT_OF_RANGE: more
 * than there are; INVALID_ARGUMENT: no such sequence. */
TFM_API enum tfm_status tfm_session_truncate(struct tfm_session *session, int64_t used,
                                             struct tfm_error *err);
TFM_API enum tfm_status tfm_session_truncate_one(struct tfm_session *session, int64_t sequence,
                                                 int64_t used, struct tfm_error *err);
/* What runs where. Belongs to the session. */
TFM_API const struct tfm_plan *tfm_session_plan(const struct tfm_session *session);

#ifdef __cplusplus
}
#endif
#endif
