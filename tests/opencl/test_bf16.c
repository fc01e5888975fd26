/* SPDX-License-Identifier: MIT
 * Products of trained BF16 weights (TFM_ACT=bf16): forward and both gradients of linear and of cross_entropy, worked
 * out a second time in double from factors that are rounded here. Which way is taken: test_bf16_choice.c. */
#include "tests/opencl/act_scene.h"

#include <math.h>

#include <tfm/grad.h>

enum { LINEARS = 4 };

static const char *const ways[] = {NULL, TFM__CL_MATRIX_OPTIONS " -DTFM_BF16_WAY=0"};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void setup(void)
{
    scene_open("bf16");
}

/* Values that are not bf16, of very different size. */
static float *make(size_t n, unsigned seed)
{
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = (parts_value(i, seed) + 0.0137f) * (float)(1 + i / 5 % 7 * 3) * 1.013f;
    return x;
}

/* To 8 bits, ties to even. */
static double rounded(double value)
{
    int exponent;
    const double part = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
}

static double *round_all(const float *from, size_t n, int bf16)
{
    double *made = calloc(n, sizeof *made);
    ck_assert_ptr_nonnull(made);
    for (size_t i = 0; i < n; i++)
        made[i] = bf16 ? rounded(from[i]) : (double)from[i];
    return made;
}

/* a (m, k) is a[m am + k ak], b (k, j) is b[k bk + j bj]; got [m, j] within 2e-5 of the sizes of its sum, of
 * `times` runs. */
struct product {
    const double *a, *b;
    size_t am, ak, bk, bj, m, k, j;
    const float *bias;
    int times;
};

static int is_product(const struct product *p, const float *got, size_t *where)
{
    for (size_t i = 0; i < p->m * p->j; i++) {
        double sum = p->bias ? (double)p->bias[i % p->j] : 0, size = 1 + fabs(sum);
        for (size_t k = 0; k < p->k; k++) {
            const double term =
                p->a[i / p->j * p->am + k * p->ak] * p->b[k * p->bk + i % p->j * p->bj] * p->times;
            sum += term;
            size += fabs(term);
        }
        *where = i;
        if (!(fabs(got[i] - sum) <= 2e-5 * size))
            return 0;
    }
    return 1;
}

static void check(const struct product *p, const float *got, const char *what, uint32_t rows)
{
    size_t where = 0;
    ck_assert_msg(is_product(p, got, &where), "%s of %u rows, %zu x %zu x %zu: wrong at %zu: %g",
                  what, rows, p->m, p->k, p->j, where, got[where]);
}

static float *state(const char *name, size_t n)
{
    float *values = floats(n);
    struct tfm_error err = {0};
    ck_assert_msg(tfm_exec_state_read(exec, name, values, n * sizeof *values, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    return values;
}

static const struct shape {
    int64_t in, out;
} shapes[] = {{576, 192}, {33, 5}, {1, 3}, {31, 47}, {64, 1}, {2080, 33}, {16, 2070}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const uint32_t counts[] = {ROWS, 40, 7, 1};
enum { N_COUNTS = sizeof counts / sizeof *counts };

/* y = x W^T (+ b) and its gradients, of dy. */
static void declare(const struct shape *s, const float *bias)
{
    const int64_t x_shape[] = {0, s->in}, y_shape[] = {0, s->out};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, x_shape), *b = NULL;
    struct tfm_tensor *dy = tfm_graph_input(graph, "dy", TFM_DTYPE_F32, 2, y_shape);
    struct tfm_tensor *w = parts_parameter(graph, weights, "w", TFM_DTYPE_BF16, s->out, s->in, 1);

    tfm_graph_train(graph, w);
    tfm_graph_watch(graph, x);
    if (bias) {
        ck_assert_int_eq(tfm_weights_set(weights, "b", TFM_DTYPE_F32, 1, &s->out, bias,
                                         (size_t)s->out * sizeof *bias, NULL),
                         TFM_STATUS_OK);
        b = tfm_graph_parameter(graph, "b", TFM_DTYPE_F32, 1, &s->out);
        tfm_graph_train(graph, b);
    }
    struct tfm_tensor *y = tfm_op_linear(graph, x, w, b);
    tfm_graph_output(graph, y, "y");
    ck_assert_int_eq(tfm_graph_backward(graph, 1, &y, &dy, NULL), TFM_STATUS_OK);
    tfm_graph_output(graph, tfm_graph_gradient(graph, x), "dx");
}

/* Fault: a pair of values is cut, turned round or padded with what is no 0, a stride is the other product's, what is
 * rounded is not rounded to the nearest, a bias' gradient is lost beside a weight's, no rows change a sum. */
START_TEST(the_formula)
{
    const struct shape *s = &shapes[_i % N_SHAPES];
    const size_t in = (size_t)s->in, out = (size_t)s->out;
    float *x = make(ROWS * in, 3), *dy = make(ROWS * out, 4), *bias = make(out, 5);
    float *y = floats(ROWS * out), *dx = floats(ROWS * in);
    double *rx = round_all(x, ROWS * in, 1), *rdy = round_all(dy, ROWS * out, 1), one = 1;
    double *exact = round_all(dy, ROWS * out, 0);
    const int with_bias = _i / N_SHAPES % 2;

    if (ways[_i / N_SHAPES / 2])
        parts_handle(&devices)->settings.bf16_options = ways[_i / N_SHAPES / 2];
    declare(s, with_bias ? bias : NULL);
    double *w = stored("w", in * out);
    for (size_t c = 0; c < N_COUNTS; c++) {
        const uint32_t n = counts[c];
        compile();
        bind("x", x, ROWS * in);
        bind("dy", dy, ROWS * out);
        bind("y", y, ROWS * out);
        bind("dx", dx, ROWS * in);
        run(n), run(n), run(0);
        float *dw = state("w.grad", in * out), *db = with_bias ? state("b.grad", out) : NULL;
        check(&(struct product){rx, w, in, 1, 1, in, n, in, out, with_bias ? bias : NULL, 1}, y,
              "y", n);
        check(&(struct product){rdy, w, out, 1, in, 1, n, out, in, NULL, 1}, dx, "dx", n);
        check(&(struct product){rdy, rx, 1, out, in, 1, out, n, in, NULL, 2}, dw, "dw", n);
        if (db)
            check(&(struct product){&one, exact, 0, 0, out, 1, 1, n, out, NULL, 2}, db, "db", n);
        free(dw), free(db);
        undo();
    }
    free(x), free(dy), free(bias), free(y), free(dx), free(rx), free(rdy), free(exact), free(w);
}
END_TEST

/* Fault: nothing is rounded with bf16, or something with f32. */
START_TEST(the_setting_counts)
{
    const struct shape s = {577, 33};
    float *x = make(ROWS * 577, 3), *dy = make(ROWS * 33, 4);
    float *y = floats(ROWS * 33), *dx = floats(ROWS * 577);
    double *rx = round_all(x, ROWS * 577, _i == 0), *rdy = round_all(dy, ROWS * 33, _i == 0);
    double *other_x = round_all(x, ROWS * 577, _i), *other_dy = round_all(dy, ROWS * 33, _i);
    size_t where;

    if (_i == 1)
        parts_handle(&devices)->settings.bf16 = TFM__CL_BF16_OFF;
    declare(&s, NULL);
    double *w = stored("w", 577 * 33);
    compile();
    bind("x", x, ROWS * 577);
    bind("dy", dy, ROWS * 33);
    bind("y", y, ROWS * 33);
    bind("dx", dx, ROWS * 577);
    run(ROWS);
    float *dw = state("w.grad", 577 * 33);
    for (int other = 0; other < 2; other++) {
        const double *a = other ? other_x : rx, *d = other ? other_dy : rdy;
        const struct product forward = {a, w, 577, 1, 1, 577, ROWS, 577, 33, NULL, 1},
                             grad_x = {d, w, 33, 1, 577, 1, ROWS, 33, 577, NULL, 1},
                             grad_w = {d, a, 1, 33, 577, 1, 33, ROWS, 577, NULL, 1};
        ck_assert_int_eq(is_product(&forward, y, &where), !other);
        ck_assert_int_eq(is_product(&grad_x, dx, &where), !other);
        ck_assert_int_eq(is_product(&grad_w, dw, &where), !other);
    }
    free(x), free(dy), free(y), free(dx), free(rx), free(rdy), free(other_x), free(other_dy);
    free(dw), free(w);
}
END_TEST

/* Fault: bits depend on the split of the work. */
START_TEST(bits_depend_on_the_shape_alone)
{
    static const uint32_t parts[] = {8, 1, 3};
    const struct shape *s = &shapes[_i];
    const size_t in = (size_t)s->in, out = (size_t)s->out, all = ROWS * (in + out) + in * out;
    struct tfm__cl_device *device = parts_handle(&devices);
    const uint32_t most = device->parts;
    float *x = make(ROWS * in, 3), *dy = make(ROWS * out, 4), *got = floats(all);
    float *first = floats(all);

    declare(s, NULL);
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        device->parts = parts[p];
        compile();
        bind("x", x, ROWS * in);
        bind("dy", dy, ROWS * out);
        bind("y", got, ROWS * out);
        bind("dx", got + ROWS * out, ROWS * in);
        run(ROWS);
        float *dw = state("w.grad", in * out);
        memcpy(got + ROWS * (in + out), dw, in * out * sizeof *dw);
        free(dw);
        if (p == 0)
            memcpy(first, got, all * sizeof *got);
        ck_assert_msg(memcmp(first, got, all * sizeof *got) == 0, "%u parts: other bits", parts[p]);
        undo();
    }
    device->parts = most;
    free(x), free(dy), free(got), free(first);
}
END_TEST

/* Fault: what an earlier linear left is taken although x is another, or although one of f32 has had the workspace
 * since. */
START_TEST(linears_that_share_x)
{
    static const enum tfm_dtype types[LINEARS + 1] = {TFM_DTYPE_BF16, TFM_DTYPE_BF16, TFM_DTYPE_F32,
                                                      TFM_DTYPE_BF16, TFM_DTYPE_BF16};
    static const char *const name[] = {"w0", "w1", "w2", "w3", "w4"};
    static const char *const out[] = {"y0", "y1", "y2", "y3", "y4"};
    enum { IN = 96, OUT = 40 };
    const int64_t shape[] = {0, IN};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, shape);
    struct tfm_tensor *z = tfm_graph_input(graph, "z", TFM_DTYPE_F32, 2, shape);
    static float y[LINEARS + 1][ROWS * OUT];
    float *values = make(ROWS * IN, 3), *other = make(ROWS * IN, 9);

    for (size_t i = 0; i <= LINEARS; i++) {
        struct tfm_tensor *w =
            parts_parameter(graph, weights, name[i], types[i], OUT, IN, (unsigned)i);
        tfm_graph_train(graph, w);
        tfm_graph_output(graph, tfm_op_linear(graph, i < LINEARS ? x : z, w, NULL), out[i]);
    }
    compile();
    bind("x", values, ROWS * IN);
    bind("z", other, ROWS * IN);
    for (size_t i = 0; i <= LINEARS; i++)
        bind(out[i], y[i], ROWS * OUT);
    for (int round = 0; round < 2; round++) {
        run(ROWS);
        for (size_t i = 0; i <= LINEARS; i++) {
            double *w = stored(name[i], OUT * IN);
            double *a =
                round_all(i < LINEARS ? values : other, ROWS * IN, types[i] == TFM_DTYPE_BF16);
            check(&(struct product){a, w, IN, 1, 1, IN, ROWS, IN, OUT, NULL, 1}, y[i], out[i],
                  ROWS);
            free(w), free(a);
        }
        for (size_t i = 0; i < ROWS * IN; i++)
            values[i] = -values[i] * 2;
    }
    free(values), free(other);
}
END_TEST

/* Fault: a NaN or an infinity becomes an ordinary number, or spoils what it has no part in. */
START_TEST(what_is_no_number_stays_none)
{
    const struct shape s = {65, 17};
    float *x = make(ROWS * 65, 3), *dy = make(ROWS * 17, 4), *y = floats(ROWS * 17);
    float *dx = floats(ROWS * 65);

    if (ways[_i])
        parts_handle(&devices)->settings.bf16_options = ways[_i];
    x[5 * 65 + 40] = NAN;
    x[6 * 65 + 3] = INFINITY;
    dy[7 * 17 + 16] = -INFINITY;
    dy[8 * 17 + 2] = NAN;
    declare(&s, NULL);
    compile();
    bind("x", x, ROWS * 65);
    bind("dy", dy, ROWS * 17);
    bind("y", y, ROWS * 17);
    bind("dx", dx, ROWS * 65);
    run(ROWS);
    float *dw = state("w.grad", 65 * 17);
    for (size_t r = 0; r < ROWS; r++) {
        ck_assert_msg(!isfinite(y[r * 17]) == (r == 5 || r == 6), "y, row %zu: %g", r, y[r * 17]);
        ck_assert_msg(!isfinite(dx[r * 65]) == (r == 7 || r == 8), "dx, row %zu: %g", r,
                      dx[r * 65]);
    }
    for (size_t i = 0; i < 65 * 17; i++)
        ck_assert_msg(!isfinite(dw[i]) ==
                          (i % 65 == 40 || i % 65 == 3 || i / 65 == 16 || i / 65 == 2),
                      "dw, %zu: %g", i, dw[i]);
    free(x), free(dy), free(y), free(dx), free(dw);
}
END_TEST

/* ---- cross_entropy ---- */

static const struct {
    int64_t width, classes;
} heads[] = {{64, 700}, {33, 5}, {96, 1030}};
enum { N_HEADS = sizeof heads / sizeof *heads };

/* Slopes of a row: dloss (softmax - onehot). */
static double slopes_of(const double *x, const double *w, size_t width, size_t classes,
                        int32_t target, double dloss, double *slopes)
{
    double most = -INFINITY, mass = 0, picked = 0;

    for (size_t v = 0; v < classes; v++) {
        slopes[v] = 0;
        for (size_t k = 0; k < width; k++)
            slopes[v] += x[k] * w[v * width + k];
        most = fmax(most, slopes[v]);
    }
    for (size_t v = 0; v < classes; v++) {
        mass += exp(slopes[v] - most);
        if ((int32_t)v == target)
            picked = slopes[v];
    }
    for (size_t v = 0; v < classes; v++)
        slopes[v] =
            target < 0 ? 0 : dloss * (exp(slopes[v] - most) / mass - ((int32_t)v == target));
    return target < 0 ? 0 : most + log(mass) - picked;
}

/* Slopes are rounded, too: each term may be off by a 256th of its size. Fault: as above, and the last chunk of
 * classes has the stride of the others. */
START_TEST(cross_entropy)
{
    const size_t width = (size_t)heads[_i].width, classes = (size_t)heads[_i].classes;
    const int64_t x_shape[] = {0, heads[_i].width}, column[] = {0};
    struct tfm_tensor *x = tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, x_shape);
    struct tfm_tensor *targets = tfm_graph_input(graph, "targets", TFM_DTYPE_I32, 1, column);
    struct tfm_tensor *dloss = tfm_graph_input(graph, "dloss", TFM_DTYPE_F32, 1, column);
    struct tfm_tensor *weight =
        parts_parameter(graph, weights, "w", TFM_DTYPE_BF16, heads[_i].classes, heads[_i].width, 1);
    float *values = make(ROWS * width, 3), *dx = floats(ROWS * width), loss[ROWS], d[ROWS];
    int32_t ids[ROWS];

    tfm_graph_train(graph, weight);
    tfm_graph_watch(graph, x);
    struct tfm_tensor *y = tfm_op_cross_entropy(graph, x, weight, targets, 0, NULL);
    tfm_graph_output(graph, y, "loss");
    ck_assert_int_eq(tfm_graph_backward(graph, 1, &y, &dloss, NULL), TFM_STATUS_OK);
    tfm_graph_output(graph, tfm_graph_gradient(graph, x), "dx");
    compile();
    for (size_t r = 0; r < ROWS; r++) {
        ids[r] = r % 5 == 4 ? -1 : (int32_t)(r * 37 % classes);
        d[r] = (float)(1 + r % 3);
        for (size_t k = 0; k < width; k++)
            values[r * width + k] *= 0.1f;
    }
    bind("x", values, ROWS * width);
    bind("targets", ids, ROWS);
    bind("dloss", d, ROWS);
    bind("loss", loss, ROWS);
    bind("dx", dx, ROWS * width);
    run(ROWS);
    float *dw = state("w.grad", classes * width);
    double *rx = round_all(values, ROWS * width, 1), *w = stored("w", classes * width);
    double *g = calloc(ROWS * classes, sizeof *g);
    ck_assert_ptr_nonnull(g);
    for (size_t r = 0; r < ROWS; r++) {
        const double want =
            slopes_of(rx + r * width, w, width, classes, ids[r], d[r], g + r * classes);
        ck_assert_msg(fabs(loss[r] - want) <= 2e-5 * (1 + want), "loss %zu: %g, not %g", r, loss[r],
                      want);
        for (size_t k = 0; k < width; k++) {
            double sum = 0, size = 0;
            for (size_t v = 0; v < classes; v++) {
                sum += g[r * classes + v] * w[v * width + k];
                size += fabs(g[r * classes + v] * w[v * width + k]);
            }
            ck_assert_msg(fabs(dx[r * width + k] - sum) <= 0x1p-8 * size + 1e-5,
                          "dx %zu, %zu: %g, not %g", r, k, dx[r * width + k], sum);
        }
    }
    for (size_t i = 0; i < classes * width; i++) {
        double sum = 0, size = 0;
        for (size_t r = 0; r < ROWS; r++) {
            sum += g[r * classes + i / width] * rx[r * width + i % width];
            size += fabs(g[r * classes + i / width] * rx[r * width + i % width]);
        }
        ck_assert_msg(fabs(dw[i] - sum) <= 0x1p-8 * size + 1e-5, "dw %zu: %g, not %g", i, dw[i],
                      sum);
    }
    free(values), free(dx), free(dw), free(rx), free(w), free(g);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("no OpenCL device of PoCL");
    Suite *suite = suite_create("bf16");
    TCase *tcase = tests_case(suite, "products");
    tcase_add_checked_fixture(tcase, setup, scene_close);
    tcase_add_loop_test(tcase, the_formula, 0, N_WAYS * 2 * N_SHAPES);
    tcase_add_loop_test(tcase, the_setting_counts, 0, 2);
    tcase_add_loop_test(tcase, bits_depend_on_the_shape_alone, 0, N_SHAPES);
    tcase_add_test(tcase, linears_that_share_x);
    tcase_add_loop_test(tcase, what_is_no_number_stays_none, 0, N_WAYS);
    tcase_add_loop_test(tcase, cross_entropy, 0, N_HEADS);
    return tests_run(suite);
}
