/*
 * A line of journal.jsonl: a row as JSON and back. Each row of a task carries the whole task row,
 * so that the journal alone brings the store back. Its number and hash are chain.h's.
 */
#ifndef STATE_JOURNAL_LINE_H
#define STATE_JOURNAL_LINE_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "state/rows.h"

cJSON *line_from_row(const struct state_row *row, const char *cell, const char *stage);
/* "time", and "clock" where the clock was behind it. */
void line_put_time(cJSON *line, struct wall_time time, int64_t behind_ms);
/* Of a line as text; 0 where it does not say. */
struct wall_time line_time(const char *text, size_t len);
/* A row is never dated before the row before it, which was at *last: its own reading becomes
 * "clock". *last is then the row's time. */
int line_lift_time(cJSON *line, struct wall_time *last, struct err *err) MUST_CHECK;
/* Strings of *row point into `line`. */
int line_to_row(const cJSON *line, uint32_t program, struct state_row *row,
                struct err *err) MUST_CHECK;
/* The event of a line as text, without parsing it; ROW_KIND_NR where the text has no such member in
 * the form in which rows are written. Not a check: a line that matters is parsed. */
enum row_kind line_kind(const char *text, size_t len);
/* The head that an `amended` line names; `head` is left alone where it names none. */
void line_amended_head(const char *text, size_t len, char head[DIGEST_HEX_SIZE]);

#endif
