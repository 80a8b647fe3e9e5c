/* The limits that toml++ does not check and that must hold before it runs (toml_build.cc), and
 * access to the finished tree. */
#include "prereg/load/toml.h"

#include <string.h>

#include "base/layout/layout.h"
#include "prereg/load/toml_build.h"
#include "prereg/load/toml_scan.h"

int toml_parse(const char *text, size_t len, struct arena *arena, struct toml_node **root,
               struct diag *diag)
{
    *root = NULL;
    if (len > LAYOUT_GRID_MAX) {
        diag_add(diag, DIAG_ERROR, 0, 0, "larger than %zu bytes", LAYOUT_GRID_MAX);
        return ERR_INVALID;
    }
    unsigned line = toml_find_long_key(text, len);
    if (line != 0) {
        diag_add(diag, DIAG_ERROR, line, 1, "a key of more than %d dotted parts",
                 TOML_KEY_PARTS_MAX);
        return ERR_INVALID;
    }
    size_t errors_before = diag->n_errors;
    int rc = toml_build(text, len, arena, root, diag);
    if (rc != 0 || diag->n_errors > errors_before) {
        *root = NULL;
        return ERR_INVALID;
    }
    return 0;
}

struct toml_node *toml_member(const struct toml_node *table, const char *key)
{
    if (table == NULL || table->kind != TOML_TABLE) {
        return NULL;
    }
    for (size_t i = 0; i < table->n_items; i++) {
        if (strcmp(table->items[i]->key, key) == 0) {
            return table->items[i];
        }
    }
    return NULL;
}

const char *toml_kind_name(enum toml_kind kind)
{
    switch (kind) {
    case TOML_TABLE: return "a table";
    case TOML_ARRAY: return "an array";
    case TOML_STRING: return "a string";
    case TOML_INTEGER: return "a whole number";
    case TOML_FLOAT: return "a number";
    case TOML_BOOLEAN: return "true or false";
    case TOML_DATE: return "a date";
    }
    return "?";
}
