/* SPDX-License-Identifier: MIT
 * Where the program stands: in its build tree, or installed. */
#ifndef TFM__TOOLS_PLACE_H
#define TFM__TOOLS_PLACE_H

#include <limits.h>

/* Fills `top` with the build tree that this program was started from; returns 0 when it stands in
 * none (then it is installed). */
int tfm__place_build_tree(char top[PATH_MAX]);
/* In a build tree, makes its folders of backends those of the package and its helper the one that tries
 * plugins, unless the environment names others. */
void tfm__place_add_plugins(void);
/* The first *.gguf by name in models/ of the build tree, of the current folder, of the
 * installation. Returns 0 when there is none. */
int tfm__place_find_model(char path[PATH_MAX]);

#endif
