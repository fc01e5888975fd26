/* SPDX-License-Identifier: MIT
 * Files of configurations, and the list of their keys. */
#include "lib/tools/config.h"

#include <stdio.h>
#include <stdlib.h>

#include <tfm/config.h>

#include "lib/tools/file.h"
#include "lib/tools/message.h"

static void put_help(int training)
{
    struct tfm_config_key key;

    for (size_t i = 0; tfm_config_key(training, i, &key) == TFM_STATUS_OK; i++) {
        char fallback[32] = "";
        if (key.fallback != 0)
            snprintf(fallback, sizeof fallback, ", default %g", key.fallback);
        printf("%-23s %s%s\n%-23s   %s%s\n", key.name, key.needed ? "(must be there) " : "",
               key.meaning, "", key.expected, fallback);
    }
}

void tfm__config_help(void)
{
    put_help(0);
    printf("\nKeys of \"train\", an object for tfm train:\n\n");
    put_help(1);
}

int tfm__config_read(const char *path, int64_t vocab, struct tfm_nn_decoder *decoder,
                     struct tfm_trainer_settings *settings)
{
    struct tfm_error err;
    char *data;
    size_t size;

    if (tfm__file_read(path, &data, &size))
        return TFM__EXIT_FAILED;
    const enum tfm_status status =
        tfm_config_parse(path, data, size, vocab, decoder, settings, &err);
    free(data);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}
