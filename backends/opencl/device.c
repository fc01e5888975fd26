/* SPDX-License-Identifier: MIT
 * Finding, opening and closing OpenCL devices. Nothing here runs when the module is loaded: a process
 * that has listed devices cannot fork on every implementation. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"
#include "backends/opencl/pocl_cache.h"
#include "backends/opencl/workers.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/tune.h"

enum { PLATFORMS = 16 };

/* ---- what there is ---- */

/* What a question about a platform or device came to: 1 = answered; else 0 with the reason, which names
 * the call. A driver that cannot answer now is no driver without devices. */
static int answered(cl_int code, const char *call, char *why, size_t size)
{
    if (code == CL_SUCCESS)
        return 1;
    snprintf(why, size, "%s: %s (%d)", call, tfm__cl_code_name(code), (int)code);
    return 0;
}

/* A name; "?" when it is longer than the room for it. */
static int name_of(cl_platform_id platform, cl_device_id device, char *name, size_t size, char *why,
                   size_t why_size)
{
    const char *call = device ? "clGetDeviceInfo" : "clGetPlatformInfo";
    cl_int code = device ? clGetDeviceInfo(device, CL_DEVICE_NAME, size, name, NULL)
                         : clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, name, NULL);

    if (code != CL_SUCCESS)
        snprintf(name, size, "?");
    name[size - 1] = 0;
    return answered(code == CL_INVALID_VALUE ? CL_SUCCESS : code, call, why, why_size);
}

/* Fills in what is told of a device; 0 = it cannot be used, with the reason. */
static int examine(struct tfm__cl_found *found, char *why, size_t size)
{
    static const struct {
        cl_device_info what;
        const char *otherwise;
    } musts[] = {
        {CL_DEVICE_AVAILABLE, "it is not available"},
        {CL_DEVICE_COMPILER_AVAILABLE, "it has no compiler"},
        {CL_DEVICE_ENDIAN_LITTLE, "it is big-endian"},
    };
    cl_device_type type = 0;

    if (!name_of(NULL, found->device, found->name, sizeof found->name, why, size) ||
        !answered(clGetDeviceInfo(found->device, CL_DEVICE_TYPE, sizeof type, &type, NULL),
                  "clGetDeviceInfo", why, size))
        return 0;
    found->kind = type & CL_DEVICE_TYPE_CPU   ? TFM_DEVICE_CPU
                  : type & CL_DEVICE_TYPE_GPU ? TFM_DEVICE_GPU
                                              : TFM_DEVICE_ACCELERATOR;
    for (size_t i = 0; i < sizeof musts / sizeof *musts; i++) {
        cl_bool flag = CL_FALSE;
        if (!answered(clGetDeviceInfo(found->device, musts[i].what, sizeof flag, &flag, NULL),
                      "clGetDeviceInfo", why, size))
            return 0;
        if (!flag) {
            snprintf(why, size, "%s", musts[i].otherwise);
            return 0;
        }
    }
    return 1;
}

static void add_remark(char *remark, size_t size, const char *name, const char *reason)
{
    const size_t used = strlen(remark);

    snprintf(remark + used, size - used, "%sskipped %s: %s", used ? "; " : "", name, reason);
}

static uint32_t list_platform(cl_platform_id platform, struct tfm__cl_found *found, uint32_t max,
                              char *remark, size_t size)
{
    struct tfm__cl_found f = {.platform = platform};
    cl_device_id devices[TFM_PROBE_DEVICES];
    cl_uint n_devices = 0;
    uint32_t n = 0;
    char why[128];

    if (!name_of(platform, NULL, f.platform_name, sizeof f.platform_name, why, sizeof why)) {
        add_remark(remark, size, "a platform", why);
        return 0;
    }
    const cl_int code =
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, TFM_PROBE_DEVICES, devices, &n_devices);
    if (code == CL_DEVICE_NOT_FOUND) /* a platform without devices is no error */
        return 0;
    if (!answered(code, "clGetDeviceIDs", why, sizeof why)) {
        add_remark(remark, size, f.platform_name, why);
        return 0;
    }
    for (cl_uint d = 0; d < n_devices && d < TFM_PROBE_DEVICES; d++) {
        f.device = devices[d];
        if (!examine(&f, why, sizeof why))
            add_remark(remark, size, f.name[0] ? f.name : "a device", why);
        else if (n == max)
            add_remark(remark, size, f.name, "there are too many");
        else
            found[n++] = f;
        f.name[0] = 0;
    }
    return n;
}

/* What `auto` thinks of a device. */
static int32_t score_of(const struct tfm__cl_found *found)
{
    return found->kind == TFM_DEVICE_CPU ? 50 : 100;
}

void tfm__cl_best_first(struct tfm__cl_found *found, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct tfm__cl_found moved = found[i];
        uint32_t place = i;
        for (; place > 0 && score_of(&found[place - 1]) < score_of(&moved); place--)
            found[place] = found[place - 1];
        found[place] = moved;
    }
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
    for (cl_uint p = 0; p < n_platforms && p < PLATFORMS; p++)
        n += list_platform(platforms[p], found + n, max - n, remark, size);
    if (n == 0 && !remark[0]) {
        char name[128], why[128];
        (void)name_of(platforms[0], NULL, name, sizeof name, why, sizeof why);
        snprintf(
            remark, size,
            "OpenCL platform \"%s\" has no device; install a driver for a device that is here, "
            "e.g. the Debian package pocl-opencl-icd",
            name);
    }
    tfm__cl_best_first(found, n);
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
        const int32_t score = score_of(&found[i]);
        snprintf(report->devices[i].name, sizeof report->devices[i].name, "%s", found[i].name);
        snprintf(report->devices[i].platform, sizeof report->devices[i].platform, "%s",
                 found[i].platform_name);
        report->devices[i].kind = found[i].kind;
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

static enum tfm_status ask(const struct tfm__cl_device *d, cl_device_info what, void *answer,
                           size_t bytes, struct tfm_error *err)
{
    const cl_int code = clGetDeviceInfo(d->found.device, what, bytes, answer, NULL);
    return code == CL_SUCCESS ? TFM_STATUS_OK : tfm__cl_fail(d->host, err, "clGetDeviceInfo", code);
}

static enum tfm_status read_facts(struct tfm__cl_device *d, struct tfm_error *err)
{
    cl_ulong max_alloc = 0;
    cl_uint align_bits = 0, units = 0;
    enum tfm_status status =
        ask(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &max_alloc, sizeof max_alloc, err);

    if (status == TFM_STATUS_OK)
        status = ask(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align_bits, sizeof align_bits, err);
    if (status == TFM_STATUS_OK)
        status = ask(d, CL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof units, err);
    /* only shown: a driver that keeps its version to itself works as well */
    if (clGetDeviceInfo(d->id, CL_DRIVER_VERSION, sizeof d->driver, d->driver, NULL) != CL_SUCCESS)
        snprintf(d->driver, sizeof d->driver, "?");
    d->driver[sizeof d->driver - 1] = 0;
    d->units = units > 0 ? units : 1;
    d->max_alloc = max_alloc > SIZE_MAX ? SIZE_MAX : (size_t)max_alloc;
    d->base_align = align_bits / 8 > TFM_ALIGNMENT ? align_bits / 8 : TFM_ALIGNMENT;
    return status;
}

/* On a CPU the user's -t counts: a part of the device with that many units. A device of the caller stays
 * whole: it is his to cut. */
static void take_units(struct tfm__cl_device *d, const struct tfm_opencl_objects *lent)
{
    const uint32_t threads = d->host->threads();
    const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS,
                                                   (cl_device_partition_property)threads,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_device_id part = NULL;

    if (lent || d->kind != TFM_DEVICE_CPU || threads == 0 || threads >= d->units)
        return;
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

/* Holds what the caller lends; release is the same as for our own. */
static enum tfm_status retain_objects(struct tfm__cl_device *d,
                                      const struct tfm_opencl_objects *lent, struct tfm_error *err)
{
    cl_int code = clRetainDevice(lent->device);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clRetainDevice", code);
    d->lent = 1;
    code = clRetainContext(lent->context);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clRetainContext", code);
    d->context = lent->context;
    code = clRetainCommandQueue(lent->queue);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clRetainCommandQueue", code);
    d->queue = lent->queue;
    return TFM_STATUS_OK;
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
    return TFM_STATUS_OK;
}

/* What is told of a device that works. */
static void tell_choices(struct tfm__cl_device *d, const struct tfm_opencl_objects *lent)
{
    const char *folder = secure_getenv("TFM_KERNEL_PATH");
    char text[64], why[128];

    snprintf(text, sizeof text, "%u", d->units);
    if (lent)
        snprintf(why, sizeof why, "the program's own device is used whole");
    else if (d->kind == TFM_DEVICE_CPU)
        snprintf(why, sizeof why, "%u threads are allowed (-t, TFM_THREADS, affinity)",
                 d->host->threads());
    else
        snprintf(why, sizeof why, "a device that is no CPU is used whole");
    tfm__cl_choose(d, "compute units", text, why);
    tfm__cl_choose(d, "kernels", folder && *folder ? folder : "those in the module",
                   folder && *folder ? "TFM_KERNEL_PATH names them" : "TFM_KERNEL_PATH is not set");
}

/* lent: objects of the caller, checked; NULL = make our own. */
static enum tfm_status open_found(const struct tfm_host *host, const struct tfm__cl_found *found,
                                  const struct tfm_opencl_objects *lent, void **device,
                                  struct tfm_error *err)
{
    struct tfm__cl_device *d = host->alloc(sizeof *d);
    if (!d)
        return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the device");
    memset(d, 0, sizeof *d);
    d->host = host;
    d->found = *found;
    d->id = d->found.device;
    d->kind = d->found.kind;
    snprintf(d->name, sizeof d->name, "%s", d->found.name);
    snprintf(d->platform, sizeof d->platform, "%s", d->found.platform_name);
    pthread_mutex_init(&d->act_lock, NULL);
    pthread_mutex_init(&d->gemm_lock, NULL);
    pthread_mutex_init(&d->build_lock, NULL);
    enum tfm_status status = read_facts(d, err);
    if (status == TFM_STATUS_OK) {
        take_units(d, lent);
        status = tfm__cl_tune_open(d, err);
    }
    if (status == TFM_STATUS_OK)
        status = tfm__cl_settings_read(d, err);
    if (status == TFM_STATUS_OK)
        status = lent ? retain_objects(d, lent, err) : create_objects(d, err);
    if (status == TFM_STATUS_OK)
        tfm__cl_workers_open(d);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_pulse_open(d, err);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_programs_open(d, err);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_int8_open(d, err);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_bf16_open(d, err);
    if (status != TFM_STATUS_OK) {
        tfm__cl_close(d);
        return status;
    }
    if (tfm__cl_trace_wanted())
        d->trace = tfm__cl_trace_device(d);
    tell_choices(d, lent);
    *device = d;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__cl_open_lent(const struct tfm_host *host, cl_platform_id platform,
                                  const struct tfm_opencl_objects *lent, void **device,
                                  struct tfm_error *err)
{
    struct tfm__cl_found found = {.platform = platform, .device = lent->device};
    char why[128];

    if (!name_of(platform, NULL, found.platform_name, sizeof found.platform_name, why,
                 sizeof why) ||
        !examine(&found, why, sizeof why))
        return host->error(err, TFM_STATUS_UNSUPPORTED, "opencl: device \"%s\": %s", found.name,
                           why);
    return open_found(host, &found, lent, device, err);
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
    return open_found(host, &found[index], NULL, device, err);
}

/* What really ran, for who wants to know whether CLBlast had a part in it. */
static void tell_counts(const struct tfm__cl_device *d)
{
    char text[128];

    snprintf(text, sizeof text, "so far %llu SGEMM calls of CLBlast and %llu launches",
             (unsigned long long)atomic_load(&tfm__cl_sgemm_calls),
             (unsigned long long)atomic_load(&tfm__cl_kernel_launches));
    d->host->log(TFM_LOG_INFO, "opencl", text);
}

/* Nobody asked for the table: the timeline is written all the same. */
static void write_trace(const struct tfm__cl_device *d)
{
    struct tfm_error err = {0};

    if (d->trace && !d->told && tfm__cl_trace_write(d->host, &err) != TFM_STATUS_OK)
        d->host->log(TFM_LOG_WARN, "opencl", err.text);
}

void tfm__cl_close(void *device)
{
    struct tfm__cl_device *d = device;

    write_trace(d);
    if (d->context)
        tell_counts(d);
    if (d->gemm_used)
        tfm__cl_gemm_forget();
    tfm__cl_tune_close(d);
    tfm__cl_programs_close(d);
    tfm__cl_pulse_close(d);
    tfm__cl_workers_close(d);
    if (d->queue)
        (void)clReleaseCommandQueue(d->queue);
    if (d->context)
        (void)clReleaseContext(d->context);
    if (d->lent || d->id != d->found.device)
        (void)clReleaseDevice(d->id);
    tfm__cl_pocl_cache_note(d);
    pthread_mutex_destroy(&d->act_lock);
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
