/* Names of cells compared part by part. A level may hold a comma; it is then several parts, which
 * changes nothing where the names are compared as collections of parts. */
#include "prereg/program/cell_name.h"

#include <string.h>

/* How many of the comma-separated parts of `name` equal part[0..len). */
static size_t count_parts(const char *name, const char *part, size_t len)
{
    size_t n = 0;
    for (const char *at = name;; at++) {
        const size_t here = strcspn(at, ",");
        n += here == len && memcmp(at, part, len) == 0 ? 1 : 0;
        at += here;
        if (*at == '\0') {
            return n;
        }
    }
}

bool cell_name_has(const char *name, const char *parts)
{
    for (const char *at = parts;; at++) {
        const size_t len = strcspn(at, ",");
        if (count_parts(name, at, len) < count_parts(parts, at, len)) {
            return false;
        }
        at += len;
        if (*at == '\0') {
            return true;
        }
    }
}

bool cell_name_is(const char *name, const char *written)
{
    return strlen(name) == strlen(written) && cell_name_has(name, written);
}

size_t program_match_cell(const struct plan_program *p, const char *written)
{
    size_t found = program_find_cell(p, written);
    if (found != INDEX_NONE) {
        return found;
    }
    for (size_t c = 0; c < p->n_cells; c++) {
        if (cell_name_is(p->cells[c].name, written)) {
            if (found != INDEX_NONE) {
                return INDEX_NONE;
            }
            found = c;
        }
    }
    return found;
}
