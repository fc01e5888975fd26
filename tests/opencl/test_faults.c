/* SPDX-License-Identifier: MIT
 * OpenCL fails, at any moment and for a while: nothing aborts or leaks, each failure is one line that names
 * the call, the same objects work when it is over, and the logits are right. The fault layer (faults.c) is
 * preloaded; a tiny model goes through discovery, load, warm-up, runs and close. */
#include <check.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/devices.h"
#include "tests/llm/tiny_llama.h"
#include "tests/opencl/faults.h"
#include "tests/opencl/live_memory.h"
#include "tests/opencl/preload.h"

enum { PROMPT = 50, CONTEXT = 64, SINGLES = 2 }; /* PROMPT: enough rows for a matrix product */

static const struct fault_layer *layer;
static char tiny_path[128];
static float expected[TINY_VOCAB]; /* logits without a fault */

/* ---- one life of the backend ---- */

enum stage { DISCOVERY, LOAD, RUNS, CLOSE, STAGES };

/* How many calls of each stage were made; points of one stage are spread over its calls. */
static unsigned long stage_end[STAGES];
static const unsigned points_of[STAGES] = {10, 20, 14, 6}; /* 50 */

struct life {
    struct test_devices devices;
    struct tfm_model *model;
    struct tfm_session *session;
    int64_t chunk; /* 0 = the default */
};

static enum tfm_status discover(struct life *l, struct tfm_error *err)
{
    const enum tfm_status status = test_devices_try(&l->devices, err);
    if (status != TFM_STATUS_OK)
        test_devices_close(&l->devices);
    return status;
}

static enum tfm_status load(struct life *l, struct tfm_error *err)
{
    struct tfm_session_options options;

    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.context = CONTEXT;
    options.chunk = l->chunk;
    return tfm_session_create(l->model, l->devices.device, l->devices.n, &options, &l->session,
                              err);
}

/* A prompt, then single tokens; goes on where a failed run has left the session. */
static enum tfm_status speak(struct life *l, struct tfm_error *err)
{
    int32_t ids[PROMPT + SINGLES];
    enum tfm_status status = TFM_STATUS_OK;

    for (int i = 0; i < PROMPT + SINGLES; i++)
        ids[i] = (i * 37 + i * i) % 250;
    while (status == TFM_STATUS_OK) {
        const size_t used = (size_t)tfm_session_used(l->session);
        if (used == PROMPT + SINGLES)
            break;
        status = tfm_session_feed(l->session, ids + used, used < PROMPT ? PROMPT - used : 1, err);
    }
    return status;
}

static void end(struct life *l)
{
    tfm_session_destroy(l->session);
    tfm_model_close(l->model);
    test_devices_close(&l->devices);
}

static double distance(const struct life *l)
{
    const float *logits = tfm_session_logits(l->session);
    double most = 0;

    for (int i = 0; i < TINY_VOCAB; i++)
        most = fmax(most, isfinite(logits[i]) ? fabs((double)logits[i] - expected[i]) : INFINITY);
    return most;
}

/* ---- what must hold ---- */

static long objects(void)
{
    long n = 0;
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        n += labs(layer->live(kind));
    return n;
}

static const char *describe(const struct fault *f)
{
    static char text[160];
    snprintf(text, sizeof text, "fault %d at call %lu (%s)", (int)f->code, f->at,
             layer->struck() ? layer->struck() : "not reached");
    return text;
}

/* One line that names the call; what goes through CLBlast is named by CLBlast's function. */
static void expect_clean(const struct fault *f, const struct tfm_error *err)
{
    const char *name = layer->struck();

    ck_assert_msg(name != NULL, "%s: %s", describe(f), err->text);
    ck_assert_msg(!strchr(err->text, '\n') && strlen(err->text) + 1 < sizeof err->text, "%s: %s",
                  describe(f), err->text);
    ck_assert_msg(strstr(err->text, name) || strstr(err->text, "CLBlast"),
                  "%s: the error does not name the call: %s", describe(f), err->text);
}

/* Tries a stage; after a failure with the fault it must work without. */
static void pass(enum tfm_status (*stage)(struct life *l, struct tfm_error *err), struct life *l,
                 const struct fault *f)
{
    struct tfm_error err = {0};

    if (stage(l, &err) == TFM_STATUS_OK)
        return;
    expect_clean(f, &err);
    char first[sizeof err.text];
    memcpy(first, err.text, sizeof first);
    const enum tfm_status again = stage(l, &err);
    ck_assert_msg(again == TFM_STATUS_OK, "%s: after \"%s\" it does not go on: %s", describe(f),
                  first, err.text);
}

static void expect_nothing_left(long blocks, const struct fault *f)
{
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        ck_assert_msg(layer->live(kind) == 0, "%s: %ld objects of kind %d are left", describe(f),
                      layer->live(kind), kind);
    ck_assert_msg(live_memory() == blocks, "%s: %ld blocks of memory are left", describe(f),
                  live_memory() - blocks);
}

/* Returns 1 if the fault was met. */
static int live_with(const struct fault *f)
{
    struct life l = {0};
    struct tfm_error err = {0};
    const long blocks = live_memory();

    ck_assert_int_eq(objects(), 0);
    ck_assert_msg(tfm_model_open(tiny_path, &l.model, &err) == TFM_STATUS_OK, "%s", err.text);
    layer->arm(f);
    pass(discover, &l, f);
    pass(load, &l, f);
    pass(speak, &l, f);
    ck_assert_msg(distance(&l) < 1e-4, "%s: the logits are off by %g", describe(f), distance(&l));
    end(&l);
    const int met = layer->struck() != NULL;
    expect_nothing_left(blocks, f);
    return met;
}

/* Without a fault: the logits, and how many calls each stage makes. */
static void measure(void)
{
    struct life l = {0};
    struct tfm_error err = {0};

    ck_assert_msg(tfm_model_open(tiny_path, &l.model, &err) == TFM_STATUS_OK, "%s", err.text);
    layer->arm(NULL);
    ck_assert_msg(discover(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    stage_end[DISCOVERY] = layer->calls();
    ck_assert_msg(load(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    stage_end[LOAD] = layer->calls();
    ck_assert_msg(speak(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    stage_end[RUNS] = layer->calls();
    memcpy(expected, tfm_session_logits(l.session), sizeof expected);
    end(&l);
    stage_end[CLOSE] = layer->calls();
    for (int s = 0; s < STAGES; s++)
        ck_assert_uint_gt(stage_end[s], (s ? stage_end[s - 1] : 0) + points_of[s]);
}

/* ---- the k-th call ---- */

static const cl_int codes[] = {-4, -5, -6, -11, -36, -54, -61};
enum { N_CODES = sizeof codes / sizeof *codes };

/* Catches: an abort or a crash on any failed call, an object or a block that the error path forgets, a
 * failure without the call's name, a session, model or device that is of no use after it. */
START_TEST(a_call_fails)
{
    int points = 0;

    ck_assert_int_eq(setenv("TFM_OPENCL_GEMM", _i % 2 ? "clblast" : "own", 1), 0);
    measure();
    for (int s = 0; s < STAGES; s++) {
        const unsigned long first = s ? stage_end[s - 1] : 0, n = stage_end[s] - first;
        for (unsigned long p = 0; p < points_of[s]; p++) {
            /* each code at other calls, the first and the last of a stage among them */
            const unsigned long at =
                n * (p * N_CODES + (unsigned)_i) / (points_of[s] * N_CODES - 1);
            struct fault f = {.at = first + 1 + (at < n ? at : n - 1), .code = codes[_i]};
            /* a life may make fewer calls than the one that was measured: then one of its last calls */
            while (!live_with(&f))
                f.at = layer->calls() < f.at ? layer->calls() : f.at - 1;
            points++;
        }
    }
    ck_assert_int_eq(points, 50);
}
END_TEST

/* ---- a device that goes away ---- */

static const struct loss {
    cl_int code;
    enum stage stage; /* in the middle of it */
} losses[] = {{-36, RUNS}, {-5, RUNS}, {-6, RUNS}, {-5, LOAD}, {-36, LOAD}};
enum { N_LOSSES = sizeof losses / sizeof *losses };

static void expect_lost(enum tfm_status status, const struct tfm_error *err)
{
    ck_assert_msg(status == TFM_STATUS_DEVICE_LOST, "%s: %s", tfm_status_name(status), err->text);
    ck_assert_int_eq(err->status, TFM_STATUS_DEVICE_LOST);
    ck_assert_msg(strstr(err->text, "lost") != NULL, "%s", err->text);
}

/* Catches: a lost device told as a failure that may pass, one that is handed out again, another session
 * that goes on with its garbage, weights that cannot be packed a second time, leaks of all that. */
START_TEST(a_device_is_lost)
{
    const struct loss *loss = &losses[_i];
    struct life l = {0}, other = {0}, later = {0};
    struct tfm_error err = {0};
    const long blocks = live_memory();

    measure();
    const struct fault f = {.at = (stage_end[loss->stage] - stage_end[loss->stage - 1]) / 2,
                            .code = loss->code,
                            .lasting = 1};
    ck_assert_msg(tfm_model_open(tiny_path, &l.model, &err) == TFM_STATUS_OK, "%s", err.text);
    layer->arm(NULL);
    ck_assert_msg(discover(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    other.model = later.model = l.model;
    other.devices = later.devices = l.devices;
    if (loss->stage == RUNS) {
        ck_assert_msg(load(&other, &err) == TFM_STATUS_OK, "%s", err.text);
        ck_assert_msg(load(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    }
    layer->arm(&f);
    expect_lost(loss->stage == RUNS ? speak(&l, &err) : load(&l, &err), &err);
    ck_assert_msg(strstr(err.text, layer->struck()) || strstr(err.text, "CLBlast"), "%s", err.text);
    if (loss->stage == RUNS) {
        expect_lost(speak(&l, &err), &err);
        expect_lost(speak(&other, &err), &err);
    }
    expect_lost(load(&later, &err), &err); /* nobody has asked for the device again */

    struct life again = {.model = l.model, .devices = {.registry = l.devices.registry}};
    ck_assert_msg(tfm_devices_open(again.devices.registry, "opencl:Portable Computing Language", 1,
                                   again.devices.device, 2, &again.devices.n,
                                   &err) == TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_ptr_ne(again.devices.device[0], l.devices.device[0]);
    ck_assert_msg(load(&again, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(speak(&again, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(distance(&again) < 1e-4, "the logits are off by %g", distance(&again));
    if (loss->stage == RUNS)
        expect_lost(speak(&other, &err), &err);

    tfm_session_destroy(again.session);
    tfm_device_release(again.devices.device[0]);
    tfm_session_destroy(other.session);
    end(&l);
    expect_nothing_left(blocks, &f);
}
END_TEST

/* ---- devices that lack something ---- */

static const struct lack {
    struct fault fault;
    const char *named; /* part of the error of who names the backend */
} lacks[] = {
    {{.call = "clGetPlatformIDs", .code = -1001}, "no OpenCL platform"},
    {{.call = "clGetDeviceIDs", .code = CL_DEVICE_NOT_FOUND}, "has no device"},
    {{.info = CL_DEVICE_COMPILER_AVAILABLE, .value = CL_FALSE}, "it has no compiler"},
    {{.info = CL_DEVICE_AVAILABLE, .value = CL_FALSE}, "it is not available"},
    {{.call = "clCreateContext", .code = CL_OUT_OF_HOST_MEMORY}, "clCreateContext"},
    {{.call = "clBuildProgram", .code = CL_BUILD_PROGRAM_FAILURE}, "clBuildProgram"},
    {{.call = "clBuildProgram", .code = CL_COMPILER_NOT_AVAILABLE}, "clBuildProgram"},
};
enum { N_LACKS = sizeof lacks / sizeof *lacks };

/* Catches: a machine without (a working) OpenCL on which a program that did not ask for it fails, and one
 * that did ask but is not told why. */
START_TEST(something_is_not_there)
{
    const struct lack *lack = &lacks[_i];
    struct life l = {0};
    struct tfm_error err = {0};
    const long blocks = live_memory();

    measure();
    layer->arm(&lack->fault);
    ck_assert_int_ne(discover(&l, &err), TFM_STATUS_OK);
    ck_assert_msg(strstr(err.text, lack->named) && !strchr(err.text, '\n'), "%s", err.text);

    ck_assert_msg(tfm_model_open(tiny_path, &l.model, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_registry_create(NULL, 0, &l.devices.registry, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_devices_open(l.devices.registry, "auto", 0, l.devices.device, 2, &l.devices.n,
                                   &err) == TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_str_ne(tfm_device_backend(l.devices.device[0]), "opencl");
    ck_assert_msg(load(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(speak(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(distance(&l) < 1e-3, "the logits are off by %g", distance(&l));
    end(&l);
    expect_nothing_left(blocks, &lack->fault);
}
END_TEST

/* ---- small buffers ---- */

/* Catches: a weight that is cut, an allocation that the device only refuses in the middle of a run, an
 * error without the two numbers. */
START_TEST(a_buffer_holds_little)
{
    const struct fault tight = {.info = CL_DEVICE_MAX_MEM_ALLOC_SIZE, .value = 16000};
    struct life l = {.chunk = 8}; /* so that no workspace is larger than the embedding */
    struct tfm_error err = {0};

    measure();
    live_with(&(struct fault){.info = CL_DEVICE_MAX_MEM_ALLOC_SIZE, .value = 1 << 20});
    ck_assert_msg(tfm_model_open(tiny_path, &l.model, &err) == TFM_STATUS_OK, "%s", err.text);
    layer->arm(&tight);
    ck_assert_msg(discover(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(load(&l, &err) == TFM_STATUS_NOMEM, "%s", err.text);
    ck_assert_msg(strstr(err.text, "takes 18496 bytes") && strstr(err.text, "16000"), "%s",
                  err.text);
    end(&l);
    ck_assert_int_eq(objects(), 0);
}
END_TEST

/* ---- little local memory ---- */

/* Catches: local memory that is taken for granted in the group shape, a kernel that fails only when it is
 * launched. What it wants and what there is are told, and what needs none. */
START_TEST(a_group_shares_little)
{
    const struct fault tight = {.info = CL_DEVICE_LOCAL_MEM_SIZE, .value = 1000};
    struct life l = {0};
    struct tfm_error err = {0};

    measure();
    ck_assert_int_eq(setenv("TFM_OPENCL_SHAPE", "group", 1), 0);
    live_with(&(struct fault){.info = CL_DEVICE_LOCAL_MEM_SIZE, .value = 32 << 10});
    ck_assert_msg(tfm_model_open(tiny_path, &l.model, &err) == TFM_STATUS_OK, "%s", err.text);
    layer->arm(&tight);
    ck_assert_msg(discover(&l, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(load(&l, &err) == TFM_STATUS_UNSUPPORTED, "%s", err.text);
    ck_assert_msg(strstr(err.text, "bytes of local memory") && strstr(err.text, "has 1000") &&
                      strstr(err.text, "TFM_OPENCL_SHAPE=wide"),
                  "%s", err.text);
    end(&l);
    ck_assert_int_eq(objects(), 0);
}
END_TEST

/* ---- alignment ---- */

/* Catches: offsets in a buffer that are multiples of less than a device aligns its buffers to. */
START_TEST(buffers_begin_at_other_places)
{
    static const cl_ulong bits[] = {8, 1024, 32768}; /* 1 byte, 128 bytes, 4 KiB */

    measure();
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        live_with(&(struct fault){.info = CL_DEVICE_MEM_BASE_ADDR_ALIGN, .value = bits[i]});
    ck_assert_int_eq(objects(), 0);
}
END_TEST

/* ---- binaries ---- */

/* CLBlast makes the programs of a second context from the binaries of the first. Catches: a driver that
 * rejects them taken for a broken one, for good. */
START_TEST(a_binary_is_rejected)
{
    const struct fault f = {.call = "clCreateProgramWithBinary", .code = CL_INVALID_BINARY};
    struct life first = {0}, second = {0};
    struct tfm_error err = {0};
    const long blocks = live_memory();

    ck_assert_int_eq(setenv("TFM_OPENCL_GEMM", "clblast", 1), 0);
    measure();
    ck_assert_msg(tfm_model_open(tiny_path, &first.model, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(discover(&first, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(load(&first, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_threads_set(tfm_threads() == 1 ? 2 : 1); /* another number of threads is another context */
    second.model = first.model;
    layer->arm(&f);
    ck_assert_msg(discover(&second, &err) == TFM_STATUS_OK, "%s", err.text);
    pass(load, &second, &f);
    ck_assert_msg(speak(&second, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(distance(&second) < 1e-4, "the logits are off by %g", distance(&second));
    second.model = NULL;
    end(&second);
    end(&first);
    expect_nothing_left(blocks, &f);
}
END_TEST

/* ---- setting up ---- */

/* A call that the layer does not know would never fail: every OpenCL function that the module is linked
 * to must be one of its own. */
START_TEST(the_layer_knows_every_call)
{
    const char *build = getenv("TFM_TEST_BUILDDIR");
    char path[PATH_MAX], name[64];
    unsigned known = 0;
    void *library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);

    ck_assert_ptr_nonnull(library);
    snprintf(path, sizeof path, "%s/backends/opencl/.libs/opencl.so", build ? build : ".");
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    /* names in the string table of dynamic symbols stand between zeros */
    for (int c = 0; c != EOF;) {
        size_t n = 0;
        while ((c = fgetc(file)) > 0 && n + 1 < sizeof name)
            name[n++] = (char)c;
        name[n] = 0;
        if (n < 5 || strncmp(name, "cl", 2) || name[2] < 'A' || name[2] > 'Z' ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != n ||
            !dlsym(library, name)) /* a name that is only text */
            continue;
        ck_assert_msg(layer->covers(name), "tests/opencl/faults.c has no %s", name);
        known++;
    }
    fclose(file);
    dlclose(library);
    ck_assert_uint_gt(known, 20);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    layer = dlsym(RTLD_DEFAULT, "fault_layer");
    if (!layer)
        return tests_preload("faults", argv);
    const char *tmp = getenv("TMPDIR");
    snprintf(tiny_path, sizeof tiny_path, "%.80s/tfm-faults-XXXXXX", tmp ? tmp : "/tmp");
    const int file = mkstemp(tiny_path);
    if (file < 0)
        return 99;
    close(file);
    struct tiny_llama tiny = tiny_llama_default();
    tiny.layers = 1;
    tiny.type = TINY_Q4_1;
    tiny.embedding_type = TINY_Q8_0;
    tiny_llama_write(&tiny, tiny_path);

    Suite *suite = suite_create("faults");
    TCase *tcase = tcase_create("lasting");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, the_layer_knows_every_call);
    tcase_add_loop_test(tcase, a_device_is_lost, 0, N_LOSSES);
    tcase_add_loop_test(tcase, something_is_not_there, 0, N_LACKS);
    tcase_add_test(tcase, a_buffer_holds_little);
    tcase_add_test(tcase, a_group_shares_little);
    tcase_add_test(tcase, buffers_begin_at_other_places);
    tcase_add_test(tcase, a_binary_is_rejected);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("passing");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, a_call_fails, 0, N_CODES);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(tiny_path);
    return failed != 0;
}
