/* SPDX-License-Identifier: MIT
 * The report of `tfm doctor` as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/tools/doctor.h"

static const char *string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static int is_bytes(const char *key)
{
    const size_t length = strlen(key);
    return length > 6 && strcmp(key + length - 6, "_bytes") == 0;
}

static void put_bytes(json_int_t value)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)value;
    size_t unit = 0;

    while (size >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        size /= 1024;
        unit++;
    }
    if (unit == 0)
        printf("%" JSON_INTEGER_FORMAT " bytes", value);
    else
        printf("%.4g %s", size, units[unit]);
}

/* A key as words: "max_alloc_bytes" -> "max alloc". */
static void put_key(const char *key)
{
    const int length = (int)(strlen(key) - (is_bytes(key) ? 6 : 0));
    for (int i = 0; i < length; i++)
        putchar(key[i] == '_' ? ' ' : key[i]);
}

static void put_value(const char *key, const json_t *value)
{
    if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", stdout);
    else if (json_is_integer(value) && is_bytes(key))
        put_bytes(json_integer_value(value));
    else if (json_is_integer(value))
        printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        fputs(json_is_string(value) ? json_string_value(value) : "", stdout);
}

static void put_fact(int indent, const char *key, const json_t *value)
{
    printf("%*s", indent, "");
    put_key(key);
    fputs(": ", stdout);
    put_value(key, value);
    putchar('\n');
}

/* Lists of items: "devices 0", and a line a fact. */
static void put_facts(json_t *facts)
{
    const char *list, *key;
    json_t *items, *item, *value;
    size_t i;

    json_object_foreach(facts, list, items)
    {
        if (!json_is_array(items))
            put_fact(6, list, items);
        json_array_foreach(items, i, item)
        {
            printf("      %s %zu\n", list, i);
            json_object_foreach(item, key, value)
            {
                put_fact(10, key, value);
            }
        }
    }
}

static void put_program(const json_t *report)
{
    const json_t *program = json_object_get(report, "program");

    printf("tfm %s: %" JSON_INTEGER_FORMAT " CPUs, %" JSON_INTEGER_FORMAT " threads, ",
           string(program, "version"), json_integer_value(json_object_get(program, "cpus")),
           json_integer_value(json_object_get(program, "threads")));
    put_bytes(json_integer_value(json_object_get(program, "memory_bytes")));
    printf(" of memory\n");
}

static void put_places(const json_t *report)
{
    json_t *place;
    size_t i;

    printf("\nwhere backends are looked for\n");
    json_array_foreach(json_object_get(report, "places"), i, place)
    {
        printf("   %-16s %s%s\n", string(place, "source"), string(place, "path"),
               json_is_true(json_object_get(place, "exists")) ? "" : " (is not there)");
    }
}

static void put_backends(const json_t *report)
{
    json_t *backend;
    size_t i;

    printf("\nbackends\n");
    json_array_foreach(json_object_get(report, "backends"), i, backend)
    {
        const char *name = string(backend, "name"), *reason = string(backend, "reason");
        printf("   %-12s %-9s %s\n", *name ? name : "-", string(backend, "status"),
               string(backend, "file"));
        if (*reason)
            printf("      %s\n", reason);
        put_facts(json_object_get(backend, "facts"));
    }
}

static void put_devices(const json_t *report)
{
    json_t *device;
    size_t i;

    printf("\ndevices, in the order in which auto tries them\n");
    json_array_foreach(json_object_get(report, "devices"), i, device)
    {
        const char *platform = string(device, "platform");
        printf("   %-13s %s%s%s%s, %s, score %" JSON_INTEGER_FORMAT "\n", string(device, "device"),
               string(device, "name"), *platform ? " (" : "", platform, *platform ? ")" : "",
               string(device, "kind"), json_integer_value(json_object_get(device, "score")));
    }
}

static void put_choice(const json_t *report)
{
    const json_t *choice = json_object_get(report, "choice");
    json_t *item;
    size_t i;

    printf("\nwhat runs: %s", string(choice, "asked"));
    if (strcmp(string(choice, "asked_by"), "nobody") != 0)
        printf(" (%s)", string(choice, "asked_by"));
    printf("\n");
    if (json_object_get(choice, "error"))
        printf("   nothing: %s\n", string(choice, "error"));
    else
        printf("   %s: %s, because %s\n", string(choice, "device"), string(choice, "name"),
               string(choice, "why"));
    json_array_foreach(json_object_get(choice, "choices"), i, item)
    {
        printf("   %s: %s, because %s\n", string(item, "what"), string(item, "choice"),
               string(item, "why"));
    }
}

void tfm__doctor_put(const json_t *report)
{
    json_t *problem;
    size_t i;

    put_program(report);
    put_places(report);
    put_backends(report);
    put_devices(report);
    put_choice(report);
    printf("\nwhat is wrong\n");
    json_array_foreach(json_object_get(report, "problems"), i, problem)
    {
        printf("   %s\n", json_string_value(problem));
    }
    if (json_array_size(json_object_get(report, "problems")) == 0)
        printf("   nothing that could be found\n");
}
