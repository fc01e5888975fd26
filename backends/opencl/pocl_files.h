/* SPDX-License-Identifier: MIT
 * The files of one program in PoCL's cache, and their sums in the file tfm-sums beside them. */
#ifndef TFM_OPENCL_POCL_FILES_H
#define TFM_OPENCL_POCL_FILES_H

#include <stddef.h>
#include <stdint.h>

/* 1 if every file of the program is as it was noted; one that is not noted, or was replaced since, must at
 * least be complete by its own headers. 0: `file` [size] is the first that is damaged. */
int tfm__pocl_files_whole(const char *folder, char *file, size_t size);
/* Notes the sums of all files, unless they are noted already. */
void tfm__pocl_files_note(const char *folder);
/* The sum of n bytes behind those that h is the sum of; 0 = none. */
uint64_t tfm__pocl_files_sum(uint64_t h, const void *bytes, size_t n);
/* Removes the folder with all that is in it. */
void tfm__pocl_files_remove(const char *folder);

#endif
