/* SPDX-License-Identifier: MIT
 * For programs that use OpenCL already: TFM runs on their context, device and queue, and reads and writes
 * their cl_mem. Needs CL/cl.h and the opencl backend; libtfm itself links no OpenCL, so everything here is
 * inline over tfm/device.h and tfm/plan.h. docs/opencl-interop.md explains, docs/examples/opencl_interop.c
 * shows it.
 *
 * Who releases what: TFM retains each object that it is given and releases what it retained, never more.
 *   context, device, queue   retained by tfm_opencl_device_wrap, released when the last holder of the
 *                            device is gone: tfm_device_release, the plans, their execs, the weights
 *   cl_mem                   retained by tfm_opencl_exec_bind, released when the tensor is bound anew,
 *                            by tfm_exec_unbind, or with the exec
 * The caller may release his own references at any time after the call.
 *
 * Order: a run is enqueued on the wrapped queue, which is in-order, so it sees everything that was enqueued
 * there before; when tfm_exec_run returns, the queue is finished and results are in the caller's buffers.
 * Work on other queues is the caller's to order: wait for it, or enqueue a barrier on the wrapped queue. */
#ifndef TFM_OPENCL_H
#define TFM_OPENCL_H

#include <CL/cl.h>

#include <tfm/device.h>
#include <tfm/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The backend's name, and its extension (struct tfm_interop of tfm/backend.h): `objects` is a pointer to
 * struct tfm_opencl_objects, a buffer a cl_mem. */
#define TFM_OPENCL_BACKEND "opencl"
#define TFM_OPENCL_INTEROP "opencl.interop-1"

struct tfm_opencl_objects {
    cl_context context;
    cl_device_id device;    /* one of the context's; may be a sub-device */
    cl_command_queue queue; /* of this context and device; in-order */
};

/* A device of the opencl backend on the caller's objects, to compile plans for. Release it with
 * tfm_device_release. Each call makes a device of its own, with its own programs and packed weights: wrap
 * once and share it. The threads of tfm_threads_set do not cut it: who wants a part of a CPU gives a
 * sub-device.
 * INVALID_ARGUMENT: an object is NULL, the context does not hold the device, the queue is of another context
 * or device or is out-of-order; NOT_FOUND, PLUGIN: there is no opencl backend; UNSUPPORTED: it is older than
 * this header, or the device cannot run it; BUILD: its kernels do not build there; NOMEM; BACKEND. */
static inline enum tfm_status
tfm_opencl_device_wrap(struct tfm_registry *registry, cl_context context, cl_device_id device,
                       cl_command_queue queue, struct tfm_device **wrapped, struct tfm_error *err)
{
    struct tfm_opencl_objects objects;
    objects.context = context;
    objects.device = device;
    objects.queue = queue;
    return tfm_device_wrap(registry, TFM_OPENCL_BACKEND, TFM_OPENCL_INTEROP, &objects, wrapped,
                           err);
}

/* The other way round: the objects of a device of the opencl backend, wrapped or opened by name, to make
 * buffers and programs for it. They are borrowed: valid while the device is held, longer if retained. The
 * queue of a device that was opened by name carries transfers only; its execs run on queues of their own,
 * so finish what you enqueue there before a run.
 * UNSUPPORTED: the device is of another backend, or of an older one. */
static inline enum tfm_status tfm_opencl_device_objects(const struct tfm_device *device,
                                                        struct tfm_opencl_objects *objects,
                                                        struct tfm_error *err)
{
    return tfm_device_objects(device, TFM_OPENCL_INTEROP, objects, err);
}

/* Binds an input or output of an exec to bytes [offset, offset + bytes) of `buffer`, which hold the tensor
 * at full capacity, dense and row-major. Kernels read and write them in place; nothing outside of them is
 * touched. As tfm_exec_bind_memory (statuses there), which see for what still passes through the host: I32
 * inputs that are indices, and tensors that another device of the plan needs.
 * INVALID_ARGUMENT also: `buffer` is NULL, no buffer object, of another context, too small (both numbers),
 * or made with flags that forbid what the plan does: CL_MEM_WRITE_ONLY for a tensor that kernels read,
 * CL_MEM_READ_ONLY for one that they write, CL_MEM_HOST_NO_ACCESS and its like for one that passes through
 * the host. */
static inline enum tfm_status tfm_opencl_exec_bind(struct tfm_exec *exec, const char *name,
                                                   cl_mem buffer, size_t offset, size_t bytes,
                                                   struct tfm_error *err)
{
    struct tfm_memory memory;
    memory.buffer = buffer;
    memory.offset = offset;
    return tfm_exec_bind_memory(exec, name, TFM_OPENCL_INTEROP, memory, bytes, err);
}

/* Where an output lies on the device: the bound buffer, or one of TFM's own. It holds the output's rows from
 * the end of a run to the beginning of the next. The buffer is borrowed: it lives as long as the exec does
 * and the output stays bound as it is; retain it to keep it longer. Read it only: other bytes of it are
 * TFM's. Commands on the wrapped queue need no further order.
 *   bytes   of the output at full capacity
 * NOT_FOUND: no such output; UNSUPPORTED: it is not made on a device of this backend. */
static inline enum tfm_status tfm_opencl_exec_memory(const struct tfm_exec *exec, const char *name,
                                                     cl_mem *buffer, size_t *offset, size_t *bytes,
                                                     struct tfm_error *err)
{
    struct tfm_memory memory;
    enum tfm_status status = tfm_exec_memory(exec, name, TFM_OPENCL_INTEROP, &memory, bytes, err);
    if (status == TFM_STATUS_OK) {
        *buffer = (cl_mem)memory.buffer;
        *offset = memory.offset;
    }
    return status;
}

#ifdef __cplusplus
}
#endif
#endif
