/* SPDX-License-Identifier: MIT
 * A look into a shared object before the loader maps it. */
#ifndef TFM__CORE_ELF_FILE_H
#define TFM__CORE_ELF_FILE_H

#include <tfm/status.h>

/* PLUGIN when the file ends before the segments that its program headers promise (a copy that was
 * interrupted). Everything else that can be wrong with it is left to dlopen, which has the words.
 */
enum tfm_status tfm__elf_file_check(const char *path, struct tfm_error *err);

#endif
