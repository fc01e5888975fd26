/* SPDX-License-Identifier: MIT
 * The extension "doctor-1": drivers, platforms, devices and their limits, for `tfm doctor`. A question that a
 * driver does not answer is told with the code that it gave. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/doctor.h"

enum { PLATFORMS = 16, DEVICES = 16, TEXT = 4096 };

static void text_of(const struct tfm_doctor_sink *sink, const char *key, cl_int code,
                    const char *value)
{
    char why[128];

    if (code == CL_SUCCESS) {
        sink->text(sink->context, key, value);
        return;
    }
    snprintf(why, sizeof why, "not told: %s (%d)", tfm__cl_code_name(code), (int)code);
    sink->text(sink->context, key, why);
}

/* ---- devices ------------------------------------------------------------------------------------ */

enum form { NAME, COUNT32, COUNT, BYTES, BYTES64, BITS32, FLAG };

/* Every question about a device: what it is called, and what its answer is. */
static const struct question {
    const char *key;
    cl_device_info what;
    enum form form;
} questions[] = {
    {"name", CL_DEVICE_NAME, NAME},
    {"vendor", CL_DEVICE_VENDOR, NAME},
    {"version", CL_DEVICE_VERSION, NAME},
    {"driver", CL_DRIVER_VERSION, NAME},
    {"opencl_c", CL_DEVICE_OPENCL_C_VERSION, NAME},
    {"compute_units", CL_DEVICE_MAX_COMPUTE_UNITS, COUNT32},
    {"clock_mhz", CL_DEVICE_MAX_CLOCK_FREQUENCY, COUNT32},
    {"max_work_group", CL_DEVICE_MAX_WORK_GROUP_SIZE, COUNT},
    {"local_memory", CL_DEVICE_LOCAL_MEM_SIZE, BYTES64},
    {"global_memory", CL_DEVICE_GLOBAL_MEM_SIZE, BYTES64},
    {"max_alloc", CL_DEVICE_MAX_MEM_ALLOC_SIZE, BYTES64},
    {"max_constant", CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, BYTES64},
    {"max_parameter", CL_DEVICE_MAX_PARAMETER_SIZE, BYTES},
    {"alignment", CL_DEVICE_MEM_BASE_ADDR_ALIGN, BITS32},
    {"unified_memory", CL_DEVICE_HOST_UNIFIED_MEMORY, FLAG},
    {"available", CL_DEVICE_AVAILABLE, FLAG},
    {"compiler", CL_DEVICE_COMPILER_AVAILABLE, FLAG},
    {"little_endian", CL_DEVICE_ENDIAN_LITTLE, FLAG},
};

/* What a device may have beyond OpenCL 1.2. */
static const struct {
    const char *key, *extension;
} extras[] = {
    {"fp16", "cl_khr_fp16"},
    {"fp64", "cl_khr_fp64"},
    {"integer_dot", "cl_khr_integer_dot_product"},
    {"subgroups", "cl_khr_subgroups"},
};

static void ask(cl_device_id device, const struct question *q, const struct tfm_doctor_sink *sink)
{
    union {
        char text[TEXT];
        cl_uint u32;
        cl_ulong u64;
        size_t size;
        cl_bool flag;
    } answer;
    static const size_t sizes[] = {[NAME] = TEXT,
                                   [COUNT32] = sizeof(cl_uint),
                                   [COUNT] = sizeof(size_t),
                                   [BYTES] = sizeof(size_t),
                                   [BYTES64] = sizeof(cl_ulong),
                                   [BITS32] = sizeof(cl_uint),
                                   [FLAG] = sizeof(cl_bool)};

    memset(&answer, 0, sizeof answer);
    const cl_int code = clGetDeviceInfo(device, q->what, sizes[q->form], &answer, NULL);
    if (code != CL_SUCCESS) {
        text_of(sink, q->key, code, "");
        return;
    }
    switch (q->form) {
    case NAME:
        answer.text[TEXT - 1] = 0;
        sink->text(sink->context, q->key, answer.text);
        break;
    case COUNT32:
        sink->number(sink->context, q->key, answer.u32, TFM_DOCTOR_COUNT);
        break;
    case COUNT:
        sink->number(sink->context, q->key, answer.size, TFM_DOCTOR_COUNT);
        break;
    case BYTES:
        sink->number(sink->context, q->key, answer.size, TFM_DOCTOR_BYTES);
        break;
    case BYTES64:
        sink->number(sink->context, q->key, answer.u64, TFM_DOCTOR_BYTES);
        break;
    case BITS32:
        sink->number(sink->context, q->key, answer.u32 / 8, TFM_DOCTOR_BYTES);
        break;
    case FLAG:
        sink->flag(sink->context, q->key, answer.flag != CL_FALSE);
        break;
    }
}

/* 1 if the word stands alone in a list with blanks between. */
static int has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return 1;
    }
    return 0;
}

static void tell_extras(cl_device_id device, const struct tfm_host *host,
                        const struct tfm_doctor_sink *sink)
{
    size_t bytes = 0;
    cl_int code = clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes);
    char *list = code == CL_SUCCESS ? host->alloc(bytes + 1) : NULL;

    if (list) {
        memset(list, 0, bytes + 1);
        code = clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, list, NULL);
    }
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        if (list && code == CL_SUCCESS)
            sink->flag(sink->context, extras[i].key, has_word(list, extras[i].extension));
        else
            text_of(sink, extras[i].key, code != CL_SUCCESS ? code : CL_OUT_OF_HOST_MEMORY, "");
    }
    host->free(list);
}

/* Its number in the list of usable ones, which is what users type; -1 = it is not there. */
static int place_of(cl_device_id device, const struct tfm__cl_found *found, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (found[i].device == device)
            return (int)i;
    }
    return -1;
}

static void tell_device(cl_device_id device, size_t platform, const struct tfm_host *host,
                        const struct tfm_doctor_sink *sink)
{
    struct tfm__cl_found found[TFM_PROBE_DEVICES];
    char remark[512], spec[32];
    const uint32_t n = tfm__cl_list(found, TFM_PROBE_DEVICES, remark, sizeof remark);
    const int place = place_of(device, found, n);
    cl_device_type type = 0;

    sink->item(sink->context, "devices");
    if (place >= 0)
        snprintf(spec, sizeof spec, "opencl:%d", place);
    sink->text(sink->context, "device", place >= 0 ? spec : "");
    if (place < 0)
        sink->text(sink->context, "not_used", remark);
    sink->number(sink->context, "platform", platform, TFM_DOCTOR_COUNT);
    const cl_int code = clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    text_of(sink, "type", code,
            type & CL_DEVICE_TYPE_CPU   ? "cpu"
            : type & CL_DEVICE_TYPE_GPU ? "gpu"
                                        : "accelerator");
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        ask(device, &questions[i], sink);
    tell_extras(device, host, sink);
}

/* ---- platforms ---------------------------------------------------------------------------------- */

static void tell_platform(cl_platform_id platform, cl_uint n_devices, cl_int code,
                          const struct tfm_doctor_sink *sink)
{
    static const struct {
        const char *key;
        cl_platform_info what;
    } names[] = {
        {"name", CL_PLATFORM_NAME},
        {"vendor", CL_PLATFORM_VENDOR},
        {"version", CL_PLATFORM_VERSION},
    };
    char text[TEXT];

    sink->item(sink->context, "platforms");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        text[0] = 0;
        const cl_int told = clGetPlatformInfo(platform, names[i].what, sizeof text, text, NULL);
        text[sizeof text - 1] = 0;
        text_of(sink, names[i].key, told, text);
    }
    if (code == CL_SUCCESS || code == CL_DEVICE_NOT_FOUND)
        sink->number(sink->context, "devices", code == CL_SUCCESS ? n_devices : 0,
                     TFM_DOCTOR_COUNT);
    else
        text_of(sink, "devices", code, "");
}

static void machine(const struct tfm_host *host, const struct tfm_doctor_sink *sink)
{
    cl_platform_id platforms[PLATFORMS];
    cl_device_id devices[DEVICES];
    cl_uint n = 0, n_devices;

    if (sink->struct_size < sizeof *sink)
        return;
    /* files first: a driver that crashes when it is asked has been named by then */
    tfm__cl_doctor_drivers(sink);
    const cl_int code = clGetPlatformIDs(PLATFORMS, platforms, &n);
    for (cl_uint p = 0; code == CL_SUCCESS && p < n && p < PLATFORMS; p++) {
        n_devices = 0;
        const cl_int listed =
            clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES, devices, &n_devices);
        tell_platform(platforms[p], n_devices, listed, sink);
        for (cl_uint d = 0; listed == CL_SUCCESS && d < n_devices && d < DEVICES; d++)
            tell_device(devices[d], p, host, sink);
    }
    tfm__cl_doctor_caches(sink);
}

/* ---- an open device ----------------------------------------------------------------------------- */

static void device(void *handle, const struct tfm_doctor_sink *sink)
{
    const struct tfm__cl_device *d = handle;

    if (sink->struct_size < sizeof *sink)
        return;
    tfm__cl_int8_settle(d);
    tfm__cl_bf16_settle(d);
    for (uint32_t i = 0; i < d->n_choices; i++) {
        sink->item(sink->context, "choices");
        sink->text(sink->context, "what", d->choices[i].what);
        sink->text(sink->context, "choice", d->choices[i].choice);
        sink->text(sink->context, "why", d->choices[i].why);
    }
}

const struct tfm_doctor tfm__cl_doctor = {
    .struct_size = sizeof tfm__cl_doctor,
    .machine = machine,
    .device = device,
};
