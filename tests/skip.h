/* SPDX-License-Identifier: MIT
 * Skips a whole test program: `return tests_skip("no OpenCL device");` from main. */
#ifndef TESTS_SKIP_H
#define TESTS_SKIP_H

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Prints the TAP plan of a skipped program with the reason and returns the exit code 77. */
static inline int tests_skip(const char *reason)
{
    printf("1..0 # SKIP %s\n", reason);
    return 77;
}

/* Asks `present` in a child, so that no device is open in this process when Check forks (a child of
 * a process that has listed OpenCL devices hangs). Returns what it returned, 0 if it did not
 * return. */
static inline int tests_ask(int (*present)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(present() ? 1 : 0);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 0;
    return WEXITSTATUS(status) == 1;
}

#endif
