/* SPDX-License-Identifier: MIT
 * Levenshtein distance over short names (V. I. Levenshtein, 1966), one row of the table at a time.
 */
#include "lib/core/nearest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 63, FARTHEST = 2 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* More than FARTHEST for texts that are too long to matter. */
static size_t distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t row[LONGEST + 1]; /* row[j]: changes from the first i of a to the first j of b */

    if (n > LONGEST || m > LONGEST)
        return FARTHEST + 1;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t replaced = diagonal + !same(a[i - 1], b[j - 1]);
            diagonal = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[m];
}

const char *tfm__nearest(const char *typed, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t least = FARTHEST + 1;

    for (size_t i = 0; i < n; i++) {
        const size_t d = distance(typed, names[i]);
        /* All characters changed is no likeness. */
        if (d < least && d < strlen(names[i])) {
            least = d;
            best = names[i];
        }
    }
    return best;
}
