/* SPDX-License-Identifier: MIT
 * What must hold of a device before any node is run on it: probe, open, close, memory, transfers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/checks.h"
#include "lib/check/drive_host.h"

/* ---- probe, open, close ---- */

static enum tfm_status wrong(struct tfm_error *err, const char *text)
{
    return tfm_error_set(err, TFM_STATUS_INTERNAL, "%s", text);
}

static enum tfm_status given_back(int64_t before, const char *when, struct tfm_error *err)
{
    if (tfm__drive_blocks() == before)
        return TFM_STATUS_OK;
    return tfm_error_set(err, TFM_STATUS_INTERNAL,
                         "%lld blocks of the host's alloc were not given back %s",
                         (long long)(tfm__drive_blocks() - before), when);
}

static enum tfm_status probe_again(const struct tfm__subject *subject, struct tfm_error *err)
{
    const int64_t before = tfm__drive_blocks();
    struct tfm_probe again = {0};
    const enum tfm_status status = subject->table->probe(tfm__drive_host(), NULL, &again, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (again.usable != subject->probe.usable || again.n_devices != subject->probe.n_devices ||
        again.score != subject->probe.score)
        return wrong(err, "the second probe says something else than the first");
    for (uint32_t i = 0; i < again.n_devices && i < TFM_PROBE_DEVICES; i++) {
        if (strcmp(again.devices[i].name, subject->probe.devices[i].name) != 0)
            return wrong(err, "the second probe lists other devices than the first");
    }
    return given_back(before, "after a probe", err);
}

static enum tfm_status open_and_close(const struct tfm__subject *subject, struct tfm_error *err)
{
    const int64_t before = tfm__drive_blocks();
    struct tfm_device_caps caps, again;
    void *device = NULL;
    const enum tfm_status status =
        subject->table->open(tfm__drive_host(), subject->index, &device, err);

    if (status != TFM_STATUS_OK)
        return status;
    memset(&caps, 0, sizeof caps);
    memset(&again, 0, sizeof again);
    subject->table->caps(device, &caps);
    subject->table->caps(device, &again);
    subject->table->close(device);
    if (caps.whole_segments ? !subject->table->compile : !subject->table->run_node)
        return wrong(err, caps.whole_segments ? "caps say whole_segments, the table has no compile"
                                              : "caps say node by node, the table has no run_node");
    if (caps.host_memory != again.host_memory || caps.whole_segments != again.whole_segments ||
        caps.max_alloc != again.max_alloc)
        return wrong(err, "caps changed between two calls");
    if (!memchr(caps.description, '\0', sizeof caps.description))
        return wrong(err, "the description of caps has no end");
    return given_back(before, "after close", err);
}

static enum tfm_status two_at_a_time(const struct tfm__subject *subject, struct tfm_error *err)
{
    const int64_t before = tfm__drive_blocks();
    void *first = NULL, *second = NULL;
    enum tfm_status status = subject->table->open(tfm__drive_host(), subject->index, &first, err);

    if (status != TFM_STATUS_OK)
        return status;
    status = subject->table->open(tfm__drive_host(), subject->index, &second, err);
    subject->table->close(first);
    if (status != TFM_STATUS_OK)
        return status;
    subject->table->close(second);
    return given_back(before, "after both were closed", err);
}

static enum tfm_status open_what_is_not_there(const struct tfm__subject *subject,
                                              struct tfm_error *err)
{
    static int untouched;
    void *device = &untouched;
    struct tfm_error why = {0};

    if (subject->table->open(tfm__drive_host(), 1000, &device, &why) == TFM_STATUS_OK)
        return wrong(err, "device 1000 could be opened");
    if (device != &untouched)
        return wrong(err, "a failed open wrote its result");
    return why.text[0] ? TFM_STATUS_OK : wrong(err, "open failed without a text");
}

/* Number of calls of alloc that were made to fail, -1 when one of them was not survived. */
static int64_t open_without_memory(const struct tfm__subject *subject, struct tfm_error *err)
{
    const int64_t before = tfm__drive_blocks();

    for (int64_t call = 0; call < 1000; call++) {
        struct tfm_error why = {0};
        void *device = NULL;
        tfm__drive_fail(call);
        const enum tfm_status status =
            subject->table->open(tfm__drive_host(), subject->index, &device, &why);
        tfm__drive_fail(-1);
        if (status == TFM_STATUS_OK)
            subject->table->close(device);
        else if (!why.text[0])
            return wrong(err, "open failed without a text"), -1;
        if (given_back(before, "after an open that found no memory", err) != TFM_STATUS_OK)
            return -1;
        if (!tfm__drive_failed())
            return call;
    }
    return 1000;
}

/* ---- memory ---- */

enum { GUARD = 256, GUARD_BYTE = 0xa5, MOST = 1 << 20 };

static unsigned char byte_of(size_t i)
{
    return (unsigned char)(i * 131 + i / 251);
}

static enum tfm_status same(const unsigned char *found, size_t begin, size_t n, size_t total,
                            const char *what, struct tfm_error *err)
{
    for (size_t i = 0; i < total; i++) {
        const unsigned char want = i >= begin && i < begin + n ? byte_of(i - begin) : GUARD_BYTE;
        if (found[i] != want)
            return tfm_error_set(err, TFM_STATUS_INTERNAL,
                                 "%s %zu bytes at offset %zu of %zu: byte %zu is %u instead of %u",
                                 what, n, begin, total, i, found[i], want);
    }
    return TFM_STATUS_OK;
}

/* n <= MOST bytes at an offset of a larger buffer, up, within the device and down; the rest stays. */
static enum tfm_status transfer(const struct tfm__drive_backend *b, size_t n, int copied,
                                struct tfm_error *err)
{
    const size_t begin = GUARD + TFM_ALIGNMENT, total = begin + n + GUARD;
    const size_t second = begin + TFM_ALIGNMENT;
    unsigned char *host = malloc(total + TFM_ALIGNMENT), *data = malloc(n ? n : 1);
    void *buffers[2] = {NULL, NULL};
    enum tfm_status status = TFM_STATUS_OK;

    if (!host || !data || n > MOST) {
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        data[i] = byte_of(i);
    memset(host, GUARD_BYTE, total + TFM_ALIGNMENT);
    for (int i = 0; i < 2 && status == TFM_STATUS_OK; i++) {
        status = b->table->alloc(b->device, total + TFM_ALIGNMENT, &buffers[i], err);
        if (status == TFM_STATUS_OK)
            status = b->table->upload(b->device, host, (struct tfm_memory){buffers[i], 0},
                                      total + TFM_ALIGNMENT, err);
    }
    const struct tfm_memory first = {buffers[0], begin}, other = {buffers[1], second};
    if (status == TFM_STATUS_OK)
        status = b->table->upload(b->device, data, first, n, err);
    if (status == TFM_STATUS_OK && copied)
        status = b->table->copy(b->device, first, other, n, err);
    if (status == TFM_STATUS_OK)
        status = b->table->download(b->device, (struct tfm_memory){buffers[copied], 0}, host,
                                    total + TFM_ALIGNMENT, err);
    if (status == TFM_STATUS_OK)
        status = same(host, copied ? second : begin, n, total + TFM_ALIGNMENT,
                      copied ? "copy of" : "upload of", err);
    memset(data, 0, n);
    if (status == TFM_STATUS_OK)
        status = b->table->download(b->device, copied ? other : first, data, n, err);
    if (status == TFM_STATUS_OK)
        status = same(data, 0, n, n, "download of", err);
done:
    for (int i = 0; i < 2; i++)
        if (buffers[i])
            b->table->free(b->device, buffers[i]);
    free(host);
    free(data);
    return status;
}

static enum tfm_status too_much_memory(const struct tfm__drive_backend *b, struct tfm_error *err)
{
    static int untouched;
    void *buffer = &untouched;
    struct tfm_error why = {0};

    if (b->table->alloc(b->device, SIZE_MAX / 2, &buffer, &why) == TFM_STATUS_OK)
        return wrong(err, "half of the address space could be had");
    if (buffer != &untouched)
        return wrong(err, "a failed alloc wrote its result");
    return why.text[0] ? TFM_STATUS_OK : wrong(err, "alloc failed without a text");
}

static void check_memory(struct tfm__report *report, const struct tfm__drive_backend *b)
{
    static const size_t sizes[] = {1, 3, 4, 127, 4096, 100003};
    struct tfm_error err = {0};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int copied = 0; copied < 2; copied++) {
            err = (struct tfm_error){0};
            if (copied && !b->table->copy)
                continue;
            if (!tfm__report_begin(report, "device", "%s %zu bytes at an offset",
                                   copied ? "copy" : "upload and download", sizes[i]))
                continue;
            transfer(b, sizes[i], copied, &err);
            tfm__report_end(report, &err);
        }
    }
    err = (struct tfm_error){0};
    if (tfm__report_begin(report, "device", "alloc of more than there is")) {
        too_much_memory(b, &err);
        tfm__report_end(report, &err);
    }
}

/* ---- all of it ---- */

int tfm__check_device(struct tfm__report *report, const struct tfm__subject *subject)
{
    static const struct {
        const char *name;
        enum tfm_status (*run)(const struct tfm__subject *subject, struct tfm_error *err);
    } cases[] = {
        {"probe again", probe_again},
        {"open and close", open_and_close},
        {"open and close again", open_and_close},
        {"two at a time", two_at_a_time},
        {"open a device that is not there", open_what_is_not_there},
    };
    struct tfm__drive_backend backend;
    struct tfm_error err;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err = (struct tfm_error){0};
        if (!tfm__report_begin(report, "device", "%s", cases[i].name))
            continue;
        cases[i].run(subject, &err);
        tfm__report_end(report, &err);
    }
    err = (struct tfm_error){0};
    if (tfm__report_begin(report, "device", "open when allocations fail")) {
        const int64_t calls = open_without_memory(subject, &err);
        tfm__report_end(report, &err);
        if (calls >= 0)
            tfm__report_note(report, "open: each of %lld calls of the host's alloc failed once",
                             (long long)calls);
    }
    err = (struct tfm_error){0};
    if (tfm__drive_device_open(subject->table, &subject->probe, subject->index, &backend, &err) !=
        TFM_STATUS_OK)
        return 0;
    check_memory(report, &backend);
    tfm__drive_close(&backend);
    return 1;
}
