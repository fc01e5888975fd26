/* SPDX-License-Identifier: MIT
 * Parameters and buffers by name, and what each device keeps with them. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/graph.h"
#include "lib/core/weights.h"

struct entry {
    char *name;
    struct tfm_tensor shape; /* dtype, rank, shape */
    const void *data;
    void *owned; /* == data when we copied it */
    size_t bytes;
    void (*taken)(void *context, const void *data, size_t bytes);
    void *context;
    struct entry *next;  /* in its hash chain */
    struct copy *copies; /* uploaded to node-by-node devices */
};

struct copy {
    struct tfm_device *device;
    void *buffer;
    struct copy *next;
};

/* What one device keeps: a pointer of its backend. */
struct resident {
    struct tfm_device *device;
    void *data;
    void (*destroy)(void *data);
    struct resident *next;
};

enum { CHAINS = 256 };

struct tfm_weights {
    atomic_uint holders;
    atomic_int frozen;
    pthread_mutex_t lock; /* held from begin to end */
    struct entry *chains[CHAINS];
    struct resident *residents;
    struct resident *compiling; /* the device between begin and end */
    void (*destroy)(void *context);
    void *context;
};

static uint32_t chain_of(const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h % CHAINS;
}

static struct entry *find(const struct tfm_weights *weights, const char *name)
{
    struct entry *e = weights->chains[chain_of(name)];
    while (e && strcmp(e->name, name) != 0)
        e = e->next;
    return e;
}

enum tfm_status tfm_weights_create(struct tfm_weights **weights, struct tfm_error *err)
{
    struct tfm_weights *w;

    tfm_error_clear(err);
    w = tfm__alloc(sizeof *w);
    if (!w)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "weights: out of memory");
    atomic_init(&w->holders, 1);
    pthread_mutex_init(&w->lock, NULL);
    *weights = w;
    return TFM_STATUS_OK;
}

struct tfm_weights *tfm__weights_retain(struct tfm_weights *weights)
{
    atomic_fetch_add(&weights->holders, 1);
    return weights;
}

void tfm_weights_release(struct tfm_weights *weights)
{
    if (!weights || atomic_fetch_sub(&weights->holders, 1) != 1)
        return;
    for (struct resident *r = weights->residents, *next; r; r = next) {
        next = r->next;
        if (r->destroy)
            r->destroy(r->data);
        tfm_device_release(r->device);
        tfm__free(r);
    }
    for (int i = 0; i < CHAINS; i++) {
        for (struct entry *e = weights->chains[i], *next; e; e = next) {
            next = e->next;
            for (struct copy *c = e->copies, *later; c; c = later) {
                later = c->next;
                tfm__device_table(c->device)->free(tfm__device_handle(c->device), c->buffer);
                tfm_device_release(c->device);
                tfm__free(c);
            }
            tfm__free(e->owned);
            tfm__free(e->name);
            tfm__free(e);
        }
    }
    if (weights->destroy)
        weights->destroy(weights->context);
    pthread_mutex_destroy(&weights->lock);
    tfm__free(weights);
}

void tfm_weights_on_destroy(struct tfm_weights *weights, void (*destroy)(void *context),
                            void *context)
{
    weights->destroy = destroy;
    weights->context = context;
}

/* Takes over `owned` (may be NULL) on success only. */
static enum tfm_status add(struct tfm_weights *weights, const char *name, enum tfm_dtype dtype,
                           int rank, const int64_t *shape, const void *data, void *owned,
                           size_t bytes, void (*taken)(void *, const void *, size_t), void *context,
                           struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    enum tfm_status status = TFM_STATUS_OK;
    struct tfm_tensor model = {.dtype = dtype, .rank = rank};
    size_t expected;

    if (!info || rank < 1 || rank > TFM_MAX_RANK)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "weight \"%s\": dtype %d, rank %d are out of range", name, (int)dtype,
                             rank);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return tfm_error_set(err, TFM_STATUS_SHAPE, "weight \"%s\": extent %d is %lld", name, i,
                                 (long long)shape[i]);
        model.shape[i] = shape[i];
    }
    if (tfm__tensor_bytes(&model, shape[0], &expected) || expected != bytes)
        return tfm_error_set(err, TFM_STATUS_SHAPE,
                             "weight \"%s\": %zu bytes do not fill its shape", name, bytes);

    pthread_mutex_lock(&weights->lock);
    struct entry *e = NULL;
    if (atomic_load(&weights->frozen)) {
        status = tfm_error_set(err, TFM_STATUS_BUSY,
                               "weight \"%s\": a plan was compiled over these weights; set them "
                               "before that",
                               name);
    } else if (find(weights, name)) {
        status =
            tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "weight \"%s\" is already there", name);
    } else if (!(e = tfm__alloc(sizeof *e)) || !(e->name = tfm__strdup(name))) {
        tfm__free(e);
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "weight \"%s\": out of memory", name);
    } else {
        struct entry **chain = &weights->chains[chain_of(name)];
        e->shape = model;
        e->data = data;
        e->owned = owned;
        e->bytes = bytes;
        e->taken = taken;
        e->context = context;
        e->next = *chain;
        *chain = e;
    }
    pthread_mutex_unlock(&weights->lock);
    return status;
}

enum tfm_status tfm_weights_set(struct tfm_weights *weights, const char *name, enum tfm_dtype dtype,
                                int rank, const int64_t *shape, const void *data, size_t bytes,
                                struct tfm_error *err)
{
    tfm_error_clear(err);
    void *copy = tfm__alloc(bytes);
    if (!copy)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "weight \"%s\": out of memory", name);
    if (bytes)
        memcpy(copy, data, bytes);
    const enum tfm_status status =
        add(weights, name, dtype, rank, shape, copy, copy, bytes, NULL, NULL, err);
    if (status != TFM_STATUS_OK)
        tfm__free(copy);
    return status;
}

enum tfm_status tfm_weights_borrow(struct tfm_weights *weights, const char *name,
                                   enum tfm_dtype dtype, int rank, const int64_t *shape,
                                   const void *data, size_t bytes,
                                   void (*taken)(void *context, const void *data, size_t bytes),
                                   void *context, struct tfm_error *err)
{
    tfm_error_clear(err);
    return add(weights, name, dtype, rank, shape, data, NULL, bytes, taken, context, err);
}

static enum tfm_status forgotten(const char *name, struct tfm_error *err)
{
    return tfm_error_set(
        err, TFM_STATUS_NOT_FOUND,
        "weight \"%s\": its values were given up (tfm_weights_forget): an exec that "
        "needs it must share it with one that has it",
        name);
}

enum tfm_status tfm_weights_get(const struct tfm_weights *weights, const char *name,
                                enum tfm_dtype *dtype, struct tfm_weight *weight,
                                struct tfm_error *err)
{
    struct tfm_weights *w = (struct tfm_weights *)weights; /* for its lock */

    tfm_error_clear(err);
    pthread_mutex_lock(&w->lock);
    const struct entry *e = find(weights, name);
    pthread_mutex_unlock(&w->lock);
    if (!e)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "weight \"%s\" is not there", name);
    if (!e->data)
        return forgotten(name, err);
    *dtype = e->shape.dtype;
    *weight = (struct tfm_weight){.data = e->data, .bytes = e->bytes};
    return TFM_STATUS_OK;
}

void tfm__weights_begin(struct tfm_weights *weights, struct tfm_device *device)
{
    pthread_mutex_lock(&weights->lock);
    atomic_store(&weights->frozen, 1);
    struct resident *r = weights->residents;
    while (r && r->device != device)
        r = r->next;
    if (!r && (r = tfm__alloc(sizeof *r))) {
        r->device = tfm_device_retain(device);
        r->next = weights->residents;
        weights->residents = r;
    }
    weights->compiling = r; /* NULL when out of memory: the backend then keeps nothing here */
}

void tfm__weights_end(struct tfm_weights *weights)
{
    weights->compiling = NULL;
    pthread_mutex_unlock(&weights->lock);
}

/* The entry of a tensor, with dtype and shape as the graph declared them. */
static enum tfm_status entry_for(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                 struct entry **entry, struct tfm_error *err)
{
    const struct tfm_tensor *root = tfm__tensor_root(tensor);
    struct entry *e = find(weights, root->name);
    struct tfm__shape_text a, b;

    if (!e)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                             "weight \"%s\" %s %s: the graph reads it, but it was never set",
                             root->name, tfm_dtype_name(root->dtype), tfm__shape_format(root, &a));
    if (e->shape.dtype != root->dtype)
        return tfm_error_set(err, TFM_STATUS_DTYPE,
                             "weight \"%s\": the graph wants %s, it holds %s", root->name,
                             tfm_dtype_name(root->dtype), tfm_dtype_name(e->shape.dtype));
    if (e->shape.rank != root->rank || memcmp(e->shape.shape, root->shape, sizeof root->shape) != 0)
        return tfm_error_set(err, TFM_STATUS_SHAPE,
                             "weight \"%s\": the graph wants %s, it holds %s", root->name,
                             tfm__shape_format(root, &a), tfm__shape_format(&e->shape, &b));
    *entry = e;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__weights_check(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                   struct tfm_error *err)
{
    struct entry *e;
    return entry_for(weights, tensor, &e, err);
}

/* The same with values that are still there. */
static enum tfm_status values_for(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                  struct entry **entry, struct tfm_error *err)
{
    const enum tfm_status status = entry_for(weights, tensor, entry, err);
    return status == TFM_STATUS_OK && !(*entry)->data ? forgotten((*entry)->name, err) : status;
}

enum tfm_status tfm_weights_forget(struct tfm_weights *weights, const char *name,
                                   struct tfm_error *err)
{
    tfm_error_clear(err);
    pthread_mutex_lock(&weights->lock);
    struct entry *e = find(weights, name);
    if (e) {
        tfm__free(e->owned);
        e->owned = NULL;
        e->data = NULL;
    }
    pthread_mutex_unlock(&weights->lock);
    return e ? TFM_STATUS_OK
             : tfm_error_set(err, TFM_STATUS_NOT_FOUND, "weight \"%s\" is not there", name);
}

enum tfm_status tfm__weights_memory(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                    struct tfm_memory *memory, struct tfm_error *err)
{
    struct tfm_device *device = weights->compiling ? weights->compiling->device : NULL;
    struct entry *e = NULL;
    enum tfm_status status = values_for(weights, tensor, &e, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (!device)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "weight \"%s\": out of memory", e->name);
    if (tfm__device_caps(device)->host_memory) {
        *memory = (struct tfm_memory){.buffer = (void *)(uintptr_t)e->data};
        return TFM_STATUS_OK;
    }
    struct copy *c = e->copies;
    while (c && c->device != device)
        c = c->next;
    if (!c) {
        const struct tfm_backend *table = tfm__device_table(device);
        void *handle = tfm__device_handle(device), *buffer = NULL;
        status = table->alloc(handle, e->bytes ? e->bytes : 1, &buffer, err);
        if (status != TFM_STATUS_OK)
            return status;
        status =
            table->upload(handle, e->data, (struct tfm_memory){.buffer = buffer}, e->bytes, err);
        if (status == TFM_STATUS_OK && !(c = tfm__alloc(sizeof *c)))
            status = tfm_error_set(err, TFM_STATUS_NOMEM, "weight \"%s\": out of memory", e->name);
        if (status != TFM_STATUS_OK) {
            table->free(handle, buffer);
            return status;
        }
        *c = (struct copy){tfm_device_retain(device), buffer, e->copies};
        e->copies = c;
        if (e->taken)
            e->taken(e->context, e->data, e->bytes);
    }
    *memory = (struct tfm_memory){.buffer = c->buffer};
    return TFM_STATUS_OK;
}

enum tfm_status tfm__weights_host_get(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                      struct tfm_weight *weight, struct tfm_error *err)
{
    struct entry *e = NULL;
    const enum tfm_status status = values_for(weights, tensor, &e, err);
    if (status == TFM_STATUS_OK)
        *weight = (struct tfm_weight){.data = e->data, .bytes = e->bytes};
    return status;
}

enum tfm_status tfm__weights_values(struct tfm_weights *weights, const struct tfm_tensor *tensor,
                                    struct tfm_weight *weight, struct tfm_error *err)
{
    pthread_mutex_lock(&weights->lock);
    const enum tfm_status status = tfm__weights_host_get(weights, tensor, weight, err);
    pthread_mutex_unlock(&weights->lock);
    return status;
}

void tfm__weights_host_taken(struct tfm_weights *weights, const struct tfm_tensor *tensor)
{
    const struct entry *e = find(weights, tfm__tensor_root(tensor)->name);
    if (e && e->taken)
        e->taken(e->context, e->data, e->bytes);
}

void *tfm__weights_private_get(struct tfm_weights *weights)
{
    return weights->compiling ? weights->compiling->data : NULL;
}

void tfm__weights_private_set(struct tfm_weights *weights, void *data, void (*destroy)(void *data))
{
    if (weights->compiling) {
        weights->compiling->data = data;
        weights->compiling->destroy = destroy;
    } else if (destroy) {
        destroy(data);
    }
}
