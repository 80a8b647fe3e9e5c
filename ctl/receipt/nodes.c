/* Counts the values of a JSON text before it becomes a tree, so that a short hostile text
 * cannot take much memory. Called before every parse of a receipt's file. */
#include "ctl/receipt/files.h"

#include <stdbool.h>

#define NODES_MAX(n) (((size_t)1 << 20) + (n) / 12)

/* Counts commas and opening brackets outside strings: at least as many as there are values, but for
 * the outermost. A text too short to hold too many is not read for it. */
int nodes_check(const char *text, size_t len, struct err *err)
{
    const size_t max = NODES_MAX(len);
    size_t n = 1;
    bool in_string = false;
    if (len / 2 < max) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        if (in_string) {
            i += c == '\\' ? 1 : 0;
            in_string = c != '"';
        } else {
            in_string = c == '"';
            n += c == ',' || c == '[' || c == '{' ? 1 : 0;
        }
    }
    return n <= max ? 0
                    : err_set(err, ERR_RANGE,
                              "holds about %zu JSON values in %zu bytes; expected at most %zu", n,
                              len, max);
}
