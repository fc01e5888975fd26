/* SPDX-License-Identifier: MIT
 * What probe does when OpenBLAS computes wrong values: this program stands between the backend and
 * cblas_sgemm, cblas_dgemm (linked with --wrap) and spoils a result in a chosen way. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "tests/core/runner.h"
#include "lib/check/drive_host.h"

extern const struct tfm_backend tfm_backend_v1;

enum fault {
    NONE,
    NAN_OF_OLD_OUTPUT, /* beta * C although beta is 0 */
    RAGGED_COLUMN,     /* the last of a number of columns that is not a multiple of 16 */
    LONG_SUM,          /* more than 256 products: the rest is left out */
    IN_THE_GAP,        /* writes between two rows */
    BETA_LEFT_OUT,
    ONLY_F64,
    FAULTS
};

static enum fault fault;

typedef void multiply(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE a,
                      const enum CBLAS_TRANSPOSE b, const blasint m, const blasint n,
                      const blasint k, const float alpha, const float *x, const blasint lda,
                      const float *w, const blasint ldb, const float beta, float *y,
                      const blasint ldc);
multiply __real_cblas_sgemm, __wrap_cblas_sgemm;

void __wrap_cblas_sgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE a,
                        const enum CBLAS_TRANSPOSE b, const blasint m, const blasint n,
                        const blasint k, const float alpha, const float *x, const blasint lda,
                        const float *w, const blasint ldb, const float beta, float *y,
                        const blasint ldc)
{
    const float old = y[0];

    __real_cblas_sgemm(order, a, b, m, n, fault == LONG_SUM && k > 256 ? 256 : k, alpha, x, lda, w,
                       ldb, fault == BETA_LEFT_OUT ? 0 : beta, y, ldc);
    if (fault == NAN_OF_OLD_OUTPUT && beta == 0)
        y[0] += 0 * old;
    if (fault == RAGGED_COLUMN && n % 16 != 0)
        y[n - 1] *= 1.001f;
    if (fault == IN_THE_GAP && ldc > n)
        y[n] = 0;
}

typedef void multiply_f64(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE a,
                          const enum CBLAS_TRANSPOSE b, const blasint m, const blasint n,
                          const blasint k, const double alpha, const double *x, const blasint lda,
                          const double *w, const blasint ldb, const double beta, double *y,
                          const blasint ldc);
multiply_f64 __real_cblas_dgemm, __wrap_cblas_dgemm;

void __wrap_cblas_dgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE a,
                        const enum CBLAS_TRANSPOSE b, const blasint m, const blasint n,
                        const blasint k, const double alpha, const double *x, const blasint lda,
                        const double *w, const blasint ldb, const double beta, double *y,
                        const blasint ldc)
{
    __real_cblas_dgemm(order, a, b, m, n, k, alpha, x, lda, w, ldb, beta, y, ldc);
    if (fault == ONLY_F64)
        y[0] += 1e-9;
}

/* Catches: a self-test that does not see a fault, or sees one where there is none; a reason that does not
 * say what is wrong. */
START_TEST(probe_says_no_when_values_are_wrong)
{
    struct tfm_probe report = {0};
    struct tfm_error err = {0};

    fault = (enum fault)_i;
    ck_assert_int_eq(tfm_backend_v1.probe(tfm__drive_host(), NULL, &report, &err), TFM_STATUS_OK);
    ck_assert_msg(report.usable == (fault == NONE), "fault %d: %s", _i, report.reason);
    if (fault != NONE) {
        ck_assert_ptr_nonnull(strstr(report.reason, "OpenBLAS computes wrong values"));
        ck_assert_ptr_nonnull(strstr(report.reason, fault == ONLY_F64 ? "f64 [" : "f32 ["));
    } else {
        ck_assert_uint_eq(report.n_devices, 1);
        ck_assert_str_eq(report.reason, "");
    }
}
END_TEST

static struct tfm_tensor x = {.dtype = TFM_DTYPE_F32, .extent = TFM_EXTENT_ROWS, .rank = 2};
static struct tfm_tensor w = {
    .kind = TFM_TENSOR_PARAMETER, .dtype = TFM_DTYPE_F32, .extent = TFM_EXTENT_FIXED, .rank = 2};
static struct tfm_tensor y = {.dtype = TFM_DTYPE_F32, .extent = TFM_EXTENT_ROWS, .rank = 2};

/* A01: ones times 1..10 in an output full of NaN; the weight begins at an address of each kind.
 * Catches: beta * C; a weight of a mapped file that is read as if it were aligned. */
START_TEST(a01_output_is_not_read)
{
    static const float in[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const float want[] = {15, 15, 15, 40, 40, 40};
    const struct tfm_rows rows = {.n = 2};
    const struct tfm_capacity capacity = {2, 1, 2};
    const struct tfm_node node = {
        .op = TFM_OP_LINEAR, .n_inputs = 2, .n_outputs = 1, .inputs = {&x, &w}, .outputs = {&y}};
    unsigned char *weight = malloc(15 * sizeof(float) + 4);
    float out[6];
    void *device;
    char reason[200];
    struct tfm_error err = {0};

    ck_assert_ptr_nonnull(weight);
    x.shape[1] = w.shape[1] = 5;
    w.shape[0] = y.shape[1] = 3;
    for (int i = 0; i < 15; i++)
        memcpy(weight + _i + 4 * i, &(float){1}, sizeof(float));
    memset(out, 0xff, sizeof out);
    fault = NONE;
    ck_assert_int_eq(tfm_backend_v1.open(tfm__drive_host(), 0, &device, &err), TFM_STATUS_OK);
    ck_assert(tfm_backend_v1.supports(device, &node, &capacity, reason, sizeof reason));
    const struct tfm_memory inputs[] = {{(void *)in, 0}, {weight, (size_t)_i}};
    const struct tfm_memory output = {out, 0};
    ck_assert_int_eq(tfm_backend_v1.run_node(device, &node, inputs, &output, &rows, &err),
                     TFM_STATUS_OK);
    for (int i = 0; i < 6; i++)
        ck_assert(out[i] == want[i]);
    tfm_backend_v1.close(device);
    free(weight);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blas self-test");
    TCase *tcase = tests_case(suite, "probe");

    tcase_add_loop_test(tcase, probe_says_no_when_values_are_wrong, 0, FAULTS);
    tcase_add_loop_test(tcase, a01_output_is_not_read, 0, 4);
    return tests_run(suite);
}
