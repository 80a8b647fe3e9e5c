/* Strings and long keys of a TOML text that need not be valid. */
#ifndef PREREG_LOAD_TOML_SCAN_H
#define PREREG_LOAD_TOML_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "prereg/program/design.h"

#ifdef __cplusplus
extern "C" {
#endif

struct toml_string {
    struct place place; /* of its opening quote */
    char quote;
    size_t n_quotes; /* 1 or 3 */
    bool closed;     /* on its line, or before the end of the file where it has three quotes */
};

/* Finds the last string that opens before `end`, or the first that is not closed; false when there
 * is none. Keys in quotes are strings, too. Takes time linear in `len`. */
bool toml_string_before(const char *text, size_t len, struct place end, struct toml_string *out);

/* Returns the line of a key with more than TOML_KEY_PARTS_MAX parts, or 0. A dotted key makes one
 * table a part, and toml++ walks tables recursively: its own limit covers brackets only. */
unsigned toml_find_long_key(const char *text, size_t len);

struct toml_twice {
    bool is_table;    /* of a header; else of a key */
    const char *name; /* as written, of the text */
    size_t len;
    unsigned first_line;
};

/* Finds the first header or key of the same name as the one that begins in `line`, a key in the
 * same table; false when there is none. */
bool toml_find_definition(const char *text, size_t len, unsigned line, struct toml_twice *out);

#ifdef __cplusplus
}
#endif

#endif
