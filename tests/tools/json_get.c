/* SPDX-License-Identifier: MIT
 * For shell tests: json_get PATH <FILE prints the value at a path like 0.devices.1.name: strings as they
 * are, other values as JSON; "PATH.#" is the number of elements. Exit code 1: no JSON; 2: no such value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static json_t *step(json_t *value, const char *name)
{
    if (json_is_array(value))
        return json_array_get(value, strtoul(name, NULL, 10));
    return json_object_get(value, name);
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *root = json_loadf(stdin, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error),
           *value = root;
    int count = 0;
    if (!root)
        fprintf(stderr, "line %d: %s\n", error.line, error.text);
    if (!root || argc != 2)
        return 1;
    for (char *name = strtok(argv[1], "."); name && value; name = strtok(NULL, ".")) {
        count = strcmp(name, "#") == 0;
        if (!count)
            value = step(value, name);
    }
    if (!value)
        return 2;
    if (count)
        printf("%zu\n", json_is_array(value) ? json_array_size(value) : json_object_size(value));
    else if (json_is_string(value))
        printf("%s\n", json_string_value(value));
    else if (!json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_COMPACT))
        putchar('\n');
    json_decref(root);
    return 0;
}
