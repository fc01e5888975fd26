/* SPDX-License-Identifier: MIT
 * Makes GGUF files for tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/llm/gguf_builder.h"

struct gguf_builder {
    struct gguf_bytes pairs, infos, data;
    char magic[4];
    uint32_t version;
    size_t alignment;
    uint64_t n_pairs, n_tensors;
};

void gguf_bytes_put(struct gguf_bytes *bytes, const void *data, size_t size)
{
    if (size == 0)
        return;
    if (size > bytes->capacity - bytes->size) {
        bytes->capacity = 2 * (bytes->size + size) + 64;
        bytes->data = realloc(bytes->data, bytes->capacity);
        if (!bytes->data)
            abort();
    }
    if (data)
        memcpy(bytes->data + bytes->size, data, size);
    else
        memset(bytes->data + bytes->size, 0, size);
    bytes->size += size;
}

void gguf_bytes_number(struct gguf_bytes *bytes, uint64_t value, size_t size)
{
    unsigned char le[8];

    for (size_t i = 0; i < sizeof le; i++)
        le[i] = (unsigned char)(value >> (8 * i));
    gguf_bytes_put(bytes, le, size);
}

void gguf_bytes_string(struct gguf_bytes *bytes, const char *text, size_t size)
{
    gguf_bytes_number(bytes, size, 8);
    gguf_bytes_put(bytes, text, size);
}

void gguf_bytes_align(struct gguf_bytes *bytes, size_t alignment)
{
    size_t over = alignment ? bytes->size % alignment : 0;
    if (over)
        gguf_bytes_put(bytes, NULL, alignment - over);
}

struct gguf_builder *gguf_builder_create(void)
{
    struct gguf_builder *builder = calloc(1, sizeof *builder);

    if (!builder)
        abort();
    memcpy(builder->magic, "GGUF", 4);
    builder->version = 3;
    builder->alignment = 32;
    return builder;
}

void gguf_builder_destroy(struct gguf_builder *builder)
{
    free(builder->pairs.data);
    free(builder->infos.data);
    free(builder->data.data);
    free(builder);
}

static void begin_pair(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type)
{
    gguf_bytes_string(&builder->pairs, key, strlen(key));
    gguf_bytes_number(&builder->pairs, type, 4);
    builder->n_pairs++;
}

static size_t number_bytes(enum tfm_gguf_type type)
{
    switch (type) {
    case TFM_GGUF_U8:
    case TFM_GGUF_I8:
    case TFM_GGUF_BOOL:
        return 1;
    case TFM_GGUF_U16:
    case TFM_GGUF_I16:
        return 2;
    case TFM_GGUF_U32:
    case TFM_GGUF_I32:
    case TFM_GGUF_F32:
        return 4;
    case TFM_GGUF_U64:
    case TFM_GGUF_I64:
    case TFM_GGUF_F64:
        return 8;
    default:
        abort(); /* no number */
    }
}

void gguf_builder_uint(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                       uint64_t value)
{
    begin_pair(builder, key, type);
    gguf_bytes_number(&builder->pairs, value, number_bytes(type));
}

void gguf_builder_float(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                        double value)
{
    float single = (float)value;
    begin_pair(builder, key, type);
    if (type == TFM_GGUF_F32)
        gguf_bytes_put(&builder->pairs, &single, sizeof single);
    else
        gguf_bytes_put(&builder->pairs, &value, sizeof value);
}

void gguf_builder_bool(struct gguf_builder *builder, const char *key, int value)
{
    begin_pair(builder, key, TFM_GGUF_BOOL);
    gguf_bytes_number(&builder->pairs, (uint64_t)value, 1);
}

void gguf_builder_string(struct gguf_builder *builder, const char *key, const char *text)
{
    begin_pair(builder, key, TFM_GGUF_STRING);
    gguf_bytes_string(&builder->pairs, text, strlen(text));
}

static void begin_array(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                        size_t count)
{
    begin_pair(builder, key, TFM_GGUF_ARRAY);
    gguf_bytes_number(&builder->pairs, type, 4);
    gguf_bytes_number(&builder->pairs, count, 8);
}

void gguf_builder_array(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                        const void *elements, size_t count)
{
    begin_array(builder, key, type, count);
    gguf_bytes_put(&builder->pairs, elements, count * number_bytes(type));
}

void gguf_builder_strings(struct gguf_builder *builder, const char *key, const char *const *strings,
                          size_t count)
{
    begin_array(builder, key, TFM_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        gguf_bytes_string(&builder->pairs, strings[i], strlen(strings[i]));
}

void gguf_builder_texts(struct gguf_builder *builder, const char *key, const struct tfm_text *texts,
                        size_t count)
{
    begin_array(builder, key, TFM_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        gguf_bytes_string(&builder->pairs, texts[i].data, texts[i].size);
}

void gguf_builder_alignment(struct gguf_builder *builder, uint32_t alignment)
{
    gguf_builder_uint(builder, "general.alignment", TFM_GGUF_U32, alignment);
    builder->alignment = alignment;
}

void gguf_builder_lie(struct gguf_builder *builder, const char *name, uint32_t n_dims,
                      const uint64_t *dims, uint32_t type, uint64_t offset, size_t bytes)
{
    gguf_bytes_string(&builder->infos, name, strlen(name));
    gguf_bytes_number(&builder->infos, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++)
        gguf_bytes_number(&builder->infos, dims[i], 8);
    gguf_bytes_number(&builder->infos, type, 4);
    gguf_bytes_number(&builder->infos, offset, 8);
    gguf_bytes_put(&builder->data, NULL, bytes);
    builder->n_tensors++;
}

void gguf_builder_tensor(struct gguf_builder *builder, const char *name, uint32_t n_dims,
                         const uint64_t *dims, uint32_t type, const void *data, size_t bytes)
{
    gguf_bytes_align(&builder->data, builder->alignment);
    gguf_builder_lie(builder, name, n_dims, dims, type, builder->data.size, 0);
    gguf_bytes_put(&builder->data, data, bytes);
}

void gguf_builder_magic(struct gguf_builder *builder, const char *magic)
{
    memcpy(builder->magic, magic, 4);
}

void gguf_builder_version(struct gguf_builder *builder, uint32_t version)
{
    builder->version = version;
}

void gguf_builder_pair_count(struct gguf_builder *builder, uint64_t count)
{
    builder->n_pairs = count;
}

void gguf_builder_tensor_count(struct gguf_builder *builder, uint64_t count)
{
    builder->n_tensors = count;
}

void gguf_builder_raw_pair(struct gguf_builder *builder, const void *bytes, size_t size)
{
    gguf_bytes_put(&builder->pairs, bytes, size);
    builder->n_pairs++;
}

unsigned char *gguf_builder_finish(const struct gguf_builder *builder, size_t *size)
{
    struct gguf_bytes file = {NULL, 0, 0};

    gguf_bytes_put(&file, builder->magic, 4);
    gguf_bytes_number(&file, builder->version, 4);
    gguf_bytes_number(&file, builder->n_tensors, 8);
    gguf_bytes_number(&file, builder->n_pairs, 8);
    gguf_bytes_put(&file, builder->pairs.data, builder->pairs.size);
    gguf_bytes_put(&file, builder->infos.data, builder->infos.size);
    if (builder->n_tensors > 0)
        gguf_bytes_align(&file, builder->alignment);
    gguf_bytes_put(&file, builder->data.data, builder->data.size);
    *size = file.size;
    return file.data;
}

int gguf_builder_write(const struct gguf_builder *builder, const char *path)
{
    size_t size;
    unsigned char *data = gguf_builder_finish(builder, &size);
    FILE *file = fopen(path, "wbx");
    int failed = !file || fwrite(data, 1, size, file) != size;

    if (file && fclose(file) != 0)
        failed = 1;
    free(data);
    return failed;
}
