/* SPDX-License-Identifier: MIT
 * Where plugin files are looked for. */
#ifndef TFM__CORE_SEARCH_H
#define TFM__CORE_SEARCH_H

#include <stddef.h>

#include <tfm/status.h>

/* Called for each candidate in search order. `file` is absolute (or what the user wrote, when it
 * leads nowhere), `asked` is 1 when the user pointed at it (argument or TFM_PLUGIN_PATH), `problem`
 * is NULL or says why it cannot even be tried. Anything but OK ends the search. */
typedef enum tfm_status (*tfm__search_visit)(void *context, const char *file, int asked,
                                             const char *problem);

/* The order of tfm/device.h: plugins [n], TFM_PLUGIN_PATH, the package's folder. Of a folder the
 * *.so files are visited, sorted by name. NOMEM, or what visit says. */
enum tfm_status tfm__search_plugins(const char *const *plugins, size_t n, tfm__search_visit visit,
                                    void *context);

/* What tfm_registry_places tells of folders. */
enum tfm_status tfm__search_places(void (*place)(void *context, const char *source,
                                                 const char *path),
                                   void *context);

/* Where `name` of the package's own folder lies when the library was moved with it: beside the library, an
 * absolute path that may lead nowhere, to be freed with tfm__free. NULL when that cannot be told. */
char *tfm__search_beside(const char *name);

/* For tests: the package's folder is `folder` ("" = there is none); NULL restores the installed one. */
void tfm__search_package_set(const char *folder);

#endif
