/* SPDX-License-Identifier: MIT
 * The library's messages as lines of the program. */
#ifndef TFM__TOOLS_LOG_H
#define TFM__TOOLS_LOG_H

/* From now on: warnings as one line each; under `verbose` everything, long texts line by line. Errors are
 * details (a build log) of what the failing call says in its own line, so they need `verbose` too. */
void tfm__log_begin(int verbose);

#endif
