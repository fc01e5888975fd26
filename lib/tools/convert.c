/* SPDX-License-Identifier: MIT
 * `tfm convert`: a model in another file format. */
#include <string.h>

#include <tfm/convert.h>

#include "lib/tools/interrupt.h"
#include "lib/tools/message.h"
#include "lib/tools/options.h"

int tfm__verb_convert(const struct tfm__options *options)
{
    const char *out = options->out, *ending = out ? strrchr(out, '.') : NULL;
    const int gguf = ending && strcmp(ending, ".gguf") == 0;
    enum tfm_dtype dtype = TFM_DTYPE_F32;
    struct tfm__signals held;
    struct tfm_error err;

    if (!options->convert_model || !out)
        return tfm__usage("%s is missing", out ? "-m FILE|FOLDER" : "--out FILE.gguf|FOLDER");
    tfm_dtype_parse(options->type, &dtype); /* the option table lets pass only what parses */
    /* no temporary file stays behind when the user ends the program just now */
    tfm__signals_hold(&held);
    const enum tfm_status status =
        gguf ? tfm_convert_to_gguf(options->convert_model, out, dtype, &err)
             : tfm_convert_to_folder(options->convert_model, out, dtype, &err);
    tfm__signals_release(&held);
    return status == TFM_STATUS_OK ? TFM__EXIT_OK : tfm__failed("%s", err.text);
}
