/* SPDX-License-Identifier: MIT
 * Ctrl-C: the first one asks, the second one ends the program; and a stretch that none may end. */
#ifndef TFM__TOOLS_INTERRUPT_H
#define TFM__TOOLS_INTERRUPT_H

#include <signal.h>

struct tfm__signals {
    sigset_t before;
};

/* SIGINT, SIGTERM and SIGHUP wait until the release: for the time that a temporary file is there. */
void tfm__signals_hold(struct tfm__signals *signals);
void tfm__signals_release(const struct tfm__signals *signals);
/* 1 if one of them waits: time to clean up and release. */
int tfm__signals_waiting(void);

/* From now on SIGINT, SIGTERM and SIGHUP call `last` before they end the program; in it only what a handler of signals may
 * do. */
void tfm__ending_catch(void (*last)(void));

/* From now on a first SIGINT only sets the flag; the second has its usual effect. */
void tfm__interrupt_catch(void);
/* 1 after the first. */
int tfm__interrupted(void);

/* From now on SIGUSR1 only sets a flag; tfm__asked is 1 once after it came. */
void tfm__ask_catch(void);
int tfm__asked(void);

#endif
