/*
 * Comma-separated values as RFC 4180 and Python's csv module (default dialect) read them: fields
 * may be quoted, quotes inside are doubled, quoted fields may hold commas and line ends. Records
 * end with LF, CRLF or CR. Refused: text that is not UTF-8, a NUL, a quote that is never closed,
 * anything but a comma or a line end after a closing quote.
 */
#ifndef WORKER_EVAL_ITEMS_CSV_H
#define WORKER_EVAL_ITEMS_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

#define CSV_FIELDS_MAX 64

struct csv_reader {
    const char *at;
    const char *end;
    unsigned line; /* of the record last read, from 1 */
    unsigned next_line;
};

struct csv_record {
    const char *fields[CSV_FIELDS_MAX];
    size_t n;
};

/* The text must outlive the reader. ERR_SYNTAX: a NUL byte, or not UTF-8. */
int csv_start(struct csv_reader *r, const char *text, size_t len, struct err *err) MUST_CHECK;
/* Reads the next record, skipping empty lines; its fields live in the arena. *got is false at the
 * end. */
int csv_next(struct csv_reader *r, struct arena *arena, struct csv_record *record, bool *got,
             struct err *err) MUST_CHECK;

#endif
