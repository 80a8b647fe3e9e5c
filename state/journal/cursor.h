/*
 * The lines of a journal, first to last, out of memory or of a file, and their replay.
 *
 * A cursor hands out whole lines only: what is before a line feed. The bytes behind the last line
 * feed are a torn tail: the row was being written when the machine or the daemon died, and it never
 * took effect. A torn tail is neither handed out nor an error; n_bytes says where it begins. A
 * line, or a tail, of more than JOURNAL_LINE_MAX bytes is ERR_RANGE. A line lives until the next
 * call.
 *
 * Nothing about a line is checked but its length.
 */
#ifndef STATE_JOURNAL_CURSOR_H
#define STATE_JOURNAL_CURSOR_H

#include "state/journal/chain.h"

struct journal_cursor {
    const char *text; /* what is in memory: the caller's, or buf */
    size_t len;
    size_t at;       /* of the next line in it */
    int64_t n_bytes; /* of the whole lines handed out, with their line feeds */
    int fd;          /* -1: out of memory */
    struct strbuf buf;
    const char *path; /* the caller's, for messages */
};

/* Over `text`, which outlives the cursor. */
void journal_cursor_init(struct journal_cursor *c, const char *text, size_t len);
/* Over a file, read piece by piece. ERR_NOT_FOUND when it is absent. Links are not followed. */
int journal_cursor_open(struct journal_cursor *c, const char *path, struct err *err) MUST_CHECK;
void journal_cursor_release(struct journal_cursor *c);

/* *text is NULL at the end. */
int journal_cursor_next(struct journal_cursor *c, const char **text, size_t *len,
                        struct err *err) MUST_CHECK;

/* At the end: whether a torn tail is left. */
bool journal_cursor_is_torn(const struct journal_cursor *c);

/* A row whose place in the chain holds. Nothing of its meaning was checked. */
struct journal_row {
    struct journal_line line;
    int64_t seq;
    struct digest hash;
};

/* Calls fn for every row from the cursor's place on, each of which must follow the chain; chain
 * ends with the last row for which fn returned 0. ERR_CORRUPT: the chain does not hold. Any other
 * error is the cursor's or fn's. */
typedef int journal_row_fn(void *ctx, const struct journal_row *row, struct err *err);
int journal_replay(struct journal_cursor *from, struct journal_chain *chain, journal_row_fn *fn,
                   void *ctx, struct err *err) MUST_CHECK;

#endif
