/* SPDX-License-Identifier: MIT
 * What the files of the example share: the device, its memory, and the interface of an op. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <tfm/backend.h>

/* Every op of this backend: EXAMPLE_OPS(OP) calls OP(NAME, stem). A new op is a line here and a file
 * <stem>.c that defines example_<stem>. */
#define EXAMPLE_OPS(OP)    \
    OP(ADD, add)           \
    OP(LINEAR, linear)     \
    OP(RMS_NORM, rms_norm) \
    OP(SWIGLU, swiglu)

struct example_device {
    const struct tfm_host *host; /* the library's functions; valid as long as the device */
};

/* One node on the rows of one run. Pointers are where the tensors lie on the device; that of an absent
 * optional input is NULL. */
struct example_call {
    const struct example_device *device;
    const struct tfm_node *node;
    const struct tfm_rows *rows;
    const float *inputs[TFM_MAX_INPUTS];
    float *output;
};

struct example_op {
    /* Can this node run here? A no says why in one line. */
    int32_t (*supports)(const struct tfm_node *node, char *reason, size_t size);
    void (*run)(const struct example_call *call);
};

#define EXAMPLE_OP(NAME, stem) extern const struct example_op example_##stem;
EXAMPLE_OPS(EXAMPLE_OP)
#undef EXAMPLE_OP

/* Writes the reason of a refusal and returns 0. */
static inline int32_t example_refuse(char *reason, size_t size, const char *text)
{
    if (size > 0) {
        size_t n = 0;
        for (; n + 1 < size && text[n]; n++)
            reason[n] = text[n];
        reason[n] = '\0';
    }
    return 0;
}

/* Elements of a tensor in this run. */
static inline size_t example_elements(const struct tfm_tensor *tensor, const struct tfm_rows *rows)
{
    return (size_t)(tfm_tensor_rows(tensor, rows) * tfm_tensor_row_elements(tensor));
}

/* ---- memory.c: the slots alloc, free, upload, download, copy of struct tfm_backend ---- */

enum tfm_status example_alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err);
void example_free(void *device, void *buffer);
enum tfm_status example_upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                               struct tfm_error *err);
enum tfm_status example_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                 struct tfm_error *err);
enum tfm_status example_copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                             size_t bytes, struct tfm_error *err);

/* Where `bytes` bytes of a tensor lie; NULL if they are not all inside the buffer. */
void *example_place(struct tfm_memory memory, size_t bytes);

#endif
