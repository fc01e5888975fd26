/* SPDX-License-Identifier: MIT
 * From a file to a table that can be trusted to be complete. */
#ifndef TFM__CORE_PLUGIN_H
#define TFM__CORE_PLUGIN_H

#include <tfm/backend.h>

#define TFM__NAME_MAX 31 /* bytes of a backend's name */

/* What dlopen would not survive. PLUGIN: no regular file, or one that was cut off. */
enum tfm_status tfm__plugin_file_check(const char *path, struct tfm_error *err);

/* Opens a module that passed the check of files, by its absolute path, and finds its table. The module stays loaded, also when the
 * table is refused later: its constructors may have left threads behind.
 * PLUGIN: dlopen refuses it, no symbol; the text says which. */
enum tfm_status tfm__plugin_load(const char *path, const struct tfm_backend **table,
                                 struct tfm_error *err);

/* Checks a table and copies it: members past its struct_size, and those that this library does not
 * know, are left out. name and version of the copy are set as soon as they can be read, also when
 * the table is refused; everything else is set on OK only.
 * PLUGIN: the text names the fault and both values. */
enum tfm_status tfm__plugin_check(const struct tfm_backend *table, struct tfm_backend *copy,
                                  struct tfm_error *err);

#endif
