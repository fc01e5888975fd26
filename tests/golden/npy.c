/* SPDX-License-Identifier: MIT
 * Format: numpy.lib.format, version 1.0: magic, two bytes of version, two of header length, then a
 * Python dictionary as text, padded with blanks, then the numbers. */
#include "tests/golden/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"

enum { PREFIX = 10, MOST = 1 << 24 };

/* What follows `key` in the header, without blanks; NULL when it is not there. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);

    if (!at)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " ");
}

static const char *read_shape(const char *text, struct npy *array)
{
    if (*text++ != '(')
        return "its shape is no tuple";
    array->count = 1;
    for (array->rank = 0; *text != ')'; array->rank++) {
        char *end;
        if (array->rank == NPY_RANK)
            return "it has more than 4 extents";
        const long long extent = strtoll(text, &end, 10);
        if (end == text || extent < 1 || extent > MOST ||
            tfm__mul_size(array->count, (size_t)extent, &array->count))
            return "an extent is not positive, or too large";
        array->shape[array->rank] = extent;
        end += strspn(end, " ");
        if (*end != ',' && *end != ')')
            return "its shape is no tuple of numbers";
        text = *end == ',' ? end + 1 + strspn(end + 1, " ") : end;
    }
    return array->rank ? NULL : "it has no extents";
}

static const char *read_header(const char *header, struct npy *array)
{
    static const char *const types[] = {"f4", "f8", "u2", "i4"};
    const char *descr = value_of(header, "'descr':");
    const char *order = value_of(header, "'fortran_order':");
    const char *shape = value_of(header, "'shape':");

    if (!descr || !order || !shape)
        return "its header lacks descr, fortran_order or shape";
    if (strncmp(order, "False", 5) != 0)
        return "its order is not that of C";
    array->type[0] = '\0';
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (descr[0] == '\'' && descr[1] == '<' && strncmp(descr + 2, types[i], 2) == 0 &&
            descr[4] == '\'')
            memcpy(array->type, types[i], 3);
    if (!array->type[0])
        return "its type is not one of <f4, <f8, <u2, <i4";
    const char *why = read_shape(shape, array);
    if (why)
        return why;
    return tfm__mul_size(array->count, (size_t)(array->type[1] - '0'), &array->bytes)
               ? "it is too large"
               : NULL;
}

const char *npy_parse(const void *file, size_t size, struct npy *array)
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const unsigned char *bytes = file;
    char header[512];
    struct npy found = {0};

    if (size < PREFIX || memcmp(bytes, magic, sizeof magic) != 0)
        return "it is no .npy file of version 1.0";
    const size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (length >= sizeof header || length > size - PREFIX)
        return "its header is cut off, or too long";
    memcpy(header, bytes + PREFIX, length);
    header[length] = '\0';
    const char *why = read_header(header, &found);
    if (why)
        return why;
    if (found.bytes != size - PREFIX - length)
        return "its numbers do not fill its shape";
    found.data = malloc(found.bytes);
    if (!found.data)
        return "out of memory";
    memcpy(found.data, bytes + PREFIX + length, found.bytes);
    *array = found;
    return NULL;
}

const char *npy_read(const char *path, struct npy *array)
{
    FILE *stream = fopen(path, "rb");
    char *bytes = malloc(MOST);
    const char *why = "it cannot be read";

    if (stream && bytes) {
        const size_t size = fread(bytes, 1, MOST, stream);
        if (size && !ferror(stream))
            why = npy_parse(bytes, size, array);
    }
    free(bytes);
    if (stream)
        fclose(stream);
    return why;
}

void npy_free(struct npy *array)
{
    free(array->data);
    array->data = NULL;
}
