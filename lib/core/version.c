/* SPDX-License-Identifier: MIT
 * The version of the library. */
#include <tfm/tfm.h>

#include "config.h"

const char *tfm_version(void)
{
    return PACKAGE_VERSION;
}
