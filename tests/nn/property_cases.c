/* SPDX-License-Identifier: MIT
 * What must hold whatever the weights are. Faults caught: positions counted from the start of a chunk or
 * of a padded line, a mask aligned with the chunk, query heads that read another group, an attention
 * that sees an order where none was given, sequences of a batch that see each other. */
#include <math.h>

#include "tests/nn/net.h"
#include "tests/nn/stack_cases.h"

static const double BOUND = 1e-5; /* relative to the largest element, with an F32 cache */

static struct net net;

static void teardown(void)
{
    net_end(&net);
}

/* ---- a stack that is fed ---- */

enum { VOCAB = 17, CELLS = 80, SLOTS = 4 };

static struct tfm_nn_decoder small(void)
{
    return (struct tfm_nn_decoder){
        .vocab = VOCAB,
        .width = 12,
        .layers = 2,
        .heads = 6,
        .kv_heads = 2,
        .head_dim = 4,
        .ffn_width = 13,
        .eps = 1e-5,
        .positions = CELLS,
        .slots = SLOTS,
        .cells = CELLS,
        .cache = TFM_DTYPE_F32,
        .relative = {.buckets = 8, .max_distance = 20},
    };
}

static void open_stack(const struct tfm_nn_decoder *config, uint32_t rows)
{
    struct tfm_error err = {0};

    net_begin(&net, rows, SLOTS);
    tfm_nn_decoder(net.graph, config);
    ck_assert_msg(tfm_graph_check(net.graph, &err) == TFM_STATUS_OK, "%s", err.text);
    net_compile(&net, 4);
}

/* n tokens of one sequence after `past`, at positions from `position` on; logits [n, VOCAB]. */
static void feed(const int32_t *ids, uint32_t n, int32_t past, int32_t position, double *logits)
{
    int32_t pos[CELLS];

    for (int32_t i = 0; i < (int32_t)n; i++)
        pos[i] = position + i;
    net_put_i32(&net, "ids", 0, n, ids);
    if (tfm_graph_find(net.graph, "pos"))
        net_put_i32(&net, "pos", 0, n, pos);
    net_run_n(&net, n, past);
    net_get(&net, "logits", 0, n * VOCAB, logits);
}

static const int32_t *text(void)
{
    static int32_t ids[CELLS];
    for (int i = 0; i < CELLS; i++)
        ids[i] = (i * i * 5 + i * 3 + 1) % VOCAB;
    return ids;
}

/* ---- one prompt, any split (case A20) ---- */

static const struct {
    const char *name;
    enum tfm_nn_position_kind position;
    enum tfm_rope_style style;
    int64_t window;
    int qk_norm;
    double softcap;
} kinds[] = {
    {"adjacent pairs", TFM_NN_POSITION_ROPE, TFM_ROPE_ADJACENT, 0, 0, 0},
    {"halves, norms of q and k", TFM_NN_POSITION_ROPE, TFM_ROPE_HALVES, 0, 1, 0},
    {"a window of 5", TFM_NN_POSITION_ROPE, TFM_ROPE_HALVES, 5, 0, 0},
    {"a soft cap", TFM_NN_POSITION_NONE, TFM_ROPE_ADJACENT, 0, 0, 1},
    {"learned", TFM_NN_POSITION_LEARNED, TFM_ROPE_ADJACENT, 0, 0, 0},
    {"sinusoidal", TFM_NN_POSITION_SINUSOIDAL, TFM_ROPE_ADJACENT, 0, 0, 0},
    {"relative", TFM_NN_POSITION_RELATIVE, TFM_ROPE_ADJACENT, 0, 0, 0},
    {"relative in a window", TFM_NN_POSITION_RELATIVE, TFM_ROPE_ADJACENT, 7, 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void open_kind(int kind, uint32_t rows)
{
    struct tfm_nn_decoder config = small();

    config.position = kinds[kind].position;
    config.rope_style = kinds[kind].style;
    config.each.window = kinds[kind].window;
    config.qk_norm = kinds[kind].qk_norm;
    config.softcap = kinds[kind].softcap;
    open_stack(&config, rows);
}

START_TEST(one_prompt_any_split)
{
    static const uint32_t splits[][9] = {
        {1, 1, 1, 1, 1, 1, 1}, {3, 4},  {1, 6},     {6, 1},         {2, 2, 2, 1}, {63, 1, 6},
        {64, 1, 1, 4},         {65, 5}, {1, 64, 5}, {33, 31, 1, 5},
    };
    static double whole[70 * VOCAB], pieces[70 * VOCAB];

    open_kind(_i, 70);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        char what[80];
        uint32_t total = 0;
        for (int k = 0; splits[i][k]; k++)
            total += splits[i][k];
        feed(text(), total, 0, 0, whole);
        for (uint32_t k = 0, past = 0; splits[i][k]; past += splits[i][k++])
            feed(text() + past, splits[i][k], (int32_t)past, (int32_t)past, pieces + past * VOCAB);
        snprintf(what, sizeof what, "%s, split %zu of %u tokens", kinds[_i].name, i, total);
        net_compare(pieces, whole, total * VOCAB, BOUND, what);
    }
}
END_TEST

/* ---- RoPE: positions count by their differences ---- */

START_TEST(moved_positions_change_nothing)
{
    enum { N = 9 };
    static const int32_t shifts[] = {1, 100, 4000, 8183};
    struct tfm_nn_decoder config = small();
    double here[N * VOCAB], there[N * VOCAB];

    config.positions = 8192;
    config.rope_style = _i ? TFM_ROPE_HALVES : TFM_ROPE_ADJACENT;
    open_stack(&config, N);
    feed(text(), N, 0, 0, here);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        feed(text(), N, 0, shifts[i], there);
        net_compare(there, here, N * VOCAB, BOUND, "moved as a whole");
    }
    /* but other differences are other positions */
    int32_t pos[N];
    for (int i = 0; i < N; i++)
        pos[i] = 2 * i;
    net_put_i32(&net, "pos", 0, N, pos);
    net_run_n(&net, N, 0);
    net_get(&net, "logits", 0, N * VOCAB, there);
    double most = 0;
    for (int i = 0; i < N * VOCAB; i++)
        most = fmax(most, fabs(there[i] - here[i]));
    ck_assert_double_gt(most, 1e-3);
}
END_TEST

/* ---- attention alone, without a cache ---- */

static void open_attention(struct tfm_nn_attention config, int64_t D, uint32_t rows)
{
    net_begin(&net, rows, SLOTS);
    struct tfm_tensor *x = net_input(&net, "x", TFM_DTYPE_F32, D, 0);
    net_output(&net, tfm_nn_attention(net.graph, "attn", x, &config));
}

static void attend(const double *x, uint32_t n, int64_t D, double *y)
{
    net_put(&net, "x", 0, n * (size_t)D, x);
    net_run_n(&net, n, 0);
    net_get(&net, "y", 0, n * (size_t)D, y);
}

START_TEST(order_is_seen_with_a_mask_only)
{
    enum { N = 6, D = 8 };
    static const int order[N] = {4, 0, 5, 2, 1, 3};
    const struct tfm_nn_attention config = {
        .heads = 4, .kv_heads = 2, .head_dim = 4, .bidirectional = _i};
    double x[N * D], moved[N * D], y[N * D], want[N * D], got[N * D];
    double most = 0;

    open_attention(config, D, N);
    net_compile(&net, 6);
    net_fill(x, N * D, 1);
    attend(x, N, D, y);
    for (int i = 0; i < N; i++) {
        memcpy(moved + i * D, x + order[i] * D, D * sizeof *x);
        memcpy(want + i * D, y + order[i] * D, D * sizeof *y);
    }
    attend(moved, N, D, got);
    for (int i = 0; i < N * D; i++)
        most = fmax(most, fabs(got[i] - want[i]));
    if (_i)
        net_compare(got, want, N * D, BOUND, "Attn(P X) = P Attn(X)");
    else
        ck_assert_msg(most > 1e-2, "a causal mask did not see the order: %g", most);
}
END_TEST

/* GQA is MHA whose kv heads are repeated H/G times. */
START_TEST(gqa_is_mha_with_repeated_heads)
{
    enum { N = 5, D = 10, HEAD = 4 };
    static const int64_t rows[][2] = {{8, 2}, {9, 3}, {8, 1}, {4, 4}};
    const int64_t H = rows[_i][0], G = rows[_i][1];
    static const char *const leaves[] = {"attn.k.weight", "attn.v.weight"};
    struct tfm_nn_attention config = {.heads = H, .kv_heads = G, .head_dim = HEAD};
    double x[N * D], shared[N * D], repeated[N * D], wide[9 * HEAD * D];
    double *narrow[2], *q, *o;

    net_fill(x, N * D, 2);
    open_attention(config, D, N);
    net_compile(&net, 7);
    attend(x, N, D, shared);
    q = net_weight(&net, "attn.q.weight");
    o = net_weight(&net, "attn.o.weight");
    for (int i = 0; i < 2; i++)
        narrow[i] = net_weight(&net, leaves[i]);
    net_end(&net);

    config.kv_heads = H;
    open_attention(config, D, N);
    net_set(&net, "attn.q.weight", q);
    net_set(&net, "attn.o.weight", o);
    for (int i = 0; i < 2; i++) {
        for (int64_t h = 0; h < H; h++)
            memcpy(wide + h * HEAD * D, narrow[i] + h / (H / G) * HEAD * D,
                   HEAD * D * sizeof *wide);
        net_set(&net, leaves[i], wide);
        free(narrow[i]);
    }
    free(q);
    free(o);
    net_compile(&net, 7);
    attend(x, N, D, repeated);
    net_compare(shared, repeated, N * D, BOUND, "GQA and MHA");
}
END_TEST

/* ---- case A12: what an F16 cache keeps is the rounded key, never a rounded position ---- */

/* bf16 takes 515 for 516, f16 2049 for 2048. Keys (1, 0) of one pair become (cos p, sin p); v comes
 * through as it is. */
START_TEST(an_f16_cache_keeps_neighbours_apart)
{
    enum { N = 4, P = 2050 };
    static const int32_t pos[N] = {515, 516, 2048, 2049};
    static const double keys[2 * N] = {1, 0, 1, 0, 1, 0, 1, 0},
                                 values[2 * N] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int64_t shape[4] = {1, N, 1, 2};
    const struct tfm_nn_rope rope = {.dims = 2};
    struct tfm_attention config = {0};
    uint16_t kept[2][2 * N];
    double k[2 * N], v[2 * N];

    net_begin(&net, N, 1);
    struct tfm_tensor *x = net_input(&net, "k", TFM_DTYPE_F32, 1, 2);
    struct tfm_tensor *at = net_input(&net, "pos", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *table = tfm_nn_rope_buffer(net.graph, "rope", TFM_DTYPE_F32, P, &rope);
    struct tfm_tensor *turned = tfm_op_rope(net.graph, x, at, table, TFM_ROPE_ADJACENT);
    config.k_cache = tfm_graph_state(net.graph, "k_cache", TFM_DTYPE_F16, 4, shape);
    config.v_cache = tfm_graph_state(net.graph, "v_cache", TFM_DTYPE_F16, 4, shape);
    net_output(&net, tfm_op_attention(net.graph, turned, turned,
                                      net_input(&net, "v", TFM_DTYPE_F32, 1, 2), &config));
    net_compile(&net, 1);
    net_put(&net, "k", 0, 2 * N, keys);
    net_put(&net, "v", 0, 2 * N, values);
    net_put_i32(&net, "pos", 0, N, pos);
    net_run_n(&net, N, 0);
    ck_assert_int_eq(tfm_exec_state_read(net.exec, "k_cache", kept[0], sizeof kept[0], NULL), 0);
    ck_assert_int_eq(tfm_exec_state_read(net.exec, "v_cache", kept[1], sizeof kept[1], NULL), 0);
    tfm_dtype_to_f64(TFM_DTYPE_F16, kept[0], 0, 2 * N, k);
    tfm_dtype_to_f64(TFM_DTYPE_F16, kept[1], 0, 2 * N, v);
    for (int i = 0; i < N; i++) {
        ck_assert_double_le(fabs(k[2 * i] - cos(pos[i])), 0x1p-12 + 1e-6);
        ck_assert_double_le(fabs(k[2 * i + 1] - sin(pos[i])), 0x1p-12 + 1e-6);
    }
    ck_assert_double_le(fabs(k[0] - 0.9756359), 0x1p-12 + 1e-6);
    ck_assert_double_le(fabs(k[1] + 0.2193958), 0x1p-12 + 1e-6);
    for (int i = 0; i < 2 * N; i++)
        ck_assert_double_eq(v[i], values[i]);
}
END_TEST

/* ---- case A10: weights of one pairing for the other ---- */

/* Rows of `n` heads of d: of each head 2i and 2i + 1 go to i and i + d/2. */
static void regroup(const char *name, int64_t n, int64_t d, int64_t D, double *values)
{
    double *source = net_weight(&net, name);

    for (int64_t h = 0; h < n; h++)
        for (int64_t i = 0; i < d; i++)
            memcpy(values + (h * d + i / 2 + (i % 2) * (d / 2)) * D, source + (h * d + i) * D,
                   (size_t)D * sizeof *values);
    free(source);
}

/* A model of adjacent pairs is one of halves whose rows of W_Q and W_K are regrouped head by head, W_K by
 * its own heads: at position 50, where another pairing or a regrouping by H shows. */
START_TEST(pairings_are_a_permutation)
{
    enum { N = 51, H = 4, G = 2, HEAD = 6, D = 12 };
    static const char *const names[] = {"blk.0.attn.q.weight", "blk.0.attn.k.weight"};
    struct tfm_nn_decoder config = small();
    static double adjacent[N * VOCAB], halves[N * VOCAB], wrong[N * VOCAB];
    double rows[2][H * HEAD * D];
    double most = 0;

    config.layers = 1;
    config.heads = H;
    config.kv_heads = G;
    config.head_dim = HEAD;
    open_stack(&config, N);
    feed(text(), N, 0, 0, adjacent);
    for (int i = 0; i < 2; i++)
        regroup(names[i], i ? G : H, HEAD, D, rows[i]);
    net_end(&net);

    config.rope_style = TFM_ROPE_HALVES;
    open_stack(&config, N);
    feed(text(), N, 0, 0, wrong);
    net_end(&net);
    net_begin(&net, N, SLOTS);
    tfm_nn_decoder(net.graph, &config);
    for (int i = 0; i < 2; i++)
        net_set(&net, names[i], rows[i]);
    net_compile(&net, 4);
    feed(text(), N, 0, 0, halves);
    net_compare(halves, adjacent, N * VOCAB, BOUND, "regrouped rows");
    for (int i = (N - 1) * VOCAB; i < N * VOCAB; i++)
        most = fmax(most, fabs(wrong[i] - adjacent[i]));
    ck_assert_msg(most > 1e-2, "another pairing shows at position 50: %g", most);
}
END_TEST

/* ---- batches (case A17) ---- */

enum { B = 3, T = 4 };

/* One run of a batch; its logits [B, T, VOCAB], 0 at padding. Positions are the batch's. */
static void run_batch(const struct tfm_batch *batch, const int32_t *ids, double *logits)
{
    int32_t rows[B * T], out[B * T];
    double by_row[B * T * VOCAB];
    struct tfm_rows run = batch->rows;

    for (uint32_t i = 0; i < run.n; i++)
        out[i] = (int32_t)i;
    run.out = out;
    run.n_out = run.n;
    ck_assert_int_eq(tfm_batch_gather(batch, ids, (size_t)batch->elements, rows, NULL),
                     TFM_STATUS_OK);
    net_put_i32(&net, "ids", 0, run.n, rows);
    if (tfm_graph_find(net.graph, "pos"))
        net_put_i32(&net, "pos", 0, run.n, batch->pos);
    net_run(&net, &run);
    net_get(&net, "logits", 0, run.n * VOCAB, by_row);
    ck_assert_int_eq(tfm_batch_scatter(batch, by_row, VOCAB * sizeof *logits, logits,
                                       (size_t)batch->elements, NULL),
                     TFM_STATUS_OK);
}

static void batch_from(const int32_t *mask, int64_t lines, int64_t length, const int32_t *past,
                       struct tfm_batch *batch)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_nn_rows_from_mask(mask, (size_t)(lines * length), lines, length, past,
                                        past ? (size_t)lines : 0, batch, &err) == TFM_STATUS_OK,
                  "%s", err.text);
}

START_TEST(padded_batch_equals_its_sequences_alone)
{
    enum { PAD = 16, STEPS = 3 };
    static const int32_t left[B * T] = {0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1};
    static const int32_t right[B * T] = {1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1};
    static const int32_t lengths[B] = {3, 2, 4};
    static const int32_t tokens[B][T + STEPS] = {
        {5, 6, 7, 1, 2, 3}, {8, 9, 4, 5, 6}, {1, 2, 3, 4, 7, 8, 9}};
    const int kind = _i / 2;
    const int32_t *mask = _i % 2 ? right : left;
    static double alone[B][(T + STEPS) * VOCAB], together[B * T * VOCAB];
    int32_t ids[B * T], next[B], past[B];
    struct tfm_batch batch;

    open_kind(kind, B * T);
    for (int b = 0; b < B; b++)
        feed(tokens[b], (uint32_t)lengths[b] + STEPS, 0, 0, alone[b]);
    for (int b = 0; b < B; b++)
        for (int t = 0, n = 0; t < T; t++)
            ids[b * T + t] = mask[b * T + t] ? tokens[b][n++] : PAD;
    batch_from(mask, B, T, NULL, &batch);
    run_batch(&batch, ids, together);
    tfm_batch_deinit(&batch);
    for (int b = 0; b < B; b++) {
        const int first = mask == left ? T - lengths[b] : 0;
        net_compare(together + (b * T + first) * VOCAB, alone[b], (size_t)lengths[b] * VOCAB, BOUND,
                    kinds[kind].name);
        past[b] = lengths[b];
    }
    for (int step = 0; step < STEPS; step++) {
        static const int32_t ones[B] = {1, 1, 1};
        for (int b = 0; b < B; b++)
            next[b] = tokens[b][past[b]];
        batch_from(ones, B, 1, past, &batch);
        run_batch(&batch, next, together);
        tfm_batch_deinit(&batch);
        for (int b = 0; b < B; b++)
            net_compare(together + b * VOCAB, alone[b] + past[b]++ * VOCAB, VOCAB, BOUND,
                        "a step after the padded prompt");
    }
}
END_TEST

/* Packed segments, padding, an empty line, in one run without a cache. */
START_TEST(packed_segments_equal_their_sequences_alone)
{
    static const int32_t mask[B * T] = {1, 1, 2, 2, 0, 0, 0, 0, 0, 3, 3, 1};
    static const int32_t ids[B * T] = {5, 6, 7, 8, 16, 16, 16, 16, 16, 9, 3, 5};
    static const struct {
        int first, length;
    } segments[] = {{0, 2}, {2, 2}, {9, 2}, {11, 1}};
    struct tfm_nn_decoder config = small();
    static double alone[T * VOCAB], together[B * T * VOCAB];
    struct tfm_batch batch;

    config.slots = config.cells = 0;
    config.bidirectional = _i;
    net_begin(&net, B * T, 5);
    tfm_nn_decoder(net.graph, &config);
    net_compile(&net, 4);
    batch_from(mask, B, T, NULL, &batch);
    ck_assert_uint_eq(batch.rows.n_seq, 5);
    run_batch(&batch, ids, together);
    tfm_batch_deinit(&batch);
    for (size_t i = 0; i < sizeof segments / sizeof *segments; i++) {
        feed(ids + segments[i].first, (uint32_t)segments[i].length, 0, 0, alone);
        net_compare(together + segments[i].first * VOCAB, alone, (size_t)segments[i].length * VOCAB,
                    BOUND, "a packed segment");
    }
    for (int i = 4 * VOCAB; i < 9 * VOCAB; i++)
        ck_assert_double_eq(together[i], 0);
}
END_TEST

/* ---- case A19: cells leave, twice before the next token, and once nothing ---- */

static void drop(int64_t used, int64_t first, int64_t n, const struct tfm_nn_rope *rope,
                 enum tfm_rope_style style)
{
    const struct tfm_nn_cache_drop what = {0, used, first, n, rope, style};
    struct tfm_error err = {0};
    ck_assert_msg(tfm_nn_cache_drop(net.exec, net.graph, "blk.0.attn", &what, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
}

START_TEST(shifts_add_up)
{
    enum { G = 2, HEAD = 4, CELL = G * HEAD };
    const enum tfm_rope_style style = _i ? TFM_ROPE_HALVES : TFM_ROPE_ADJACENT;
    const struct tfm_nn_rope rope = {.dims = HEAD};
    struct tfm_nn_decoder config = small();
    static float before[SLOTS * CELLS * CELL], after[SLOTS * CELLS * CELL];
    double logits[9 * VOCAB], fresh[9 * VOCAB], want[CELL], got[CELL];
    const int32_t kept[5] = {text()[0], text()[6], text()[7], 3, 9};

    config.layers = 1;
    config.rope_style = style;
    open_stack(&config, 9);
    /* the key of cell 7 and what rope makes of it at position 2: a token there, behind two others */
    feed(text() + 5, 3, 0, 0, logits);
    ck_assert_int_eq(tfm_exec_state_read(net.exec, "blk.0.attn.k_cache", after, sizeof after, NULL),
                     TFM_STATUS_OK);
    for (int i = 0; i < CELL; i++)
        want[i] = (double)after[2 * CELL + i];
    feed(text(), 8, 0, 0, logits);
    drop(8, 0, 2, &rope, style);
    drop(6, 0, 0, &rope, style);
    drop(6, 0, 3, &rope, style);
    ck_assert_int_eq(tfm_exec_state_read(net.exec, "blk.0.attn.k_cache", after, sizeof after, NULL),
                     TFM_STATUS_OK);
    for (int i = 0; i < CELL; i++)
        got[i] = (double)after[2 * CELL + i];
    net_compare(got, want, CELL, BOUND, "rope(k, 2)");
    /* the tokens that stay, then others */
    feed(kept + 3, 2, 3, 3, logits);
    feed((const int32_t[]){text()[5], text()[6], text()[7], 3, 9}, 5, 0, 0, fresh);
    net_compare(logits, fresh + 3 * VOCAB, 2 * VOCAB, BOUND, "after two shifts");

    /* the first token stays, five behind it go */
    feed(text(), 8, 0, 0, logits);
    drop(8, 1, 5, &rope, style);
    feed(kept + 3, 2, 3, 3, logits);
    feed(kept, 5, 0, 0, fresh);
    net_compare(logits, fresh + 3 * VOCAB, 2 * VOCAB, BOUND, "a gap in the middle");

    /* nothing goes: not a bit changes */
    ck_assert_int_eq(
        tfm_exec_state_read(net.exec, "blk.0.attn.k_cache", before, sizeof before, NULL),
        TFM_STATUS_OK);
    drop(5, 2, 0, &rope, style);
    ck_assert_int_eq(tfm_exec_state_read(net.exec, "blk.0.attn.k_cache", after, sizeof after, NULL),
                     TFM_STATUS_OK);
    ck_assert_mem_eq(after, before, sizeof after);
}
END_TEST

START_TEST(shifts_that_do_not_fit)
{
    static const struct tfm_nn_rope odd = {.dims = 3}, wide = {.dims = 6};
    static const struct {
        const char *layer;
        struct tfm_nn_cache_drop drop;
        enum tfm_status status;
        const char *words[2];
    } rows[] = {
        {"blk.9.attn", {0, 4, 0, 1, NULL, 0}, TFM_STATUS_NOT_FOUND, {"blk.9.attn", "k_cache"}},
        {"blk.0.attn", {SLOTS, 4, 0, 1, NULL, 0}, TFM_STATUS_INVALID_ARGUMENT, {"slot 4", "has 4"}},
        {"blk.0.attn", {-1, 4, 0, 1, NULL, 0}, TFM_STATUS_INVALID_ARGUMENT, {"slot -1", "has 4"}},
        {"blk.0.attn",
         {0, CELLS + 1, 0, 1, NULL, 0},
         TFM_STATUS_INVALID_ARGUMENT,
         {"81 cells", "holds 80"}},
        {"blk.0.attn",
         {0, 4, 3, 2, NULL, 0},
         TFM_STATUS_INVALID_ARGUMENT,
         {"2 cells from 3", "4 are in use"}},
        {"blk.0.attn",
         {0, 4, -1, 2, NULL, 0},
         TFM_STATUS_INVALID_ARGUMENT,
         {"2 cells from -1", "4 are"}},
        {"blk.0.attn",
         {0, 4, 0, -2, NULL, 0},
         TFM_STATUS_INVALID_ARGUMENT,
         {"-2 cells from 0", "4 are"}},
        {"blk.0.attn",
         {0, 4, INT64_MAX, INT64_MAX, NULL, 0},
         TFM_STATUS_INVALID_ARGUMENT,
         {"9223372036854775807 cells", "4 are in use"}},
        {"blk.0.attn",
         {0, 4, 0, 1, &wide, 0},
         TFM_STATUS_INVALID_ARGUMENT,
         {"6 elements", "have 4"}},
        {"blk.0.attn", {0, 4, 0, 1, &odd, 0}, TFM_STATUS_INVALID_ARGUMENT, {"dims is 3", "even"}},
    };
    const struct tfm_nn_decoder config = small();
    struct tfm_error err = {0};

    open_stack(&config, 4);
    ck_assert_int_eq(tfm_nn_cache_drop(net.exec, net.graph, rows[_i].layer, &rows[_i].drop, &err),
                     rows[_i].status);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(err.text, rows[_i].words[i]) != NULL, "%s", err.text);
}
END_TEST

/* ---- case A13: a learned table, row p = p ---- */

START_TEST(learned_positions_go_on_with_a_cache)
{
    enum { P = 8, D = 3 };
    double table[P * D], y[P * D];
    int32_t pos[P + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct tfm_error err = {0};

    net_begin(&net, P, 1);
    struct tfm_tensor *ids = net_input(&net, "ids", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *at = net_input(&net, "pos", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *x = tfm_nn_embedding(net.graph, "e", ids, 4, D, TFM_DTYPE_F32);
    net_output(&net, tfm_nn_learned_positions(net.graph, "p", x, at, P, TFM_DTYPE_F32));
    for (int i = 0; i < P * D; i++)
        table[i] = i / D;
    net_set(&net, "p.weight", table);
    net_set_all(&net, "e.weight", 0);
    net_compile(&net, 1);
    for (int p = 0; p < P; p += p ? 1 : 5) {
        const uint32_t n = p ? 1 : 5;
        net_put_i32(&net, "pos", 0, n, pos + p);
        net_run_n(&net, n, p);
        net_get(&net, "y", 0, n * D, y);
        for (uint32_t i = 0; i < n * D; i++)
            ck_assert_double_eq(y[i], p + (int)(i / D));
    }
    net_put_i32(&net, "pos", 0, 1, pos + P);
    const struct tfm_rows rows = net_rows(1, P);
    ck_assert_int_eq(net_try(&net, &rows, &err), TFM_STATUS_CONTEXT_FULL);
    ck_assert_msg(strstr(err.text, "context full") != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "position 8") && strstr(err.text, "ends at 8"), "%s", err.text);
    /* and the exec goes on */
    net_put_i32(&net, "pos", 0, 1, pos + 3);
    net_run_n(&net, 1, 3);
    net_get(&net, "y", 0, D, y);
    ck_assert_double_eq(y[0], 3);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("properties");
    TCase *tcase = net_case(suite, "properties");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, one_prompt_any_split, 0, KINDS);
    tcase_add_loop_test(tcase, moved_positions_change_nothing, 0, 2);
    tcase_add_loop_test(tcase, order_is_seen_with_a_mask_only, 0, 2);
    tcase_add_loop_test(tcase, gqa_is_mha_with_repeated_heads, 0, 4);
    tcase_add_test(tcase, an_f16_cache_keeps_neighbours_apart);
    tcase_add_test(tcase, pairings_are_a_permutation);
    tcase_add_loop_test(tcase, padded_batch_equals_its_sequences_alone, 0, 2 * KINDS);
    tcase_add_loop_test(tcase, packed_segments_equal_their_sequences_alone, 0, 2);
    tcase_add_loop_test(tcase, shifts_add_up, 0, 2);
    tcase_add_loop_test(tcase, shifts_that_do_not_fit, 0, 10);
    tcase_add_test(tcase, learned_positions_go_on_with_a_cache);
    return suite;
}

int property_cases_run(const char *backend)
{
    return net_main(backend, make);
}
