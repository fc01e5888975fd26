/* SPDX-License-Identifier: MIT
 * The performance table: how long a run of a large node takes, and what that means in bytes and
 * operations a second. */
#include "lib/check/checks.h"

static const double seconds = 0.03;

/* Every tensor that the node touches, once. */
static double all_bytes(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    const struct tfm_node *node = tfm_graph_node(sample->graph, 0);
    double sum = 0;

    for (uint32_t i = 0; i < node->n_outputs; i++)
        sum += (double)tfm__drive_bytes(node->outputs[i], tfm_tensor_rows(node->outputs[i], rows));
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i])
            sum +=
                (double)tfm__drive_bytes(node->inputs[i], tfm_tensor_rows(node->inputs[i], rows));
    }
    return sum;
}

static void measure(struct tfm__report *report, const struct tfm__drive_backend *backend,
                    enum tfm_op op, uint32_t i, struct tfm__sample *sample)
{
    const struct tfm__check_op *generator = tfm__check_op(op);
    struct tfm__drive_plan *plan = NULL;
    struct tfm__check_rows run;
    struct tfm_error err = {0};
    char fields[4][40];
    double ns = 0;

    tfm__check_rows_set(&run, sample->capacity.rows,
                        generator->large_past ? generator->large_past(i) : 0);
    tfm__report_put(report, TFM__RECORD_MEASURE,
                    (const char *const[]){tfm_op_name(op), sample->what}, 2);
    if (tfm__drive_plan_open(backend, sample->graph, sample->data, &sample->capacity, 0, &plan,
                             &err) == TFM_STATUS_OK &&
        tfm__drive_plan_run(plan, sample->data, &run.rows, &err) == TFM_STATUS_OK &&
        tfm__drive_plan_time(plan, &run.rows, seconds, &ns, &err) == TFM_STATUS_OK && ns > 0) {
        const double bytes =
            generator->bytes ? generator->bytes(sample, &run.rows) : all_bytes(sample, &run.rows);
        snprintf(fields[0], sizeof *fields, "%u", run.rows.n);
        snprintf(fields[1], sizeof *fields, "%.0f", ns);
        snprintf(fields[2], sizeof *fields, "%.3f", bytes / ns);
        snprintf(fields[3], sizeof *fields, "%.3f", generator->operations(sample, &run.rows) / ns);
        tfm__report_put(report, TFM__RECORD_MEASURED,
                        (const char *const[]){tfm_op_name(op), sample->what, fields[0], fields[1],
                                              fields[2], fields[3]},
                        6);
    } else {
        tfm__report_note(report, "%s %s could not be measured: %s", tfm_op_name(op), sample->what,
                         err.text);
    }
    tfm__drive_plan_close(plan);
}

void tfm__check_performance(struct tfm__report *report, const struct tfm__drive_backend *backend,
                            enum tfm_op op)
{
    const struct tfm__check_op *generator = tfm__check_op(op);

    for (uint32_t i = 0; i < generator->large; i++) {
        struct tfm__sample sample;
        generator->build_large(&sample, i);
        if (tfm__check_asks(backend, &sample, NULL, 0))
            measure(report, backend, op, i, &sample);
        tfm__sample_end(&sample);
    }
}
