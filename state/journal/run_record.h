/*
 * What [run] was while a program ran, read off its journal's rows in order: every [run] that stood,
 * what was blocked under it, and which tasks were lost under narrower limits than others of their
 * stage had. [run] is not locked: a limit that is narrowed for a while ends a chosen cell, and what
 * ended so is not chance (docs/truth-table.md, "Exclusion").
 *
 * The rule. A task has had the limits of every [run] that stood from the start of its first attempt
 * to the end of its last one, counted since it was last retried or revived. It was lost under
 * narrower limits when one of those is narrower than a limit that another cell's task of the same
 * stage has had in this sense, done or not. Daemon and `verify` ask this one record, and rows
 * behind the verdict change nothing of it.
 */
#ifndef STATE_JOURNAL_RUN_RECORD_H
#define STATE_JOURNAL_RUN_RECORD_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "prereg/program/program.h"
#include "state/rows.h"

#define RUN_CHANGES_MAX 1000 /* of limits: beyond it no loss is taken for chance */

struct run_record;

/* p, which outlives the record, gives the stages; NULL: only run_record_json() is asked. */
struct run_record *run_record_create(const struct plan_program *p);
void run_record_free(struct run_record *r); /* NULL is fine */

/* From this row of the journal on it is `run` (NULL: an empty table). ERR_SYNTAX, ERR_RANGE: it has
 * limits that no grid.toml could have. */
int run_record_set(struct run_record *r, int64_t row, const cJSON *run, struct err *err) MUST_CHECK;
/* A row of a task: `line` is its line of the journal. Rows of apparatus checks are passed over. */
void run_record_take(struct run_record *r, const cJSON *line, const struct state_row *row);

/* After the last row, of a task that is blocked for that cause: which of its limits were narrower,
 * and what others had. NULL: none was, or the cause is not a mechanical one. The record's text:
 * valid until it gets a row or is asked of another task of that stage. */
const char *run_record_narrower(struct run_record *r, size_t task, enum cause cause);
/* [{"row","run","blocked":COUNT,"first":["CELL/STAGE (cause)", ...]}]: every [run] that stood, and
 * how many tasks, of which the first are named, became blocked under it
 * (prereg/program/run_change.h prints an element). The caller's. */
cJSON *run_record_json(const struct run_record *r);

/* Of line `row` of a journal, as text: what it says of [run] and of blocked tasks, and of every
 * task where `every_task`. */
int run_record_take_line(struct run_record *r, int64_t row, const char *text, bool every_task,
                         struct err *err) MUST_CHECK;

/* How far a journal that grows has been read into the record: state/store/run_history.c keeps it.
 */
struct run_record_seen {
    int64_t last_row;
    bool changed; /* there was another [run]: every row of a task was read */
    bool unread;  /* there was, and they were not */
    bool behind;  /* rows were left for the next call */
};
struct run_record_seen *run_record_seen(struct run_record *r);

#endif
