/*
 * A list of diagnostics: validators report everything they find in one go, each with its place.
 * Owns copies of all texts. Printed as "file:line:column: error: message" (line 0: place unknown).
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE };

struct diag_item {
    enum diag_level level;
    unsigned line;   /* 1-based; 0 unknown */
    unsigned column; /* 1-based; 0 unknown */
    char *msg;
};

struct diag {
    char *file; /* as the user wrote it; may be NULL */
    struct diag_item *items;
    size_t n_items;
    size_t cap;
    size_t n_errors;
    size_t n_dropped; /* over DIAG_MAX, counted and printed at the end */
};

#define DIAG_MAX 200

void diag_init(struct diag *d, const char *file);
void diag_release(struct diag *d);
void diag_add(struct diag *d, enum diag_level level, unsigned line, unsigned column,
              const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Sorted by place, errors and warnings; one line each. */
void diag_print(const struct diag *d, FILE *out);
/* The errors alone. */
void diag_print_errors(const struct diag *d, FILE *out);
/* Returns 0 without errors; else sets ERR_INVALID with the first error and how many more follow. */
int diag_result(const struct diag *d, struct err *err) MUST_CHECK;

#endif
