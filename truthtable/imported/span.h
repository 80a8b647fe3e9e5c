/* Where a member of a JSON object is in its text. Hashes are over text, not over values. */
#ifndef TRUTHTABLE_IMPORTED_SPAN_H
#define TRUTHTABLE_IMPORTED_SPAN_H

#include <stdbool.h>
#include <stddef.h>

struct span {
    const char *text;
    size_t len;
};

/* The value of a key without escapes, of the object at `text`. Any bytes will do; of text that is
 * not JSON it may find anything within it, or nothing. */
bool span_member(const char *text, size_t len, const char *key, struct span *out);

#endif
