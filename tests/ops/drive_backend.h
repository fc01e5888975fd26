/* SPDX-License-Identifier: MIT
 * Finds and opens the backend under test. */
#ifndef TESTS_OPS_DRIVE_BACKEND_H
#define TESTS_OPS_DRIVE_BACKEND_H

#include "lib/check/drive.h"

/* "reference" is linked in; another NAME is NAME.so in a folder of TFM_PLUGIN_PATH, or such a file
 * named there. `opencl` takes the first device of PoCL, or of the platform whose name contains
 * $TFM_TEST_PLATFORM; others device 0.
 * NOT_FOUND: no such module or device here (a reason to skip); any other failure is one. */
enum tfm_status drive_open(const char *name, struct tfm__drive_backend *backend,
                           struct tfm_error *err);

#endif
