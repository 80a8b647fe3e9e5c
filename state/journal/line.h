/*
 * A line of journal.jsonl: a row as JSON and back, and its hash in the chain. No SQLite here:
 * whoever reads a journal without a store (a receipt's) uses this alone.
 */
#ifndef STATE_JOURNAL_LINE_H
#define STATE_JOURNAL_LINE_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "state/rows.h"

#define JOURNAL_LINE_MAX ((size_t)4 << 20) /* a [run] table is the longest thing in it */

cJSON *line_from_row(const struct state_row *row, const char *cell, const char *stage);
/* "time", and "clock" where the clock was behind it. */
void line_put_time(cJSON *line, struct wall_time time, int64_t behind_ms);
/* Of a line as text; 0 where it does not say. */
struct wall_time line_time(const char *text);
/* A row is never dated before the row before it, which was at *last: its own reading becomes
 * "clock". *last is then the row's time. */
int line_lift_time(cJSON *line, struct wall_time *last, struct err *err) MUST_CHECK;
/* Strings of *row point into `line`. */
int line_to_row(const cJSON *line, uint32_t program, struct state_row *row,
                struct err *err) MUST_CHECK;
/* hash = SHA-256(hex of prev, canonical text of line without "hash"). */
int line_hash(const struct digest *prev, const cJSON *line, struct digest *out,
              struct err *err) MUST_CHECK;

#endif
