/* SPDX-License-Identifier: MIT
 * `tfm inspect`: the parameters and buffers that the layers of a model register, as a table or JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tfm/nn.h>

#include "lib/tools/config.h"
#include "lib/tools/inventory.h"
#include "lib/tools/json_text.h"
#include "lib/tools/message.h"
#include "lib/tools/plan_text.h"
#include "lib/tools/setup.h"

/* ---- text ---- */

struct number {
    char text[32];
};

/* 124439808 -> "124,439,808" */
static const char *grouped(uint64_t value, struct number *buffer)
{
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            buffer->text[used++] = ',';
        buffer->text[used++] = digits[i];
    }
    buffer->text[used] = '\0';
    return buffer->text;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void put_row(const struct tfm__inventory_row *row)
{
    struct tfm__shape_line line;
    struct number values;

    printf("%-9s  %-32s  %-20s  %-24s  %15s\n", tfm__plan_kind(row->tensor), row->tensor->name,
           row->layer, tfm__plan_shape(row->tensor, &line), grouped(row->values, &values));
}

static void put_text(const struct tfm__inventory *inventory)
{
    struct number a, b, c;

    printf("%-9s  %-32s  %-20s  %-24s  %15s\n", "kind", "name", "layer", "shape and dtype",
           "values");
    for (size_t i = 0; i < inventory->n_rows; i++)
        put_row(&inventory->rows[i]);
    putchar('\n');
    for (size_t i = 0; i < inventory->n_groups; i++)
        printf("%-20s  %6" PRIu64 " tensors  %15s  %5.1f %%\n", inventory->groups[i].layer,
               inventory->groups[i].tensors, grouped(inventory->groups[i].values, &a),
               percent(inventory->groups[i].values, inventory->values));
    printf("\n%s parameters in %zu tensors, %s bytes\n", grouped(inventory->values, &a),
           inventory->n_parameters, grouped(inventory->bytes, &b));
    printf("%s of them in Linear weights = %.1f %%", grouped(inventory->linear_values, &a),
           percent(inventory->linear_values, inventory->values));
    if (inventory->linear_values_with_tied != inventory->linear_values)
        printf(" (%s = %.1f %% with the tied head)",
               grouped(inventory->linear_values_with_tied, &b),
               percent(inventory->linear_values_with_tied, inventory->values));
    printf("\n%s bytes of tables in %zu buffers; %s bytes of cache in %zu states\n",
           grouped(inventory->buffer_bytes, &b), inventory->n_buffers,
           grouped(inventory->state_bytes, &c), inventory->n_states);
}

/* ---- JSON ---- */

static json_t *make_row(const struct tfm__inventory_row *row)
{
    json_t *shape = json_array();

    for (int32_t i = 0; i < row->tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)row->tensor->shape[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:I, s:I}", "kind", tfm__plan_kind(row->tensor),
                     "name", tfm__json_text(row->tensor->name), "layer", tfm__json_text(row->layer),
                     "shape", shape, "dtype", tfm_dtype_name(row->tensor->dtype), "values",
                     (json_int_t)row->values, "bytes", (json_int_t)row->bytes);
}

static int put_json(const struct tfm__inventory *inventory)
{
    json_t *rows = json_array(), *groups = json_array();

    for (size_t i = 0; i < inventory->n_rows; i++)
        json_array_append_new(rows, make_row(&inventory->rows[i]));
    for (size_t i = 0; i < inventory->n_groups; i++)
        json_array_append_new(groups, json_pack("{s:o, s:I, s:I}", "layer",
                                                tfm__json_text(inventory->groups[i].layer),
                                                "tensors", (json_int_t)inventory->groups[i].tensors,
                                                "values", (json_int_t)inventory->groups[i].values));
    return tfm__json_put(
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "parameters",
                  (json_int_t)inventory->values, "parameter_bytes", (json_int_t)inventory->bytes,
                  "linear_weights", (json_int_t)inventory->linear_values,
                  "linear_weights_with_tied_head", (json_int_t)inventory->linear_values_with_tied,
                  "buffer_bytes", (json_int_t)inventory->buffer_bytes, "state_bytes",
                  (json_int_t)inventory->state_bytes, "layers", groups, "tensors", rows));
}

/* ---- the verb ---- */

static int put_decoder(const struct tfm__options *options, const char *source,
                       const struct tfm_nn_decoder *decoder)
{
    struct tfm__inventory inventory;
    struct tfm_graph *graph = NULL;
    struct tfm_error err;
    int code;

    if (tfm_graph_create(&graph, &err))
        return tfm__failed("%s", err.text);
    tfm_nn_decoder(graph, decoder);
    if (tfm_graph_check(graph, &err))
        code = tfm__failed("%s: %s", source, err.text);
    else
        code = tfm__inventory_make(graph, &inventory);
    if (code == TFM__EXIT_OK && options->json)
        code = put_json(&inventory);
    else if (code == TFM__EXIT_OK)
        put_text(&inventory);
    if (code == TFM__EXIT_OK)
        tfm__inventory_free(&inventory);
    tfm_graph_destroy(graph);
    return code;
}

static int inspect_model(const struct tfm__options *options)
{
    struct tfm__options with_model = *options;
    struct tfm__setup setup = {0};
    struct tfm_nn_decoder decoder;

    with_model.model = options->inspected;
    int code = tfm__setup_model(&with_model, &setup);
    if (code == TFM__EXIT_OK) {
        tfm_model_decoder(setup.model, &decoder);
        if (!decoder.bidirectional) {
            decoder.slots = 1;
            decoder.cells = decoder.positions;
        }
        decoder.cache = TFM_DTYPE_F16;
        code = put_decoder(options, tfm_model_path(setup.model), &decoder);
    }
    tfm__setup_close(&setup);
    return code;
}

int tfm__verb_inspect(const struct tfm__options *options)
{
    struct tfm_nn_decoder decoder;

    if (options->config && options->inspected)
        return tfm__usage("--config %s and %s: one of them", options->config, options->inspected);
    if (!options->config)
        return inspect_model(options);
    if (strcmp(options->config, "help") == 0) {
        tfm__config_help();
        return TFM__EXIT_OK;
    }
    const int code = tfm__config_read(options->config, 0, &decoder, NULL);
    return code == TFM__EXIT_OK ? put_decoder(options, options->config, &decoder) : code;
}
