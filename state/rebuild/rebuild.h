/*
 * The database again, from the folders in STATE/programs: grid.toml and its lock, journal.jsonl,
 * and the cells' files (invariant 1). Nothing is executed, no file of a cell is changed.
 *
 * The journal decides where it is whole; the files are held against it. A journal that is missing,
 * broken, or shorter than the files show makes the program's history UNVERIFIED, for good: what the
 * files prove is then added as new rows that say so. A broken journal is kept beside as
 * journal.jsonl.broken (.2, .3, ...).
 *
 * Everything is written elsewhere and replaces what is there last. An error of the disk or of the
 * new database is never taken for a broken journal: it ends the rebuild, and nothing has changed.
 */
#ifndef STATE_REBUILD_REBUILD_H
#define STATE_REBUILD_REBUILD_H

#include "state/store/store.h"

struct rebuilt_program { /* texts live during the call */
    const char *id;
    bool unverified;
    bool tampered; /* a journal was there, and its chain does not hold (or is cut, or of another) */
    const char *note; /* why it is unverified, or what else was found; or NULL */
    int64_t n_rows;   /* of the journal, afterwards */
    uint32_t n_by_state[TASK_STATE_NR];
    uint32_t n_records; /* results of the grid, as accepted, whose scores may be seen */
};

typedef void rebuild_fn(void *ctx, const struct rebuilt_program *p);

/* ERR_BUSY while a daemon serves the folder. The old database is kept as preregd.db.old. On error
 * it is still in place. */
int store_rebuild(const char *state_dir, rebuild_fn *fn, void *ctx, struct err *err) MUST_CHECK;
/* The same for a daemon that has just taken a shared state folder over: ERR_CORRUPT, and nothing is
 * changed, where a journal does not hold or lacks what the files show. */
int store_rebuild_whole(const char *state_dir, struct err *err) MUST_CHECK;

#endif
