/* SPDX-License-Identifier: MIT
 * SIGINT and SIGUSR1 as flags that are looked at between two tokens or steps, and signals that wait. */
#include "lib/tools/interrupt.h"

#include <string.h>

static void take(int number, void (*handler)(int))
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART; /* a write of text in progress is not cut short */
    sigaction(number, &action, NULL);
}

/* ---- the end ---- */

static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDINGS = sizeof endings / sizeof *endings };

static void (*last_act)(void);

/* Ends the program as the signal does by itself, so that whoever waits for it sees why. */
static void end(int number)
{
    if (last_act)
        last_act();
    take(number, SIG_DFL);
    raise(number);
}

void tfm__ending_catch(void (*last)(void))
{
    struct sigaction before;

    last_act = last;
    /* one that is ignored (nohup) or caught stays so */
    for (size_t i = 0; i < ENDINGS; i++)
        if (sigaction(endings[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            take(endings[i], end);
}

/* ---- the flags ---- */

static volatile sig_atomic_t interrupted;

static void note(int number)
{
    if (interrupted)
        end(number);
    interrupted = 1;
}

void tfm__interrupt_catch(void)
{
    take(SIGINT, note);
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
    take(SIGUSR1, ask);
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
    for (size_t i = 0; i < ENDINGS; i++)
        sigaddset(&ending, endings[i]);
    sigprocmask(SIG_BLOCK, &ending, &signals->before);
}

void tfm__signals_release(const struct tfm__signals *signals)
{
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

int tfm__signals_waiting(void)
{
    sigset_t pending;
    int waiting = 0;

    if (sigpending(&pending) == 0)
        for (size_t i = 0; i < ENDINGS; i++)
            waiting |= sigismember(&pending, endings[i]) == 1;
    return waiting;
}
