/*
 * TOML as a plain C tree with places. toml++ parses it, in toml_build.cc alone: no exception and no
 * C++ type gets out.
 *
 * Nodes live in the caller's arena. Members of a table are in the order of the file (toml++ keeps
 * them sorted by key), elements of an array in theirs. Limits, each refused with a place: text of
 * LAYOUT_GRID_MAX bytes, nesting of TOML_DEPTH_MAX, keys of TOML_KEY_PARTS_MAX dotted parts.
 */
#ifndef PREREG_LOAD_TOML_H
#define PREREG_LOAD_TOML_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/err.h"

#define TOML_DEPTH_MAX     32
#define TOML_KEY_PARTS_MAX 16

enum toml_kind {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_STRING,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOLEAN,
    TOML_DATE, /* any of the four date and time types */
};

/* A large table is a million of these: members are ordered so that none leaves a gap. */
struct toml_node {
    enum toml_kind kind;
    bool boolean;      /* TOML_BOOLEAN */
    unsigned line;     /* of the value; 1-based */
    unsigned column;   /* in characters; 1-based */
    unsigned key_line; /* of the key; of the value where the key is absent */
    unsigned key_column;
    const char *key;          /* NULL at the root and in arrays */
    const char *string;       /* TOML_STRING: never NULL, holds no NUL */
    int64_t integer;          /* TOML_INTEGER */
    double real;              /* TOML_FLOAT, and TOML_INTEGER rounded */
    struct toml_node **items; /* TOML_TABLE, TOML_ARRAY */
    size_t n_items;
    const struct toml_node *parent; /* NULL at the root */
    size_t index;                   /* in the parent */
    const cJSON *json;              /* set by load_tree(); NULL before */
};

/* Syntax errors go to diag with their place; then ERR_INVALID and *root is NULL. toml++ stops at
 * the first syntax error, so there is one at most. */
int toml_parse(const char *text, size_t len, struct arena *arena, struct toml_node **root,
               struct diag *diag) MUST_CHECK;

/* NULL when absent, or when `table` is NULL or not a table. */
struct toml_node *toml_member(const struct toml_node *table, const char *key);
/* "a string", "a table", ...: for messages. */
const char *toml_kind_name(enum toml_kind kind);

#endif
