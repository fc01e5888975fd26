/* SPDX-License-Identifier: MIT
 * Environment variables, ignored where somebody with fewer rights could have set them: a plugin
 * path in the environment of a setuid program would run foreign code with its rights. */
#include "lib/core/env.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>

static atomic_int override = -1;

void tfm__env_secure_set(int secure)
{
    atomic_store(&override, secure);
}

const char *tfm__env(const char *name)
{
    int secure = atomic_load(&override);
    if (secure < 0)
        secure = getauxval(AT_SECURE) != 0;
    return secure ? NULL : getenv(name);
}
