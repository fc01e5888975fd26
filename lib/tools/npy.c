/* SPDX-License-Identifier: MIT
 * A float32 vector as a .npy file, version 1.0 (numpy: doc/neps/nep-0001-npy-format.rst). */
#include "lib/tools/npy.h"

#include <stdio.h>
#include <string.h>

#include "lib/tools/file.h"

int tfm__npy_write(const char *path, const float *values, size_t n)
{
    /* magic, version, length of the rest of the head: 10 bytes; the head is blanks up to a line end
     * at a multiple of 64 bytes */
    char head[128];
    const unsigned short probe = 1;
    const char order = *(const char *)&probe ? '<' : '>';
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)(sizeof head - 10);
    head[9] = 0;
    int size = snprintf(head + 10, sizeof head - 10,
                        "{'descr': '%cf4', 'fortran_order': False, 'shape': (%zu,), }", order, n);
    head[10 + size] = ' ';
    head[sizeof head - 1] = '\n';
    const struct tfm__file_part parts[] = {{head, sizeof head}, {values, n * sizeof *values}};
    return tfm__file_write(path, parts, 2);
}
