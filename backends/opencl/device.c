/* SPDX-License-Identifier: MIT
 * Finding, opening and closing OpenCL devices. Nothing here runs when the module is loaded: a process
 * that has listed devices cannot fork on every implementation. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"

enum { PLATFORMS = 16, PARTS_PER_UNIT = 4 };

/* ---- what there is ---- */

static void platform_name(cl_platform_id platform, char *name, size_t size)
{
    name[0] = 0;
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, name, NULL) != CL_SUCCESS)
        snprintf(name, size, "?");
    name[size - 1] = 0;
}

static void device_text(cl_device_id device, cl_device_info what, char *text, size_t size)
{
    text[0] = 0;
    if (clGetDeviceInfo(device, what, size, text, NULL) != CL_SUCCESS)
        snprintf(text, size, "?");
    text[size - 1] = 0;
}

static cl_bool device_flag(cl_device_id device, cl_device_info what)
{
    cl_bool flag = CL_FALSE;
    (void)clGetDeviceInfo(device, what, sizeof flag, &flag, NULL);
    return flag;
}

static enum tfm_device_kind device_kind(cl_device_id device)
{
    cl_device_type type = 0;
    (void)clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (type & CL_DEVICE_TYPE_CPU)
        return TFM_DEVICE_CPU;
    return type & CL_DEVICE_TYPE_GPU ? TFM_DEVICE_GPU : TFM_DEVICE_ACCELERATOR;
}

/* Why a device cannot be used; NULL when it can. */
static const char *defect(cl_device_id device)
{
    if (!device_flag(device, CL_DEVICE_AVAILABLE))
        return "it is not available";
    if (!device_flag(device, CL_DEVICE_COMPILER_AVAILABLE))
        return "it has no compiler";
    if (!device_flag(device, CL_DEVICE_ENDIAN_LITTLE))
        return "it is big-endian";
    return NULL;
}

static void add_remark(char *remark, size_t size, cl_device_id device, const char *reason)
{
    const size_t used = strlen(remark);
    char name[128];

    device_text(device, CL_DEVICE_NAME, name, sizeof name);
    snprintf(remark + used, size - used, "%sskipped %s: %s", used ? "; " : "", name, reason);
}

uint32_t tfm__cl_list(struct tfm__cl_found *found, uint32_t max, char *remark, size_t size)
{
    cl_platform_id platforms[PLATFORMS];
    cl_uint n_platforms = 0;
    uint32_t n = 0;

    remark[0] = 0;
    const cl_int code = clGetPlatformIDs(PLATFORMS, platforms, &n_platforms);
    if (code != CL_SUCCESS || n_platforms == 0) {
        snprintf(remark, size,
                 "no OpenCL platform (clGetPlatformIDs: %s %d); install an OpenCL driver, e.g. the "
                 "Debian package pocl-opencl-icd",
                 tfm__cl_code_name(code), (int)code);
        return 0;
    }
    for (cl_uint p = 0; p < n_platforms && p < PLATFORMS; p++) {
        cl_device_id devices[TFM_PROBE_DEVICES];
        cl_uint n_devices = 0;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, TFM_PROBE_DEVICES, devices,
                           &n_devices) != CL_SUCCESS)
            continue; /* a platform without devices is no error */
        for (cl_uint d = 0; d < n_devices && d < TFM_PROBE_DEVICES; d++) {
            const char *reason = n < max ? defect(devices[d]) : "there are too many";
            if (reason)
                add_remark(remark, size, devices[d], reason);
            else
                found[n++] = (struct tfm__cl_found){platforms[p], devices[d]};
        }
    }
    if (n == 0 && !remark[0]) {
        char name[128];
        platform_name(platforms[0], name, sizeof name);
        snprintf(
            remark, size,
            "OpenCL platform \"%s\" has no device; install a driver for a device that is here, "
            "e.g. the Debian package pocl-opencl-icd",
            name);
    }
    return n;
}

enum tfm_status tfm__cl_probe(const struct tfm_host *host, const char *params,
                              struct tfm_probe *report, struct tfm_error *err)
{
    struct tfm__cl_found found[TFM_PROBE_DEVICES];

    (void)host;
    (void)params;
    (void)err;
    memset(report, 0, sizeof *report);
    report->n_devices =
        tfm__cl_list(found, TFM_PROBE_DEVICES, report->reason, sizeof report->reason);
    report->usable = report->n_devices > 0;
    for (uint32_t i = 0; i < report->n_devices; i++) {
        const enum tfm_device_kind kind = device_kind(found[i].device);
        const int32_t score = kind == TFM_DEVICE_CPU ? 50 : 100;
        device_text(found[i].device, CL_DEVICE_NAME, report->devices[i].name,
                    sizeof report->devices[i].name);
        platform_name(found[i].platform, report->devices[i].platform,
                      sizeof report->devices[i].platform);
        report->devices[i].kind = kind;
        if (score > report->score)
            report->score = score;
    }
    return TFM_STATUS_OK;
}

/* ---- opening ---- */

/* A device need not be divisible; some drivers that cannot do it have no clCreateSubDevices to call. */
static int divides_by_counts(cl_device_id device)
{
    cl_device_partition_property kinds[8] = {0};
    size_t bytes = 0;

    if (clGetDeviceInfo(device, CL_DEVICE_PARTITION_PROPERTIES, sizeof kinds, kinds, &bytes) !=
        CL_SUCCESS)
        return 0;
    for (size_t i = 0; i < bytes / sizeof *kinds && i < 8; i++) {
        if (kinds[i] == CL_DEVICE_PARTITION_BY_COUNTS)
            return 1;
    }
    return 0;
}

/* On a CPU the user's -t counts: a part of the device with that many units. */
static void take_units(struct tfm__cl_device *d)
{
    const uint32_t threads = d->host->threads();
    const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS,
                                                   (cl_device_partition_property)threads,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_uint units = 1;

    d->id = d->found.device;
    (void)clGetDeviceInfo(d->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    d->units = units > 0 ? units : 1;
    if (d->kind != TFM_DEVICE_CPU || threads == 0 || threads >= d->units)
        return;
    cl_device_id part = NULL;
    const cl_int code = divides_by_counts(d->id)
                            ? clCreateSubDevices(d->found.device, counts, 1, &part, NULL)
                            : CL_DEVICE_PARTITION_FAILED;
    if (code == CL_SUCCESS) {
        d->id = part;
        d->units = threads;
        return;
    }
    char text[256];
    snprintf(text, sizeof text,
             "%s cannot be cut to %u of its %u units (clCreateSubDevices: %s); all run", d->name,
             threads, d->units, tfm__cl_code_name(code));
    d->host->log(TFM_LOG_WARN, "opencl", text);
}

static void read_facts(struct tfm__cl_device *d)
{
    cl_ulong max_alloc = 0;
    cl_uint align_bits = 0;

    device_text(d->found.device, CL_DEVICE_NAME, d->name, sizeof d->name);
    device_text(d->found.device, CL_DRIVER_VERSION, d->driver, sizeof d->driver);
    platform_name(d->found.platform, d->platform, sizeof d->platform);
    d->kind = device_kind(d->found.device);
    (void)clGetDeviceInfo(d->found.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof max_alloc,
                          &max_alloc, NULL);
    (void)clGetDeviceInfo(d->found.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align_bits,
                          &align_bits, NULL);
    d->max_alloc = max_alloc > SIZE_MAX ? SIZE_MAX : (size_t)max_alloc;
    d->base_align = align_bits / 8 > TFM_ALIGNMENT ? align_bits / 8 : TFM_ALIGNMENT;
}

static enum tfm_status create_objects(struct tfm__cl_device *d, struct tfm_error *err)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)d->found.platform, 0};
    cl_int code = CL_SUCCESS;

    d->context = clCreateContext(properties, 1, &d->id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clCreateContext", code);
    d->queue = clCreateCommandQueue(d->context, d->id, 0, &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clCreateCommandQueue", code);
    return tfm__cl_programs_open(d, err);
}

enum tfm_status tfm__cl_open(const struct tfm_host *host, uint32_t index, void **device,
                             struct tfm_error *err)
{
    struct tfm__cl_found found[TFM_PROBE_DEVICES];
    char remark[512];
    const uint32_t n = tfm__cl_list(found, TFM_PROBE_DEVICES, remark, sizeof remark);

    if (index >= n)
        return host->error(err, TFM_STATUS_NOT_FOUND, "opencl: there is no device %u of %u%s%s",
                           index, n, remark[0] ? ": " : "", remark);
    struct tfm__cl_device *d = host->alloc(sizeof *d);
    if (!d)
        return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the device");
    memset(d, 0, sizeof *d);
    d->host = host;
    d->found = found[index];
    pthread_mutex_init(&d->gemm_lock, NULL);
    pthread_mutex_init(&d->build_lock, NULL);
    read_facts(d);
    take_units(d);
    d->parts = d->units * PARTS_PER_UNIT;
    const enum tfm_status status = create_objects(d, err);
    if (status != TFM_STATUS_OK) {
        tfm__cl_close(d);
        return status;
    }
    *device = d;
    return TFM_STATUS_OK;
}

void tfm__cl_close(void *device)
{
    struct tfm__cl_device *d = device;

    if (d->gemm_ready)
        tfm__cl_gemm_forget();
    tfm__cl_programs_close(d);
    if (d->queue)
        (void)clReleaseCommandQueue(d->queue);
    if (d->context)
        (void)clReleaseContext(d->context);
    if (d->id != d->found.device)
        (void)clReleaseDevice(d->id);
    pthread_mutex_destroy(&d->gemm_lock);
    pthread_mutex_destroy(&d->build_lock);
    d->host->free(d);
}

void tfm__cl_caps(void *device, struct tfm_device_caps *caps)
{
    const struct tfm__cl_device *d = device;

    memset(caps, 0, sizeof *caps);
    caps->whole_segments = 1;
    caps->max_alloc = d->max_alloc;
    snprintf(caps->description, sizeof caps->description,
             "%.100s (%.60s, driver %.30s), %u compute units", d->name, d->platform, d->driver,
             d->units);
}

enum tfm_status tfm__cl_sync(void *device, struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;
    const cl_int code = clFinish(d->queue);
    return code == CL_SUCCESS ? TFM_STATUS_OK : tfm__cl_fail(d->host, err, "clFinish", code);
}
