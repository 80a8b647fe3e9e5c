/*
 * The kept members of durable rows: name and type of its column in the database,
 * name of its member in a line of the journal. Schema, INSERT, UPDATE and reader of state/store/
 * and both directions of state/journal/line.c follow from these tables; a member that is added here
 * is kept.
 *
 * A member is a number or a text in both places. The database names states and causes, too: it
 * outlives the order of our enums.
 */
#ifndef STATE_COLUMNS_H
#define STATE_COLUMNS_H

#include "state/rows.h"

enum column_type {
    COLUMN_INT,  /* int64_t */
    COLUMN_U32,  /* uint32_t */
    COLUMN_I32,  /* int */
    COLUMN_FLAG, /* bool; true and false in JSON */
    COLUMN_TIME, /* struct wall_time; its text in JSON, milliseconds in the database */
    COLUMN_TEXT, /* char[size] */
    COLUMN_DIGEST,
    COLUMN_TASK_STATE,
    COLUMN_ATTEMPT_STATE,
    COLUMN_CAUSE,
    COLUMN_REASON,
    COLUMN_SECTION,
    COLUMN_EXECUTOR
};

enum column_flag {
    COLUMN_KEY = 1,      /* identifies the row: never updated */
    COLUMN_ENDED = 2,    /* JSON: only of an attempt that has ended */
    COLUMN_VERDICT = 4,  /* JSON: only of a program whose verdict is out */
    COLUMN_OPTIONAL = 8, /* JSON: may be missing */
    COLUMN_SPARSE = 16,  /* JSON: left out while it is negative, false, "" or "local" */
    COLUMN_NONZERO = 32  /* JSON: left out while it is 0 */
};

struct row_column {
    const char *name;
    const char *json; /* NULL: not in the journal */
    enum column_type type;
    size_t offset;
    size_t size;
    int64_t min; /* of a number in JSON */
    int64_t max;
    unsigned flags;
    const char *declaration; /* in the schema, behind the name */
};

struct row_columns {
    const char *table;
    const struct row_column *items;
    size_t n;
};

extern const struct row_columns TASK_COLUMNS;    /* of struct task_row */
extern const struct row_columns ATTEMPT_COLUMNS; /* of struct attempt_row */
extern const struct row_columns PROGRAM_COLUMNS; /* of struct program_row */

/* Whether a column is a number in the database; else it is a text. */
bool column_is_int(const struct row_column *c);
/* A number that does not fit a U32 becomes UINT32_MAX, with which no program is loaded
 * (daemon/core/program_add.c), not one that looks sound. */
int64_t column_int(const struct row_column *c, const void *row);
void column_set_int(const struct row_column *c, void *row, int64_t value);
/* A digest of zeros is "", and so is the reason of an attempt that has not ended. `hex` is used for
 * digests. False: no name that this version knows, or no digest; the member is then not valid. */
const char *column_text(const struct row_column *c, const void *row, char hex[DIGEST_HEX_SIZE]);
bool column_set_text(const struct row_column *c, void *row, const char *text);
/* Whether a line of the journal has the member, for a row of which the members before it hold. */
bool column_is_in_json(const struct row_column *c, const void *row);
/* Whether a line that is made now has it: likewise, and it says something (COLUMN_SPARSE,
 * COLUMN_NONZERO). */
bool column_is_written(const struct row_column *c, const void *row);

#endif
