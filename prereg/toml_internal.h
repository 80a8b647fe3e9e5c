/* The interface between toml.c and toml.cc: builds the tree of a text whose
 * size and key lengths were checked already. */
#ifndef PREREG_TOML_INTERNAL_H
#define PREREG_TOML_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "prereg/design.h"

struct arena;
struct diag;
struct toml_node;

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or a negative ERR_* with the reason in diag. Never throws. */
int toml_build(const char *text, size_t len, struct arena *arena, struct toml_node **root,
               struct diag *diag);

struct toml_string {
    struct place place; /* of its opening quote */
    char quote;
    size_t n_quotes; /* 1 or 3 */
    bool closed;     /* on its line, or before the end of the file where it has three quotes */
};

/* The last string that opens before `end`, or the first that is not closed; false when there is
 * none. Keys in quotes are strings, too. Takes time linear in `len`. */
bool toml_string_before(const char *text, size_t len, struct place end, struct toml_string *out);

#ifdef __cplusplus
}
#endif

#endif
