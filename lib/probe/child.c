/* SPDX-License-Identifier: MIT
 * The process that is tried: does with the module what the library would do with it. Whether it is a good
 * one is not judged here; the library finds that out by itself. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/core/host.h"
#include "lib/core/plugin.h"
#include "lib/probe/trial.h"

static void tell(int stages, enum tfm__stage stage, const char *name)
{
    char line[TFM__NAME_MAX + 3];
    const int n = snprintf(line, sizeof line, "%c%s\n", stage, name);
    if (write(stages, line, (size_t)n) != n)
        _exit(1); /* nobody watches any more */
}

/* A crash shall look like one: no core file, and no sanitizer that turns a signal into an exit code. */
static void be_mortal(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

_Noreturn void tfm__try_module(const char *file, int stages)
{
    const struct tfm_backend *table = NULL;
    struct tfm_backend copy;
    static struct tfm_probe report;
    struct tfm_error err = {0};

    be_mortal();
    tell(stages, TFM__STAGE_LOAD, "");
    if (tfm__plugin_load(file, &table, &err) == TFM_STATUS_OK &&
        tfm__plugin_check(table, &copy, &err) == TFM_STATUS_OK) {
        tell(stages, TFM__STAGE_PROBE, copy.name);
        copy.probe(tfm__host(), NULL, &report, &err);
    }
    tell(stages, TFM__STAGE_DONE, "");
    _exit(0); /* the library never unloads a module either */
}
