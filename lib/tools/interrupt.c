/* SPDX-License-Identifier: MIT
 * SIGINT as a flag that is asked between two tokens. */
#include "lib/tools/interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

static void note(int number)
{
    (void)number;
    interrupted = 1;
}

void tfm__interrupt_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note;
    /* RESTART: a write of text in progress is not cut short; RESETHAND: the second one kills */
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
}

int tfm__interrupted(void)
{
    return interrupted;
}
