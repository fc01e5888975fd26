/* SPDX-License-Identifier: MIT
 * The memory of the device. Here it is host memory behind a handle; a real device puts its own calls in
 * these five functions, and nothing else changes. */
#include <string.h>

#include "example.h"

struct buffer {
    size_t bytes;
    _Alignas(64) unsigned char data[];
};

enum tfm_status example_alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    const struct tfm_host *host = ((struct example_device *)device)->host;
    struct buffer *made = NULL;

    if (bytes <= SIZE_MAX - sizeof *made)
        made = host->alloc(sizeof *made + bytes);
    if (!made)
        return host->error(err, TFM_STATUS_NOMEM, "out of device memory for %zu bytes", bytes);
    made->bytes = bytes;
    *buffer = made;
    return TFM_STATUS_OK;
}

void example_free(void *device, void *buffer)
{
    ((struct example_device *)device)->host->free(buffer);
}

void *example_place(struct tfm_memory memory, size_t bytes)
{
    struct buffer *buffer = memory.buffer;

    if (!buffer || memory.offset > buffer->bytes || bytes > buffer->bytes - memory.offset)
        return NULL;
    return buffer->data + memory.offset;
}

static enum tfm_status outside(void *device, const char *what, struct tfm_memory memory,
                               size_t bytes, struct tfm_error *err)
{
    return ((struct example_device *)device)
        ->host->error(err, TFM_STATUS_BACKEND,
                      "%s: %zu bytes at offset %zu do not lie in the buffer", what, bytes,
                      memory.offset);
}

enum tfm_status example_upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                               struct tfm_error *err)
{
    void *to = example_place(dst, bytes);

    if (!to)
        return outside(device, "upload", dst, bytes, err);
    memcpy(to, src, bytes);
    return TFM_STATUS_OK;
}

enum tfm_status example_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                 struct tfm_error *err)
{
    const void *from = example_place(src, bytes);

    if (!from)
        return outside(device, "download", src, bytes, err);
    memcpy(dst, from, bytes);
    return TFM_STATUS_OK;
}

enum tfm_status example_copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                             size_t bytes, struct tfm_error *err)
{
    const void *from = example_place(src, bytes);
    void *to = example_place(dst, bytes);

    if (!from || !to)
        return outside(device, "copy", from ? dst : src, bytes, err);
    memmove(to, from, bytes);
    return TFM_STATUS_OK;
}
