/* SPDX-License-Identifier: MIT
 * The pool: all weights of a model on one device, in few large buffers, kept with the weights and
 * shared by every plan over them. Matrices that linear and embedding read lie there in panels, all
 * else as it is stored. */
#include <string.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* BATCH: bytes that are packed between two looks at the whole: the owner's pages are in memory too for so
 * long. */
enum { ALIGNMENT = 128, BATCH = 8 << 20 };

struct entry {
    char *name;
    enum tfm__cl_form form;
    size_t columns; /* panels: of a row; a view may cut its rows otherwise */
    cl_mem buffer;
    size_t offset;
};

struct chunk {
    cl_mem buffer;
    struct chunk *next;
};

struct tfm__cl_pool {
    const struct tfm_host *host;
    struct entry *entries;
    size_t n, room;
    struct chunk *chunks;
};

/* ---- looking up ---- */

static const struct tfm_tensor *root_of(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of : tensor;
}

static size_t columns_of(const struct tfm_tensor *tensor, enum tfm__cl_form form)
{
    return form == TFM__CL_PANELS ? (size_t)tensor->shape[1] : 0;
}

static const struct entry *find(const struct tfm__cl_pool *pool, const struct tfm_tensor *tensor,
                                enum tfm__cl_form form)
{
    for (size_t i = 0; i < pool->n; i++) {
        const struct entry *e = &pool->entries[i];
        if (e->form == form && e->columns == columns_of(tensor, form) &&
            strcmp(e->name, root_of(tensor)->name) == 0)
            return e;
    }
    return NULL;
}

struct tfm_memory tfm__cl_pool_find(const struct tfm__cl_pool *pool,
                                    const struct tfm_tensor *tensor, enum tfm__cl_form form)
{
    const struct entry *e = find(pool, tensor, form);
    return e ? (struct tfm_memory){e->buffer, e->offset} : (struct tfm_memory){NULL, 0};
}

/* ---- the pool itself ---- */

static void pool_destroy(void *data)
{
    struct tfm__cl_pool *pool = data;

    for (size_t i = 0; i < pool->n; i++)
        pool->host->free(pool->entries[i].name);
    for (struct chunk *c = pool->chunks, *next; c; c = next) {
        next = c->next;
        (void)clReleaseMemObject(c->buffer);
        pool->host->free(c);
    }
    pool->host->free(pool->entries);
    pool->host->free(pool);
}

static enum tfm_status no_memory(const struct tfm_host *host, struct tfm_error *err)
{
    return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the pool of weights");
}

static enum tfm_status pool_of(struct tfm__cl_device *d, struct tfm_weights *weights,
                               struct tfm__cl_pool **pool, struct tfm_error *err)
{
    struct tfm__cl_pool *p = d->host->private_get(weights);

    if (!p) {
        p = d->host->alloc(sizeof *p);
        if (!p)
            return no_memory(d->host, err);
        memset(p, 0, sizeof *p);
        p->host = d->host;
        d->host->private_set(weights, p, pool_destroy);
        if (d->host->private_get(weights) != p) /* the core had no room to keep it: it is gone */
            return no_memory(d->host, err);
    }
    *pool = p;
    return TFM_STATUS_OK;
}

static enum tfm_status reserve(struct tfm__cl_pool *pool, size_t more, struct tfm_error *err)
{
    size_t room, bytes;

    if (pool->n + more <= pool->room)
        return TFM_STATUS_OK;
    if (tfm__add_size(pool->n, more, &room) || tfm__mul_size(room, sizeof *pool->entries, &bytes))
        return no_memory(pool->host, err);
    struct entry *entries = pool->host->alloc(bytes);
    if (!entries)
        return no_memory(pool->host, err);
    if (pool->n)
        memcpy(entries, pool->entries, pool->n * sizeof *entries);
    pool->host->free(pool->entries);
    pool->entries = entries;
    pool->room = room;
    return TFM_STATUS_OK;
}

/* ---- packing ---- */

/* What is to be done for one need. */
struct task {
    const struct tfm__cl_need *need;
    struct tfm_weight weight;
    size_t bytes; /* in the pool, a multiple of ALIGNMENT */
    size_t offset;
};

static enum tfm_status measure(struct tfm__cl_device *d, struct tfm_weights *weights,
                               struct task *task, struct tfm_error *err)
{
    const struct tfm_tensor *t = task->need->tensor;
    const enum tfm_status status = d->host->weight(weights, root_of(t), &task->weight, err);
    size_t bytes = task->weight.bytes;

    if (status != TFM_STATUS_OK)
        return status;
    if (task->need->form == TFM__CL_PANELS) {
        const size_t panels = ((size_t)t->shape[0] + TFM_PANEL - 1) / TFM_PANEL;
        if (tfm__mul_size(panels, tfm__cl_panel_bytes(t->dtype, (size_t)t->shape[1]), &bytes))
            bytes = SIZE_MAX;
    }
    if (tfm__align_size(bytes ? bytes : 1, ALIGNMENT, &task->bytes) || task->bytes > d->max_alloc)
        return d->host->error(err, TFM_STATUS_NOMEM,
                              "opencl: weight \"%s\" takes %zu bytes, more than the %zu that a "
                              "buffer of %s can hold; use a device with a larger "
                              "CL_DEVICE_MAX_MEM_ALLOC_SIZE",
                              root_of(t)->name, bytes, d->max_alloc, d->name);
    return TFM_STATUS_OK;
}

/* Tasks that lie one after another in a buffer and are packed in one go, by all threads. */
struct batch {
    const struct task *tasks;
    size_t n;
    unsigned char *to; /* where the first task's bytes go */
};

/* A raw tensor is one piece, a matrix one for each panel. */
static size_t pieces_of(const struct task *task)
{
    return task->need->form == TFM__CL_PANELS
               ? ((size_t)task->need->tensor->shape[0] + TFM_PANEL - 1) / TFM_PANEL
               : 1;
}

static void pack_pieces(void *context, size_t begin, size_t end)
{
    const struct batch *batch = context;
    size_t first = 0; /* piece of the task */

    for (size_t i = 0; i < batch->n && first < end; i++) {
        const struct task *task = &batch->tasks[i];
        const struct tfm_tensor *t = task->need->tensor;
        unsigned char *to = batch->to + (task->offset - batch->tasks[0].offset);
        const size_t n = pieces_of(task), from = begin > first ? begin - first : 0;
        const size_t past = end - first < n ? end - first : n;
        if (from < past && task->need->form == TFM__CL_PANELS)
            tfm__cl_pack(t->dtype, task->weight.data, (size_t)t->shape[0], (size_t)t->shape[1],
                         from, past, to);
        else if (from < past && task->weight.bytes)
            memcpy(to, task->weight.data, task->weight.bytes);
        first += n;
    }
}

/* Straight into the mapped pool: no second copy of a tensor in host memory where the device shares it. */
static enum tfm_status pack(struct tfm__cl_device *d, struct tfm_weights *weights, cl_mem buffer,
                            const struct task *tasks, size_t n, struct tfm_error *err)
{
    const size_t bytes = tasks[n - 1].offset + tasks[n - 1].bytes - tasks[0].offset;
    cl_int code = CL_SUCCESS;
    size_t pieces = 0;
    unsigned char *to =
        clEnqueueMapBuffer(d->queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION,
                           tasks[0].offset, bytes, 0, NULL, NULL, &code);

    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clEnqueueMapBuffer", code);
    for (size_t i = 0; i < n; i++)
        pieces += pieces_of(&tasks[i]);
    struct batch batch = {tasks, n, to};
    d->host->parallel_for(pieces, pack_pieces, &batch);
    code = clEnqueueUnmapMemObject(d->queue, buffer, to, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clEnqueueUnmapMemObject", code);
    code = clFinish(d->queue);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clFinish", code);
    for (size_t i = 0; i < n; i++)
        d->host->weight_taken(weights, root_of(tasks[i].need->tensor));
    return TFM_STATUS_OK;
}

static enum tfm_status add_entry(struct tfm__cl_pool *pool, const struct task *task, cl_mem buffer,
                                 struct tfm_error *err)
{
    const struct tfm_tensor *t = task->need->tensor;
    const char *name = root_of(t)->name;
    char *copy = pool->host->alloc(strlen(name) + 1);

    if (!copy)
        return no_memory(pool->host, err);
    strcpy(copy, name);
    pool->entries[pool->n++] = (struct entry){
        copy, task->need->form, columns_of(t, task->need->form), buffer, task->offset};
    return TFM_STATUS_OK;
}

/* Of tasks [0, n): packed into the buffer batch by batch, entries added. */
static enum tfm_status fill(struct tfm__cl_device *d, struct tfm_weights *weights,
                            struct tfm__cl_pool *pool, const struct task *tasks, size_t n,
                            cl_mem buffer, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (size_t i = 0, first = 0; i < n && status == TFM_STATUS_OK; i++) {
        status = add_entry(pool, &tasks[i], buffer, err);
        if (status == TFM_STATUS_OK &&
            (i + 1 == n || tasks[i + 1].offset - tasks[first].offset > BATCH)) {
            status = pack(d, weights, buffer, &tasks[first], i + 1 - first, err);
            first = i + 1;
        }
    }
    return status;
}

/* Tasks [0, n) go to one new buffer of `bytes`. Room for their entries is reserved. A buffer that could
 * not be filled is given back: who tries again would need its memory twice. */
static enum tfm_status fill_chunk(struct tfm__cl_device *d, struct tfm_weights *weights,
                                  struct tfm__cl_pool *pool, const struct task *tasks, size_t n,
                                  size_t bytes, struct tfm_error *err)
{
    const size_t before = pool->n;
    int zeroed;
    struct chunk *chunk = d->host->alloc(sizeof *chunk);

    if (!chunk)
        return no_memory(d->host, err);
    enum tfm_status status = tfm__cl_buffer_create(d, CL_MEM_READ_ONLY, bytes, TFM__CL_DENSE,
                                                   &chunk->buffer, &zeroed, err);
    if (status != TFM_STATUS_OK) {
        d->host->free(chunk);
        return status;
    }
    status = fill(d, weights, pool, tasks, n, chunk->buffer, err);
    if (status != TFM_STATUS_OK) {
        while (pool->n > before)
            d->host->free(pool->entries[--pool->n].name);
        (void)clReleaseMemObject(chunk->buffer);
        d->host->free(chunk);
        return status;
    }
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    return TFM_STATUS_OK;
}

/* 1 if needs[i] is in the pool or stands earlier in the list. */
static int is_done(const struct tfm__cl_pool *pool, const struct tfm__cl_need *needs, size_t i)
{
    const struct tfm__cl_need *n = &needs[i];

    if (find(pool, n->tensor, n->form))
        return 1;
    for (size_t k = 0; k < i; k++) {
        if (needs[k].form == n->form && root_of(needs[k].tensor) == root_of(n->tensor) &&
            columns_of(needs[k].tensor, n->form) == columns_of(n->tensor, n->form))
            return 1;
    }
    return 0;
}

enum tfm_status tfm__cl_pool_take(struct tfm__cl_device *d, struct tfm_weights *weights,
                                  const struct tfm__cl_need *needs, size_t n,
                                  struct tfm__cl_pool **pool, struct tfm_error *err)
{
    size_t n_tasks = 0, used = 0, first = 0, bytes;
    enum tfm_status status = pool_of(d, weights, pool, err);

    if (status != TFM_STATUS_OK)
        return status;
    status = reserve(*pool, n, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (tfm__mul_size(n ? n : 1, sizeof(struct task), &bytes))
        return no_memory(d->host, err);
    struct task *tasks = d->host->alloc(bytes);
    if (!tasks)
        return no_memory(d->host, err);
    for (size_t i = 0; i < n && status == TFM_STATUS_OK; i++) {
        if (is_done(*pool, needs, i))
            continue;
        tasks[n_tasks] = (struct task){.need = &needs[i]};
        status = measure(d, weights, &tasks[n_tasks], err);
        n_tasks += status == TFM_STATUS_OK;
    }
    /* a buffer is filled up to what the device allows, then the next one begins */
    for (size_t i = 0; i <= n_tasks && status == TFM_STATUS_OK; i++) {
        if (i > first && (i == n_tasks || tasks[i].bytes > d->max_alloc - used)) {
            status = fill_chunk(d, weights, *pool, tasks + first, i - first, used, err);
            first = i;
            used = 0;
        }
        if (i < n_tasks) {
            tasks[i].offset = used;
            used += tasks[i].bytes;
        }
    }
    d->host->free(tasks);
    return status;
}
