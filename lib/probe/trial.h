/* SPDX-License-Identifier: MIT
 * The two halves of `tfm-probe`: a process that loads the module, and one that watches it. */
#ifndef TFM__PROBE_TRIAL_H
#define TFM__PROBE_TRIAL_H

/* How far the tried process came; each is told to the watcher as a line that begins with it. What follows
 * is the backend's name, once it is known. */
enum tfm__stage {
    TFM__STAGE_START = 's',
    TFM__STAGE_LOAD = 'l',  /* dlopen: constructors run */
    TFM__STAGE_PROBE = 'p', /* the probe slot runs */
    TFM__STAGE_DONE = 'd',  /* it came back, whatever it said */
};

/* Loads the module, checks its table, calls its probe; never returns. */
_Noreturn void tfm__try_module(const char *file, int stages);

#endif
