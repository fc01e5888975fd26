/* SPDX-License-Identifier: MIT
 * Sessions on tiny models against a decoder in double precision (naive_llama.c): weight types, head
 * counts, tied heads, chunks, positions, several sequences, limits of the context. Bad files are in
 * test_model.c. */
#include "tests/llm/session_cases.h"

#include <check.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/devices.h"
#include "tests/llm/naive_llama.h"
#include "tests/llm/tiny_llama.h"

static const double BOUND = 1e-4, HALF_CACHE_BOUND = 5e-2;

static char path[128]; /* of the model file of the running test */
static struct test_devices devices;
static struct tfm_model *model;
static struct naive_llama *naive;

static void setup(void)
{
    test_devices_open(&devices);
}

static void teardown(void)
{
    naive_llama_close(naive);
    tfm_model_close(model);
    test_devices_close(&devices);
    naive = NULL;
    model = NULL;
}

static void use(const struct tiny_llama *tiny)
{
    struct tfm_error err = {0};
    naive_llama_close(naive);
    tfm_model_close(model);
    tiny_llama_write(tiny, path);
    naive = naive_llama_open(path);
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
}

static struct tfm_session *open_with(const struct tfm_session_options *options)
{
    struct tfm_session *session = NULL;
    struct tfm_error err = {0};
    enum tfm_status status =
        tfm_session_create(model, devices.device, devices.n, options, &session, &err);
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
    return session;
}

static struct tfm_session *open_session(int64_t context, int64_t chunk, int64_t position)
{
    struct tfm_session_options options;
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.context = context;
    options.chunk = chunk;
    options.position = position;
    return open_with(&options);
}

static void feed(struct tfm_session *session, const int32_t *ids, size_t n)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_ptr_nonnull(tfm_session_logits(session));
}

/* A text without meaning: id of token i. */
static const int32_t *text(size_t n)
{
    static int32_t ids[200];
    ck_assert_uint_le(n, sizeof ids / sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i * i * 7 + i * 31 + 11) % TINY_VOCAB);
    return ids;
}

static double distance(const float *logits, const double *right)
{
    double worst = 0;
    for (size_t i = 0; i < TINY_VOCAB; i++)
        if (!(fabs(logits[i] - right[i]) <= worst))
            worst = isnan(logits[i]) ? INFINITY : fabs(logits[i] - right[i]);
    return worst;
}

/* The session holds the first n tokens of text(). */
static void check_naive(const struct tfm_session *session, size_t n, int64_t position, double bound)
{
    double right[TINY_VOCAB];
    naive_llama_logits(naive, text(n), n, position, right);
    double off = distance(tfm_session_logits(session), right);
    ck_assert_msg(off <= bound, "logits after %zu tokens are off by %g (bound %g)", n, off, bound);
}

/* ---- the decoder ---- */

/* width, layers, heads, kv heads, head_dim, ffn; 9/3 alone hides the mistake h / kv_heads (its group has
 * as many heads as there are groups), hence 8/2, 6/6 and 5/1 */
static const struct {
    struct tiny_llama tiny;
} shapes[] = {
    {{.width = 64, .heads = 8, .kv_heads = 2, .head_dim = 8, .ffn_width = 96}},
    {{.width = 72, .heads = 9, .kv_heads = 3, .head_dim = 8, .ffn_width = 40}},
    {{.width = 96, .heads = 6, .kv_heads = 6, .head_dim = 16, .ffn_width = 33}},
    {{.width = 50, .heads = 5, .kv_heads = 1, .head_dim = 10, .ffn_width = 65, .biases = 1}},
    {{.width = 48, .heads = 1, .kv_heads = 1, .head_dim = 48, .ffn_width = 31}},
    {{.width = 160, .heads = 2, .kv_heads = 1, .head_dim = 80, .ffn_width = 7}},
    {{.width = 64,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 16,
      .ffn_width = 96,
      .biases = 1,
      .type = TINY_F16,
      .embedding_type = TINY_F16}},
    {{.width = 64,
      .heads = 8,
      .kv_heads = 2,
      .head_dim = 8,
      .ffn_width = 160,
      .type = TINY_Q8_0,
      .embedding_type = TINY_Q8_0}},
    {{.width = 96,
      .heads = 8,
      .kv_heads = 2,
      .head_dim = 12,
      .ffn_width = 128,
      .type = TINY_Q4_1,
      .embedding_type = TINY_Q8_0}},
    {{.width = 288,
      .heads = 9,
      .kv_heads = 3,
      .head_dim = 32,
      .ffn_width = 96,
      .type = TINY_Q4_1,
      .embedding_type = TINY_Q4_1,
      .head = TINY_HEAD_OWN}},
    {{.width = 64,
      .heads = 4,
      .kv_heads = 4,
      .head_dim = 16,
      .ffn_width = 96,
      .type = TINY_Q4_0,
      .embedding_type = TINY_F32,
      .head = TINY_HEAD_OWN}},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static struct tiny_llama shape(int index)
{
    struct tiny_llama tiny = shapes[index].tiny;
    tiny.layers = 2;
    tiny.context = 64;
    tiny.freq_base = 10000;
    tiny.seed = 100 + (uint64_t)index;
    return tiny;
}

/* A prompt in one run, then token by token. */
START_TEST(logits_equal_naive)
{
    struct tiny_llama tiny = shape(_i);
    use(&tiny);
    struct tfm_session *session = open_session(16, 0, 0);
    feed(session, text(7), 7);
    check_naive(session, 7, 0, BOUND);
    for (size_t n = 8; n <= 10; n++) {
        feed(session, text(n) + n - 1, 1);
        check_naive(session, n, 0, BOUND);
    }
    tfm_session_destroy(session);
}
END_TEST

/* The default cache rounds keys and values, and is not just the other one. */
START_TEST(half_cache_is_near)
{
    struct tiny_llama tiny = shape(_i);
    use(&tiny);
    struct tfm_session_options options;
    tfm_session_defaults(&options);
    ck_assert_int_eq(options.cache, TFM_DTYPE_F16);
    struct tfm_session *half = open_with(NULL), *whole = open_session(0, 0, 0);
    feed(half, text(20), 20);
    feed(whole, text(20), 20);
    check_naive(half, 20, 0, HALF_CACHE_BOUND);
    ck_assert_int_ne(
        memcmp(tfm_session_logits(half), tfm_session_logits(whole), TINY_VOCAB * sizeof(float)), 0);
    tfm_session_destroy(half);
    tfm_session_destroy(whole);
}
END_TEST

/* A05: a file without a head uses the embedding, exactly as if it held a copy. */
START_TEST(tied_head_equals_copied_head)
{
    float tied[TINY_VOCAB];
    static const uint32_t types[] = {TINY_F32, TINY_F16, TINY_Q8_0, TINY_Q4_1};
    struct tiny_llama tiny = tiny_llama_default();
    tiny.embedding_type = types[_i];
    for (tiny.head = TINY_TIED; tiny.head <= TINY_HEAD_COPIED; tiny.head++) {
        use(&tiny);
        ck_assert_int_eq(tfm_model_config(model)->tied, tiny.head == TINY_TIED);
        struct tfm_session *session = open_session(0, 0, 0);
        feed(session, text(9), 9);
        check_naive(session, 9, 0, BOUND);
        if (tiny.head == TINY_TIED)
            memcpy(tied, tfm_session_logits(session), sizeof tied);
        else
            ck_assert_mem_eq(tied, tfm_session_logits(session), sizeof tied);
        tfm_session_destroy(session);
    }
}
END_TEST

/* ---- RoPE ---- */

/* A10: the wrong pairing is small at first and wrong at position 50; fed as text and by `position`. */
START_TEST(positions_up_to_50)
{
    struct tiny_llama tiny = shape(_i);
    use(&tiny);
    struct tfm_session *session = open_session(64, 0, 0);
    feed(session, text(51), 51);
    check_naive(session, 51, 0, BOUND);
    tfm_session_destroy(session);

    session = open_session(14, 0, 50);
    feed(session, text(3), 3);
    check_naive(session, 3, 50, BOUND);
    tfm_session_destroy(session);
}
END_TEST

/* A12, and relative positions: all moved by 100, the logits stay but for their last bits. */
START_TEST(moved_positions_change_nothing)
{
    struct tiny_llama tiny = tiny_llama_default();
    tiny.context = 256;
    use(&tiny);
    struct tfm_session *session = open_session(64, 5, 100), *unmoved = open_session(64, 5, 0);
    feed(session, text(30), 30);
    feed(unmoved, text(30), 30);
    check_naive(session, 30, 100, BOUND);
    check_naive(session, 30, 0, BOUND);
    ck_assert_int_ne(memcmp(tfm_session_logits(session), tfm_session_logits(unmoved),
                            TINY_VOCAB * sizeof(float)),
                     0); /* equal bits: nothing was moved */
    tfm_session_destroy(session);
    tfm_session_destroy(unmoved);
}
END_TEST

/* A11: the file's base is used; without the key it is 10000. Wrong bases must be told apart. */
START_TEST(frequency_base_of_the_file)
{
    static const double bases[] = {1e6, 1e4, 0};
    double right[3][TINY_VOCAB];
    for (int i = 0; i < 3; i++) {
        struct tiny_llama tiny = tiny_llama_default();
        tiny.freq_base = bases[i];
        use(&tiny);
        naive_llama_logits(naive, text(50), 50, 0, right[i]);
        struct tfm_session *session = open_session(0, 0, 0);
        feed(session, text(50), 50);
        check_naive(session, 50, 0, BOUND);
        ck_assert_double_eq(tfm_model_config(model)->rope_theta, bases[i] > 0 ? bases[i] : 1e4);
        tfm_session_destroy(session);
    }
    double apart = 0;
    for (size_t v = 0; v < TINY_VOCAB; v++)
        apart = fmax(apart, fabs(right[0][v] - right[1][v]));
    ck_assert_double_gt(apart, 100 * BOUND);
    ck_assert_mem_eq(right[1], right[2], sizeof right[1]);
}
END_TEST

/* ---- chunks ---- */

static int32_t argmax(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < TINY_VOCAB; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* A20: 7 tokens in pieces, then 16 greedy ones: the same logits and tokens as at once. */
START_TEST(pieces_of_a_prompt)
{
    static const size_t pieces[][7] = {{1, 1, 1, 1, 1, 1, 1}, {3, 4}, {1, 6}};
    struct tiny_llama tiny = shape(8);
    use(&tiny);
    struct tfm_session *whole = open_session(32, 0, 0), *parts = open_session(32, 0, 0);
    size_t fed = 0;
    for (size_t i = 0; fed < 7; i++) {
        feed(parts, text(7) + fed, pieces[_i][i]);
        fed += pieces[_i][i];
    }
    ck_assert_uint_eq(fed, 7);
    feed(whole, text(7), 7);
    for (int step = 0; step <= 16; step++) {
        const float *a = tfm_session_logits(whole), *b = tfm_session_logits(parts);
        for (size_t v = 0; v < TINY_VOCAB; v++)
            ck_assert_float_eq_tol(a[v], b[v], (float)BOUND);
        const int32_t next = argmax(a);
        ck_assert_int_eq(next, argmax(b));
        feed(whole, &next, 1);
        feed(parts, &next, 1);
    }
    tfm_session_destroy(whole);
    tfm_session_destroy(parts);
}
END_TEST

/* The same by the session's own chunks; 130 tokens cross every tile that backends have. */
START_TEST(chunks_of_a_prompt)
{
    static const int64_t chunks[] = {1, 2, 7, 31, 63, 64, 65, 129, 512};
    struct tiny_llama tiny = shape(8);
    tiny.context = 160;
    use(&tiny);
    struct tfm_session *session = open_session(160, chunks[_i], 0);
    feed(session, text(130), 130);
    ck_assert_int_eq(tfm_session_used(session), 130);
    check_naive(session, 130, 0, BOUND);
    feed(session, text(131) + 130, 1);
    check_naive(session, 131, 0, BOUND);
    tfm_session_destroy(session);
}
END_TEST

/* ---- limits ---- */

/* The session has `used` tokens of text() and the logits after them. */
static void check_unchanged(const struct tfm_session *session, int64_t used)
{
    ck_assert_int_eq(tfm_session_used(session), used);
    ck_assert_ptr_nonnull(tfm_session_logits(session));
    check_naive(session, (size_t)used, 0, BOUND);
}

/* A06: the error names the id, and no kernel has seen it. */
START_TEST(token_ids_out_of_range)
{
    static const int32_t bad[] = {-1, TINY_VOCAB, INT32_MAX, INT32_MIN};
    struct tiny_llama tiny = tiny_llama_default();
    use(&tiny);
    struct tfm_session *session = open_session(0, 2, 0);
    feed(session, text(4), 4);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t ids[5] = {1, 2, 3, 4, bad[i]}; /* in the third chunk */
        struct tfm_error err = {0};
        char number[16];
        snprintf(number, sizeof number, "%d", bad[i]);
        ck_assert_int_eq(tfm_session_feed(session, ids, 5, &err), TFM_STATUS_OUT_OF_RANGE);
        ck_assert_msg(strstr(err.text, number) != NULL, "%s", err.text);
        check_unchanged(session, 4);
    }
    feed(session, text(5) + 4, 1);
    check_naive(session, 5, 0, BOUND);
    tfm_session_destroy(session);
}
END_TEST

/* A22: 8 cells, 5 tokens: three more fit, whatever is asked for. */
START_TEST(generation_ends_with_the_context)
{
    struct tiny_llama tiny = tiny_llama_default();
    use(&tiny);
    struct tfm_session *session = open_session(8, 0, 0);
    ck_assert_int_eq(tfm_session_context(session), 8);
    feed(session, text(5), 5);
    int more = 0;
    struct tfm_error err = {0};
    while (more < 100 && tfm_session_feed(session, text(8) + 5 + more % 3, 1, &err) == 0)
        more++;
    ck_assert_int_eq(more, 3);
    ck_assert_int_eq(err.status, TFM_STATUS_CONTEXT_FULL);
    check_unchanged(session, 8);
    tfm_session_destroy(session);
}
END_TEST

/* A47: refused before anything runs, with both numbers; what fits afterwards works. */
START_TEST(prompt_longer_than_the_context)
{
    struct tiny_llama tiny = tiny_llama_default();
    use(&tiny);
    struct tfm_session *session = open_session(32, 4, 0);
    struct tfm_error err = {0};
    ck_assert_int_eq(tfm_session_feed(session, text(40), 40, &err), TFM_STATUS_CONTEXT_FULL);
    ck_assert_msg(strstr(err.text, "40") && strstr(err.text, "32"), "%s", err.text);
    ck_assert_int_eq(tfm_session_used(session), 0);
    ck_assert_ptr_null(tfm_session_logits(session));
    feed(session, text(32), 32);
    check_unchanged(session, 32);
    tfm_session_destroy(session);
}
END_TEST

START_TEST(options_out_of_range)
{
    static const struct {
        struct tfm_session_options options;
        const char *word;
    } bad[] = {
        {{.context = -1}, "context"},
        {{.context = 65}, "context"}, /* the model knows 64 positions */
        {{.chunk = -1}, "chunk"},
        {{.cache = TFM_DTYPE_Q4_1}, "q4_1"},
        {{.cache = TFM_DTYPE_F64}, "f64"},
        {{.position = -1}, "position"},
        {{.context = 60, .position = 5}, "position"},
        {{.sequences = -1}, "sequences"},
        {{.outputs = 65}, "logits of 65"},
    };
    struct tiny_llama tiny = tiny_llama_default();
    use(&tiny);
    struct tfm_session *session = NULL;
    struct tfm_error err = {0};
    ck_assert_int_eq(
        tfm_session_create(model, devices.device, devices.n, &bad[_i].options, &session, &err),
        TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_null(session);
    ck_assert_msg(strstr(err.text, bad[_i].word) != NULL, "%s", err.text);
}
END_TEST

START_TEST(nothing_to_feed)
{
    struct tiny_llama tiny = tiny_llama_default();
    use(&tiny);
    struct tfm_session *session = open_session(0, 0, 0);
    struct tfm_error err = {0};
    ck_assert_int_eq(tfm_session_feed(session, text(1), 0, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_session_used(session), 0);
    tfm_session_destroy(session);
}
END_TEST

/* The cells after the kept ones are written again, not read. */
START_TEST(truncated_session_goes_on)
{
    struct tiny_llama tiny = tiny_llama_default();
    use(&tiny);
    struct tfm_session *session = open_session(0, 0, 0);
    struct tfm_error err = {0};
    const int32_t other[] = {200, 201, 202, 203, 204};
    feed(session, text(6), 6);
    feed(session, other, 5);
    ck_assert_int_eq(tfm_session_truncate(session, 12, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_session_truncate(session, -1, &err), TFM_STATUS_OUT_OF_RANGE);
    ck_assert_int_eq(tfm_session_used(session), 11);
    ck_assert_int_eq(tfm_session_truncate(session, 6, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_session_used(session), 6);
    ck_assert_ptr_null(tfm_session_logits(session)); /* never those of a token that is gone */
    feed(session, text(9) + 6, 3);
    check_unchanged(session, 9);
    ck_assert_int_eq(tfm_session_truncate(session, 0, &err), TFM_STATUS_OK);
    feed(session, text(2), 2);
    check_unchanged(session, 2);
    tfm_session_destroy(session);
}
END_TEST

/* ---- ownership ---- */

struct progress {
    size_t calls, done, total;
};

static void on_progress(void *context, size_t done, size_t total)
{
    struct progress *p = context;
    ck_assert_uint_ge(done, p->done);
    ck_assert_uint_le(done, total);
    ck_assert(p->calls == 0 || total == p->total);
    *p = (struct progress){p->calls + 1, done, total};
}

/* Two sessions of a model do not see each other's cache, and hold the model when it is closed. */
START_TEST(sessions_share_a_model)
{
    struct tiny_llama tiny = shape(8);
    use(&tiny);
    struct progress progress = {0};
    struct tfm_session_options options;
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.progress = on_progress;
    options.progress_context = &progress;
    struct tfm_session *a = open_with(&options), *b = open_session(20, 3, 0);
    ck_assert_uint_ge(progress.calls, 1);
    ck_assert_uint_eq(progress.done, progress.total);
    tfm_model_close(model);
    model = NULL;
    for (size_t n = 1; n <= 8; n++) {
        feed(a, text(n) + n - 1, 1);
        feed(b, text(9) + 8 - n, 1); /* another text */
    }
    check_unchanged(a, 8);
    tfm_session_destroy(a);
    feed(b, text(1), 1);
    ck_assert_int_eq(tfm_session_used(b), 9);
    tfm_session_destroy(b);
}
END_TEST

/* Between decode step 2 and 64 the library's allocator stands still. */
START_TEST(warm_session_allocates_nothing)
{
    struct tiny_llama tiny = shape(8);
    tiny.context = 128;
    use(&tiny);
    struct tfm_session *session = open_session(0, 0, 0);
    uint64_t before = 0;
    feed(session, text(9), 9);
    for (size_t step = 1; step <= 64; step++) {
        feed(session, text(100) + step, 1);
        if (step == 2)
            before = tfm_allocations();
    }
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_eq(tfm_allocations(), before);
    tfm_session_destroy(session);
}
END_TEST

/* ---- several sequences ---- */

static struct tfm_session *open_several(int64_t sequences, int64_t outputs, int64_t chunk)
{
    struct tfm_session_options options;
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.context = 40;
    options.chunk = chunk;
    options.sequences = sequences;
    options.outputs = outputs;
    return open_with(&options);
}

static void run(struct tfm_session *session, const struct tfm_session_part *parts, size_t n)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_session_run(session, parts, n, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* Row `row` of the logits is what follows the first n tokens of ids. */
static void check_row(const struct tfm_session *session, size_t row, const int32_t *ids, size_t n)
{
    double right[TINY_VOCAB];
    ck_assert_uint_lt(row, tfm_session_logits_rows(session));
    naive_llama_logits(naive, ids, n, 0, right);
    double off = distance(tfm_session_logits(session) + row * TINY_VOCAB, right);
    ck_assert_msg(off <= BOUND, "row %zu, after %zu tokens, is off by %g", row, n, off);
}

/* Three texts of different lengths in one run, in any order, then one token each: nobody sees another's
 * cache, positions or logits. */
START_TEST(sequences_side_by_side)
{
    struct tiny_llama tiny = shape(_i);
    use(&tiny);
    const int32_t *all = text(60), *texts[] = {all, all + 5, all + 23};
    size_t n[] = {9, 1, 17};
    struct tfm_session *session = open_several(3, 0, 32);
    const struct tfm_session_part first[] = {
        {2, texts[2], n[2], 1}, {0, texts[0], n[0], 1}, {1, texts[1], n[1], 1}};
    run(session, first, 3);
    for (size_t k = 0; k < 3; k++)
        check_row(session, k, first[k].ids, first[k].n);
    for (int step = 0; step < 3; step++) {
        const struct tfm_session_part next[] = {
            {0, texts[0] + n[0], 1, 1}, {1, texts[1] + n[1], 1, 1}, {2, texts[2] + n[2], 1, 1}};
        run(session, next, 3);
        for (size_t k = 0; k < 3; k++) {
            check_row(session, k, texts[k], ++n[k]);
            ck_assert_int_eq(tfm_session_used_by(session, (int64_t)k), (int64_t)n[k]);
        }
    }
    /* one goes back and on alone, the others stay */
    struct tfm_error err = {0};
    ck_assert_int_eq(tfm_session_truncate_one(session, 1, 2, &err), TFM_STATUS_OK);
    const struct tfm_session_part alone = {1, texts[1] + 2, 3, 1};
    run(session, &alone, 1);
    check_row(session, 0, texts[1], 5);
    ck_assert_int_eq(tfm_session_used(session), 12);
    ck_assert_int_eq(tfm_session_used_by(session, 1), 5);
    ck_assert_int_eq(tfm_session_used_by(session, 2), 20);
    tfm_session_destroy(session);
}
END_TEST

/* Logits of many tokens of one run are those of each prefix; a part may want none. */
START_TEST(logits_of_many_tokens)
{
    struct tiny_llama tiny = shape(8);
    use(&tiny);
    struct tfm_session *session = open_several(2, 6, 24);
    const int32_t *ids = text(20), *other = ids + 7;
    const struct tfm_session_part parts[] = {{0, ids, 11, 4}, {1, other, 5, 0}};
    run(session, parts, 2);
    ck_assert_uint_eq(tfm_session_logits_rows(session), 4);
    for (size_t i = 0; i < 4; i++)
        check_row(session, i, ids, 8 + i);
    const struct tfm_session_part more[] = {{1, other + 5, 3, 3}, {0, ids + 11, 1, 0}};
    run(session, more, 2);
    ck_assert_uint_eq(tfm_session_logits_rows(session), 3);
    for (size_t i = 0; i < 3; i++)
        check_row(session, i, other, 6 + i);
    const struct tfm_session_part silent = {0, ids + 12, 1, 0};
    run(session, &silent, 1);
    ck_assert_ptr_null(tfm_session_logits(session));
    feed(session, ids + 13, 1);
    check_row(session, 0, ids, 14);
    tfm_session_destroy(session);
}
END_TEST

/* Each refusal names its numbers and changes nothing. */
START_TEST(parts_that_are_refused)
{
    static const int32_t bad_id = TINY_VOCAB;
    const int32_t *ids = text(60);
    const struct {
        struct tfm_session_part parts[2];
        size_t n;
        enum tfm_status status;
        const char *words[2];
    } bad[] = {
        {{{0}}, 0, TFM_STATUS_INVALID_ARGUMENT, {"no tokens", ""}},
        {{{0, ids, 0, 0}}, 1, TFM_STATUS_INVALID_ARGUMENT, {"no tokens", ""}},
        {{{2, ids, 1, 1}}, 1, TFM_STATUS_INVALID_ARGUMENT, {"sequence 2", "has 2"}},
        {{{-1, ids, 1, 1}}, 1, TFM_STATUS_INVALID_ARGUMENT, {"sequence -1", "has 2"}},
        {{{1, ids, 1, 1}, {1, ids, 1, 1}},
         2,
         TFM_STATUS_INVALID_ARGUMENT,
         {"0 and 1", "sequence 1"}},
        {{{0, ids, 2, 3}}, 1, TFM_STATUS_INVALID_ARGUMENT, {"3", "2 tokens"}},
        {{{0, ids, 20, 0}, {1, ids, 5, 0}}, 2, TFM_STATUS_INVALID_ARGUMENT, {"24", "one run"}},
        {{{0, ids, 4, 4}, {1, ids, 3, 3}}, 2, TFM_STATUS_INVALID_ARGUMENT, {"7", "6"}},
        {{{0, ids, 1, 1}, {1, &bad_id, 1, 1}}, 2, TFM_STATUS_OUT_OF_RANGE, {"token id", "at 0"}},
    };
    struct tiny_llama tiny = shape(8);
    use(&tiny);
    struct tfm_session *session = open_several(2, 6, 24);
    const struct tfm_session_part good = {1, ids, 20, 1};
    run(session, &good, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tfm_error err = {0};
        ck_assert_int_eq(tfm_session_run(session, bad[i].parts, bad[i].n, &err), bad[i].status);
        for (int w = 0; w < 2; w++)
            ck_assert_msg(strstr(err.text, bad[i].words[w]), "case %zu: %s", i, err.text);
    }
    struct tfm_error err = {0};
    const struct tfm_session_part too_long = {1, ids, 21, 1};
    ck_assert_int_eq(tfm_session_run(session, &too_long, 1, &err), TFM_STATUS_CONTEXT_FULL);
    ck_assert_int_eq(tfm_session_truncate_one(session, 2, 0, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm_session_used_by(session, 2), -1);
    ck_assert_int_eq(tfm_session_used_by(session, 1), 20);
    ck_assert_int_eq(tfm_session_used(session), 0);
    check_row(session, 0, ids, 20);
    tfm_session_destroy(session);
}
END_TEST

int session_cases_run(const char *backend)
{
    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.80s/tfm-session-XXXXXX", tmp ? tmp : "/tmp");
    int file = mkstemp(path);
    if (file < 0)
        return 99;
    close(file);
    Suite *suite = suite_create("session");
    TCase *tcase = tcase_create("session");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, logits_equal_naive, 0, N_SHAPES);
    tcase_add_loop_test(tcase, half_cache_is_near, 0, N_SHAPES);
    tcase_add_loop_test(tcase, tied_head_equals_copied_head, 0, 4);
    tcase_add_loop_test(tcase, positions_up_to_50, 0, N_SHAPES);
    tcase_add_test(tcase, moved_positions_change_nothing);
    tcase_add_test(tcase, frequency_base_of_the_file);
    tcase_add_loop_test(tcase, pieces_of_a_prompt, 0, 3);
    tcase_add_loop_test(tcase, chunks_of_a_prompt, 0, 9);
    tcase_add_test(tcase, token_ids_out_of_range);
    tcase_add_test(tcase, generation_ends_with_the_context);
    tcase_add_test(tcase, prompt_longer_than_the_context);
    tcase_add_loop_test(tcase, options_out_of_range, 0, 9);
    tcase_add_test(tcase, nothing_to_feed);
    tcase_add_test(tcase, truncated_session_goes_on);
    tcase_add_test(tcase, sessions_share_a_model);
    tcase_add_test(tcase, warm_session_allocates_nothing);
    tcase_add_loop_test(tcase, sequences_side_by_side, 0, N_SHAPES);
    tcase_add_test(tcase, logits_of_many_tokens);
    tcase_add_test(tcase, parts_that_are_refused);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed != 0;
}
