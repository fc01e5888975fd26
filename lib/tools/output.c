/* SPDX-License-Identifier: MIT
 * Standard output with every failure noticed: a full disk, a closed pipe, a closed descriptor. */
#include "lib/tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/tools/message.h"

static int told;

void tfm__output_init(void)
{
    /* The mode that cannot be used for it: reading an absent input gives its end, writing to an
     * absent output fails. */
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) != fd)
            return; /* no /dev/null: nothing better can be done, nor said */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static int write_failed(int error)
{
    if (!told)
        tfm__failed("cannot write to standard output: %s", strerror(error));
    told = 1;
    return 1;
}

int tfm__output_write(const char *data, size_t size)
{
    if (fwrite(data, 1, size, stdout) != size || fflush(stdout))
        return write_failed(errno);
    return 0;
}

int tfm__output_close(int code)
{
    int before = ferror(stdout);
    errno = 0;
    if (fclose(stdout) || before) {
        write_failed(errno ? errno : EIO);
        return code ? code : TFM__EXIT_FAILED;
    }
    return code;
}
