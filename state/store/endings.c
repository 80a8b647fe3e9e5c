/*
 * What the journal says of how the attempts of one task ended. A person asks while the daemon's
 * loop waits, and a journal may have millions of rows: times in it never fall, and an end is
 * written after the time that its attempt has, so the search starts there.
 */
#include <string.h>

#include "state/journal/line.h"
#include "state/store/internal.h"

#define ROWS_SEARCHED INT64_C(4000) /* for one end: what other tasks wrote meanwhile */

struct endings {
    uint32_t program;
    int64_t n_rows;
    sqlite3_stmt *line; /* of a row */
    sqlite3_stmt *end;  /* of an attempt, among some rows */
    store_ending_fn *fn;
    void *ctx;
};

/* Of a row that is missing: 0. */
static int time_of_row(const struct endings *e, int64_t seq, int64_t *ms, struct err *err)
{
    bool row = false;
    sql_bind_int(e->line, 1, e->program);
    sql_bind_int(e->line, 2, seq);
    int rc = sql_step(e->line, &row, err);
    *ms = 0;
    if (rc == 0 && row) {
        const char *text = sql_col_text(e->line, 0);
        *ms = line_time(text, strlen(text)).ms;
    }
    (void)sqlite3_reset(e->line);
    return rc;
}

/* The first row that is not before a time, by halves. A short journal is searched as a whole. */
static int find_time(const struct endings *e, int64_t ms, int64_t *seq, struct err *err)
{
    int64_t low = 1;
    int64_t high = e->n_rows > ROWS_SEARCHED ? e->n_rows : 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        int64_t there = 0;
        int rc = time_of_row(e, middle, &there, err);
        if (rc != 0) {
            return rc;
        }
        if (there < ms) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *seq = low;
    return 0;
}

static int visit_attempt(void *ctx, uint32_t task, const struct attempt_row *a, struct err *err)
{
    const struct endings *e = ctx;
    int64_t from = 1;
    bool row = false;
    (void)task;
    if (a->state != ATTEMPT_ENDED) {
        return 0;
    }
    int rc = find_time(e, a->ended.ms, &from, err);
    if (rc != 0) {
        return rc;
    }
    sql_bind_int(e->end, 1, e->program);
    sql_bind_int(e->end, 2, from);
    sql_bind_int(e->end, 3, from + ROWS_SEARCHED);
    sql_bind_text(e->end, 4, a->id);
    rc = sql_step(e->end, &row, err);
    const char *detail = rc == 0 && row ? sql_col_text(e->end, 0) : "";
    if (detail[0] != '\0') {
        rc = e->fn(e->ctx, a->no, detail, err);
    }
    (void)sqlite3_reset(e->end);
    return rc;
}

int store_endings(struct store *store, uint32_t program, uint32_t task, store_ending_fn *fn,
                  void *ctx, struct err *err)
{
    assert(store != NULL && fn != NULL && task != UINT32_MAX);
    struct endings e = {.program = program, .fn = fn, .ctx = ctx};
    struct digest head;
    int rc = store_journal_head(store, program, &head, &e.n_rows, err);
    if (rc != 0 ||
        (rc = sql_prepare(store->db, "SELECT line FROM journal WHERE program=?1 AND seq=?2",
                          &e.line, err)) != 0 ||
        /* A line is canonical, so the member has exactly this text. */
        (rc = sql_prepare(store->db,
                          "SELECT json_extract(line, '$.detail') FROM journal WHERE program=?1 AND"
                          " seq>=?2 AND seq<?3 AND has(line, ?4) AND"
                          " has(line, '\"event\":\"attempt_ended\"') ORDER BY seq LIMIT 1",
                          &e.end, err)) != 0) {
        goto out;
    }
    rc = store_attempts(store, program, task, visit_attempt, &e, err);
out:
    (void)sqlite3_finalize(e.line);
    (void)sqlite3_finalize(e.end);
    return rc;
}
