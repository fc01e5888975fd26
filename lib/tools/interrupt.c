/* SPDX-License-Identifier: MIT
 * SIGINT and SIGUSR1 as flags that are looked at between two tokens or steps, and signals that wait. */
#include "lib/tools/interrupt.h"

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

static volatile sig_atomic_t asked;

static void ask(int number)
{
    (void)number;
    asked = 1;
}

void tfm__ask_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ask;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
}

int tfm__asked(void)
{
    const int before = asked;
    asked = 0;
    return before;
}

void tfm__signals_hold(struct tfm__signals *signals)
{
    sigset_t ending;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigprocmask(SIG_BLOCK, &ending, &signals->before);
}

void tfm__signals_release(const struct tfm__signals *signals)
{
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
}
