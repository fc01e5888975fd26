/* SPDX-License-Identifier: MIT
 * Reads torch/index.json and the arrays that it names. */
#include "tests/golden/torch_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder(void)
{
    const char *golden = getenv("TFM_TEST_GOLDEN");

    return golden ? golden : "tests/golden";
}

json_t *torch_index_read(void)
{
    char path[4096];
    json_error_t error;

    snprintf(path, sizeof path, "%s/torch/index.json", folder());
    json_t *index = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_array(index)) {
        fprintf(stderr, "%s: %s\n", path, index ? "no list" : error.text);
        json_decref(index);
        return NULL;
    }
    return index;
}

/* -1 when it is none */
static int dtype_named(const char *name)
{
    for (int i = 0; name && i < TFM_DTYPE_COUNT; i++)
        if (strcmp(tfm_dtype_name((enum tfm_dtype)i), name) == 0)
            return i;
    return -1;
}

static int read_array(const char *file, struct npy *array)
{
    char path[4096];
    const char *why = "the index names no file";

    snprintf(path, sizeof path, "%s/torch/%s", folder(), file ? file : "");
    if (file)
        why = npy_read(path, array);
    if (why)
        fprintf(stderr, "%s: %s\n", path, why);
    return !why;
}

static const char *text_of(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

/* How the numbers of a dtype are stored. */
static int is_stored_as(enum tfm_dtype dtype, const char *type)
{
    static const char *const types[TFM_DTYPE_COUNT] = {[TFM_DTYPE_F32] = "f4",
                                                       [TFM_DTYPE_F64] = "f8",
                                                       [TFM_DTYPE_F16] = "u2",
                                                       [TFM_DTYPE_BF16] = "u2",
                                                       [TFM_DTYPE_I32] = "i4"};

    return types[dtype] && strcmp(types[dtype], type) == 0;
}

static int read_tensor(const json_t *json, struct torch_case *c)
{
    struct torch_tensor *t = &c->tensors[c->n_tensors];
    const char *role = text_of(json, "role");
    const int dtype = dtype_named(text_of(json, "dtype"));

    t->name = text_of(json, "name");
    if (!t->name || !role || dtype < 0 || !read_array(text_of(json, "file"), &t->array))
        return 0;
    c->n_tensors++;
    t->is_input = strcmp(role, "input") == 0;
    t->dtype = (enum tfm_dtype)dtype;
    return is_stored_as(t->dtype, t->array.type);
}

int torch_case_read(const json_t *json, struct torch_case *c)
{
    const json_t *tensors = json_object_get(json, "tensors");
    const char *name = text_of(json, "name");
    const int dtype = dtype_named(text_of(json, "dtype"));
    int good = name && dtype >= 0 && json_array_size(tensors) <= TORCH_TENSORS;

    memset(c, 0, sizeof *c);
    c->layer = text_of(json, "layer");
    c->bound = text_of(json, "bound");
    c->set = json_object_get(json, "set");
    c->runs = json_object_get(json, "runs");
    good = good && c->layer && c->bound && json_array_size(c->runs);
    if (good) {
        snprintf(c->label, sizeof c->label, "%s %s", c->layer, name);
        c->dtype = (enum tfm_dtype)dtype;
    }
    for (size_t i = 0; good && i < json_array_size(tensors); i++)
        good = read_tensor(json_array_get(tensors, i), c);
    good = good && read_array(text_of(json, "want"), &c->want) && strcmp(c->want.type, "f8") == 0;
    if (!good) {
        fprintf(stderr, "the index is wrong at %s\n", c->label);
        torch_case_free(c);
    }
    return good;
}

void torch_case_free(struct torch_case *c)
{
    for (size_t i = 0; i < c->n_tensors; i++)
        npy_free(&c->tensors[i].array);
    npy_free(&c->want);
    c->n_tensors = 0;
}

const struct torch_tensor *torch_tensor(const struct torch_case *c, const char *name)
{
    for (size_t i = 0; i < c->n_tensors; i++)
        if (strcmp(c->tensors[i].name, name) == 0)
            return &c->tensors[i];
    return NULL;
}

double torch_number(const struct torch_case *c, const char *key, double absent)
{
    const json_t *value = json_object_get(c->set, key);

    if (json_is_boolean(value))
        return json_is_true(value);
    return json_is_number(value) ? json_number_value(value) : absent;
}

int64_t torch_integer(const struct torch_case *c, const char *key, int64_t absent)
{
    return (int64_t)torch_number(c, key, (double)absent);
}

const char *torch_word(const struct torch_case *c, const char *key)
{
    const char *text = text_of(c->set, key);

    return text ? text : "";
}
