/* SPDX-License-Identifier: MIT
 * The one way in which the library reads its environment. */
#ifndef TFM__CORE_ENV_H
#define TFM__CORE_ENV_H

/* The value of an environment variable; NULL when it is unset, and always NULL in a process that
 * runs with more rights than its caller (setuid, setgid, file capabilities: AT_SECURE). */
const char *tfm__env(const char *name);

/* For tests: 1 makes tfm__env answer as under AT_SECURE, 0 as not, -1 asks the system again. */
void tfm__env_secure_set(int secure);

#endif
