/* SPDX-License-Identifier: MIT
 * The trial of a module from outside: what a constructor or a probe can do to a process happens to the
 * helper program `tfm-probe` first. */
#ifndef TFM__CORE_TRIAL_H
#define TFM__CORE_TRIAL_H

#include <tfm/device.h>

#include "lib/core/plugin.h"

#define TFM__TRIAL_PASSED "passed" /* the helper's answer; anything else is a reason */

/* What holds while one registry is made. */
struct tfm__trial {
    enum tfm_plugin_trial which;
    uint32_t seconds; /* that constructors and probe may take together */
    char *helper;     /* absolute path, not looked at yet */
};

/* Reads the settings. INVALID_ARGUMENT: a variable holds what is none, the text lists the choices;
 * NOMEM. */
enum tfm_status tfm__trial_init(struct tfm__trial *trial, struct tfm_error *err);
void tfm__trial_deinit(struct tfm__trial *trial);

/* Tries a module by its absolute path, unless the settings leave it out; `asked` is 1 when it does not
 * come from the package's folder. OK: it may be loaded here. PLUGIN: constructors or probe ended or
 * stopped the helper, or (only when every module is to be tried) there is no helper; the text says which.
 * A module that cannot be loaded at all passes: loading it says best why. `name` is set to that of a backend
 * that was refused, "" when it did not come so far. */
enum tfm_status tfm__trial_run(const struct tfm__trial *trial, const char *file, int asked,
                               char name[TFM__NAME_MAX + 1], struct tfm_error *err);

#endif
