/* SPDX-License-Identifier: MIT
 * Runs a command, its output thrown away, and prints how long the process lived and the most memory that it
 * held: "SECONDS BYTES". Small itself, because a child starts with the peak of its parent. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void become(char **command)
{
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
    }
    execvp(command[0], command);
    _exit(127);
}

int main(int argc, char **argv)
{
    struct rusage usage;
    int status;

    if (argc < 2) {
        fprintf(stderr, "usage: measure COMMAND [ARGUMENT...]\n");
        return 2;
    }
    const double start = now();
    const pid_t child = fork();
    if (child == 0)
        become(argv + 1);
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("measure");
        return 1;
    }
    const double seconds = now() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "measure: %s: exit code %d, signal %d\n", argv[1],
                WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        return 1;
    }
    printf("%.4f %.0f\n", seconds, 1024.0 * (double)usage.ru_maxrss);
    return 0;
}
