/* SPDX-License-Identifier: MIT
 * What `tfm bench-ops` measures: for each op a unit, one or two nodes that take x to something of its shape,
 * so that units can be chained; and the shapes at which it does. */
#ifndef TFM__TOOLS_BENCH_CASES_H
#define TFM__TOOLS_BENCH_CASES_H

#include <tfm/graph.h>

/* A line of bench_cases.def. */
struct tfm__bench_case {
    enum tfm_op op;
    enum tfm_dtype dtype, weight;
    uint32_t rows;
    int64_t d1, d2, d3;
    int32_t past;
    const char *note;
};

/* Case number i; NULL past the last one. Cases of one op stand together. */
const struct tfm__bench_case *tfm__bench_case(size_t i);

/* "linear", "linear, tanh", "N 512, 576 to 1536 and back" */
struct tfm__bench_text {
    char op[48], shape[80];
};
void tfm__bench_describe(const struct tfm__bench_case *c, struct tfm__bench_text *text);

/* A graph with `units` of them in a row between an embedding of ids [N] (input "ids", values 0..3) and rows of
 * the result (output "y"), so that next to nothing is copied in and out. embedding has an input "gather" [N]
 * too, with values of its table, adamw an input "hyper" [N, 8]. NULL after an error. */
struct tfm_graph *tfm__bench_graph(const struct tfm__bench_case *c, unsigned units,
                                   struct tfm_error *err);

/* Of one unit: nodes, bytes read and written when each tensor is touched once, arithmetic operations (a
 * multiply-add is two, exp, tanh, a division and a root one each). */
struct tfm__bench_work {
    unsigned nodes;
    double bytes, operations;
};
void tfm__bench_measure_of(const struct tfm__bench_case *c, struct tfm__bench_work *work);

#endif
