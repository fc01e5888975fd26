/* SPDX-License-Identifier: MIT
 * How near a result must be to the reference's, and words for where it is not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/sample.h"

/* Largest relative error of one rounding, and half the smallest step near zero. */
static const struct {
    double half_ulp, tiny;
} rounding[TFM_DTYPE_COUNT] = {
    [TFM_DTYPE_F32] = {0x1p-24, 0x1p-150},
    [TFM_DTYPE_F16] = {0x1p-11, 0x1p-25},
    [TFM_DTYPE_BF16] = {0x1p-8, 0x1p-134},
    [TFM_DTYPE_F64] = {0x1p-53, 0},
};

static double root_mean_square(const double *values, size_t n)
{
    double sum = 0;
    size_t finite = 0;

    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            sum += values[i] * values[i];
            finite++;
        }
    }
    return finite ? sqrt(sum / (double)finite) : 0;
}

/* What is wrong, gathered over all values. */
struct wrong {
    size_t count, first, nans, guards; /* guards: near the value that fills gaps between tensors */
    size_t first_column, last_column;
};

static void note(struct wrong *w, size_t i, size_t width, double got, double want)
{
    const size_t column = i % width;

    if (w->count == 0) {
        w->first = i;
        w->first_column = w->last_column = column;
    }
    w->first_column = column < w->first_column ? column : w->first_column;
    w->last_column = column > w->last_column ? column : w->last_column;
    w->nans += isnan(got) && !isnan(want);
    w->guards += fabs(got - 12345) < 100 && fabs(want) < 12000;
    w->count++;
}

/* Of one value: a wrong one must not hide in the mean of many. */
static int is_near(const struct tfm__sample *sample, double got, double want, double rms)
{
    const double half_ulp = rounding[sample->output->dtype].half_ulp;
    const double tiny = rounding[sample->output->dtype].tiny;

    if (got == want || (isnan(got) && isnan(want)))
        return 1;
    if (sample->exact)
        return 0;
    /* a NaN in one of them is not <= */
    return fabs(got - want) <= (2e-4 + 2 * half_ulp) * fabs(want) + 2 * tiny + 2e-4 * rms;
}

static const char *hint(const struct wrong *w)
{
    if (w->nans == w->count)
        return "; they are NaN: read from an output's old content, or from what must not be seen";
    if (w->guards == w->count)
        return "; they are near 12345, which fills the memory between tensors: an offset was "
               "ignored, or a place outside was read";
    return "";
}

static enum tfm_status tell(const struct wrong *w, size_t n, size_t width, const double *got,
                            const double *want, struct tfm_error *err)
{
    char where[120] = "";

    if (w->last_column - w->first_column + 1 < width)
        snprintf(where, sizeof where, ", all in columns %zu..%zu of %zu", w->first_column,
                 w->last_column, width);
    return tfm_error_set(err, TFM_STATUS_INTERNAL,
                         "value %zu of row %zu is %.9g instead of %.9g; %zu of %zu values are "
                         "wrong%s%s",
                         w->first % width, w->first / width, got[w->first], want[w->first],
                         w->count, n, where, hint(w));
}

static enum tfm_status compare_output(const struct tfm__sample *sample, const double *got,
                                      const double *want, size_t n, struct tfm_error *err)
{
    const struct tfm_node *node =
        tfm_graph_node(sample->graph, tfm_graph_node_count(sample->graph) - 1);
    const enum tfm_dtype dtype = sample->output->dtype;
    const double half_ulp = rounding[dtype].half_ulp, rms = root_mean_square(want, n);
    const double bound = tfm_op_info(node->op)->nmse;
    const size_t width = (size_t)tfm_tensor_row_elements(sample->output);
    struct wrong wrong = {0};
    double error = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_near(sample, got[i], want[i], rms))
            note(&wrong, i, width, got[i], want[i]);
        else if (isfinite(want[i]))
            error += (got[i] - want[i]) * (got[i] - want[i]);
    }
    if (wrong.count)
        return tell(&wrong, n, width, got, want, err);
    /* a narrow output adds the error of its own rounding */
    const double most = sample->exact || bound == 0
                            ? 0
                            : bound + (dtype == TFM_DTYPE_F32 ? 0 : half_ulp * half_ulp);
    const double nmse = rms > 0 ? error / (rms * rms * (double)n) : error;
    if (!(nmse <= most))
        return tfm_error_set(err, TFM_STATUS_INTERNAL,
                             "normalized mean square error %g, the op allows %g", nmse, most);
    return TFM_STATUS_OK;
}

static enum tfm_status compare_states(const struct tfm__sample *sample, struct tfm_error *err)
{
    for (uint32_t id = 0; id < tfm_graph_tensor_count(sample->graph); id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(sample->graph, id);
        const unsigned char *got = sample->data[id], *want = sample->want[id];
        const size_t bytes = tfm__drive_bytes(tensor, tensor->shape[0]);
        if (tensor->kind != TFM_TENSOR_STATE)
            continue;
        for (size_t i = 0; i < bytes; i++) {
            if (got[i] != want[i])
                return tfm_error_set(err, TFM_STATUS_INTERNAL,
                                     "state '%s' differs from that of the reference from byte %zu "
                                     "of %zu on",
                                     tensor->name, i, bytes);
        }
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__sample_compare(const struct tfm__sample *sample, const struct tfm_rows *rows,
                                    struct tfm_error *err)
{
    const struct tfm_tensor *output = sample->output;
    const size_t n = (size_t)(tfm_tensor_rows(output, rows) * tfm_tensor_row_elements(output));
    double *values = malloc((n ? 2 * n : 1) * sizeof *values);

    if (!values)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory to compare %zu values", n);
    tfm_dtype_to_f64(output->dtype, sample->data[output->id], 0, n, values);
    tfm_dtype_to_f64(output->dtype, sample->want[output->id], 0, n, values + n);
    enum tfm_status status = compare_output(sample, values, values + n, n, err);
    if (status == TFM_STATUS_OK)
        status = compare_states(sample, err);
    free(values);
    return status;
}
