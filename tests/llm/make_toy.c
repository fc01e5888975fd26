/* SPDX-License-Identifier: MIT
 * Writes the toy model for tests of the program: make_toy FILE [seed=N] [quantized] [tied] [end=ID]
 * [context=N] */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/llm/toy_model.h"

int main(int argc, char **argv)
{
    struct toy_model toy;
    toy_model_defaults(&toy);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "quantized") == 0)
            toy.quantized = 1;
        else if (strcmp(argv[i], "tied") == 0)
            toy.tied = 1;
        else if (sscanf(argv[i], "seed=%" SCNu64, &toy.seed) != 1 &&
                 sscanf(argv[i], "end=%" SCNd32, &toy.end) != 1 &&
                 sscanf(argv[i], "context=%" SCNu32, &toy.context) != 1)
            argc = 0;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: make_toy FILE [seed=N] [quantized] [tied] [end=ID] [context=N]\n");
        return 2;
    }
    return toy_model_write(&toy, argv[1]) ? 1 : 0;
}
