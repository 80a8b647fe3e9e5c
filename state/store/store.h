/*
 * The store: one SQLite file (WAL, synchronous=FULL, STRICT tables) and one journal.jsonl per
 * program, kept in step.
 *
 * STATE/preregd.db, STATE/state.lock, STATE/programs/<id>/journal.jsonl. One owner (flock on
 * state.lock), any number of readers. Of a shared state folder the first two are in the local
 * folder that its tenure names (state/tenure/record.h): the database is never on a network file
 * system. The database is a projection: `store_rebuild` (state/rebuild/rebuild.h) makes it again
 * from the programs' folders.
 *
 * Writing: store_begin, store_apply as often as needed, store_commit. Commit
 * appends the journal lines, syncs them, then commits the transaction: after a crash in between,
 * opening takes the lines over (a line that was synced took effect). After any error inside a
 * transaction only store_rollback is legal; it leaves file and database as before store_begin, and
 * the same rows may be applied again.
 *
 * Journal: append-only (triggers), one chain per program. Row 1 holds the root digest. hash =
 * SHA-256(previous hash in hex, followed by the canonical JSON of the row without "hash"); the
 * first row's previous hash is 64 zeros.
 *
 * Of a result the store holds the digest alone, sealed or not (invariant 8): its metrics and facts
 * are in the cell's folder.
 */
#ifndef STATE_STORE_STORE_H
#define STATE_STORE_STORE_H

#include <cjson/cJSON.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "prereg/program/program.h"
#include "state/rows.h"

#define STORE_SCHEMA_VERSION 7

struct store;

enum store_mode {
    STORE_OWNER, /* the daemon: takes state.lock (ERR_BUSY when another has it), creates, migrates,
                    heals */
    STORE_READER /* read-only connection; ERR_NOT_FOUND before the first database */
};

/* state_dir must exist for a reader and is made (0700) for an owner. ERR_VERSION: written by a
 * newer preregd. ERR_CORRUPT: damaged, the message says `preregctl rebuild`. ERR_REFUSED: on a
 * network file system. */
int store_open(const char *state_dir, enum store_mode mode, struct store **out,
               struct err *err) MUST_CHECK;
void store_close(struct store *store); /* rolls back what is open; NULL is fine */

int store_begin(struct store *store, struct err *err) MUST_CHECK;
/* ERR_NO_SPACE when the disk is full: rolled back; try the same again later. */
int store_commit(struct store *store, struct err *err) MUST_CHECK;
void store_rollback(struct store *store);
/* Called by store_commit() before anything is written: an error ends the commit. For a state folder
 * that another daemon may claim. */
typedef int store_guard_fn(void *ctx, struct err *err);
void store_set_guard(struct store *store, store_guard_fn *guard, void *ctx);
/* Within a transaction: whether the journal files would accept the lines that store_commit appends.
 * ERR_CORRUPT where a file is not as it was last written. Writes nothing. */
int store_check_files(struct store *store, struct err *err) MUST_CHECK;
/* SQLite found the database itself damaged (SQLITE_CORRUPT, SQLITE_NOTADB), or database and journal
 * may disagree: no transaction begins any more, whatever its rows are. Seen after a rollback. */
bool store_is_damaged(const struct store *store);
/* Of the last commit: the program whose journal file alone cannot be written; 0: none. */
uint32_t store_failed_journal(const struct store *store);

struct store_program {
    uint32_t no;
    const char *id; /* "<name>-<first 8 hex of root>", the folder's name */
    const char *name;
    struct digest root;
    struct digest head;
    struct wall_time submitted;
    int64_t behind_ms; /* of a new one: as of its first row (rows.h) */
    uint32_t n_cells;
    uint32_t n_stages;
    struct program_row status;
    bool unverified_history; /* its journal was missing, short or broken when the database was
                                rebuilt */
};

struct store_submission {
    const char *id; /* "<name>-<first 8 hex of root>" */
    struct digest root;
    struct wall_time time;
    struct wall_time locked; /* row 1 is not dated before its lock */
};

/* Its own transaction: the program, its tasks and journal row 1, which has the root and [run]. Its
 * folder must exist. ERR_EXISTS: the root is known. Tasks without dependencies begin ready. */
int store_program_create(struct store *store, const struct plan_program *p,
                         const struct store_submission *submission, uint32_t *no,
                         struct err *err) MUST_CHECK;

/* Within a transaction, in order. Each row must be a legal move from what is stored: anything else
 * is ERR_CORRUPT. */
int store_apply(struct store *store, const struct state_row *rows, size_t n,
                struct err *err) MUST_CHECK;

/* Reading. A visitor returns 0 to go on, other than 0 to stop; that value is handed back when it is
 * an error code (negative), else 0. Pointers given to it live during the call. */
typedef int store_program_fn(void *ctx, const struct store_program *p, struct err *err);
int store_programs(struct store *store, store_program_fn *fn, void *ctx,
                   struct err *err) MUST_CHECK;
/* By id, root, name or a unique prefix of the id; name NULL: the newest that is not finished, else
 * the newest. ERR_NOT_FOUND, or ERR_USAGE when ambiguous. Strings are copied into `texts`. */
int store_program_find(struct store *store, const char *name, struct arena *texts,
                       struct store_program *out, struct err *err) MUST_CHECK;
int store_program_by_root(struct store *store, const struct digest *root, struct arena *texts,
                          struct store_program *out, struct err *err) MUST_CHECK;

struct store_task {
    uint32_t task;
    const char *cell; /* the cell's name */
    const char *stage;
    struct task_row row;
    bool has_result;
    struct digest result_digest;
};

typedef int store_task_fn(void *ctx, const struct store_task *t, struct err *err);
int store_tasks(struct store *store, uint32_t program, store_task_fn *fn, void *ctx,
                struct err *err) MUST_CHECK;
/* All task rows of a program, in order, without names: what the core is fed with; behind the grid's
 * those of its apparatus checks (state/store/apparatus.h). *out is malloc'd. */
int store_task_rows(struct store *store, uint32_t program, struct task_row **out, size_t *n,
                    struct err *err) MUST_CHECK;

typedef int store_attempt_fn(void *ctx, uint32_t task, const struct attempt_row *a,
                             struct err *err);
/* task UINT32_MAX: of all tasks. By task, then number. */
int store_attempts(struct store *store, uint32_t program, uint32_t task, store_attempt_fn *fn,
                   void *ctx, struct err *err) MUST_CHECK;
/* Those not ended: at most one a task. */
int store_live_attempts(struct store *store, uint32_t program, store_attempt_fn *fn, void *ctx,
                        struct err *err) MUST_CHECK;

/* What the journal says in words of how attempts of one task ended, oldest first; attempts about
 * which it has no words are left out, as is an end that a clock put far from its row: in a long
 * journal only what was written soon after the end of an attempt is searched. */
typedef int store_ending_fn(void *ctx, uint32_t attempt_no, const char *detail, struct err *err);
int store_endings(struct store *store, uint32_t program, uint32_t task, store_ending_fn *fn,
                  void *ctx, struct err *err) MUST_CHECK;

/* When the program was last reported, by its journal; 0 when it was not. */
int store_reported_time(struct store *store, uint32_t program, struct wall_time *out,
                        struct err *err) MUST_CHECK;

/* The journal's pauses and resumptions, oldest first: the bits from then on, and why (or NULL).
 * Walks the whole journal. */
typedef int store_pause_fn(void *ctx, unsigned paused, const char *why, struct err *err);
int store_pauses(struct store *store, uint32_t program, store_pause_fn *fn, void *ctx,
                 struct err *err) MUST_CHECK;

/* Every [run] that the journal has, as JSON, with the number of its row, oldest first. Walks the
 * whole journal. */
typedef int store_run_fn(void *ctx, int64_t seq, const char *run, struct err *err);
int store_runs(struct store *store, uint32_t program, store_run_fn *fn, void *ctx,
               struct err *err) MUST_CHECK;

/* Results of done tasks, in order, apparatus checks left out. */
typedef int store_result_fn(void *ctx, uint32_t task, uint32_t attempt_no,
                            const struct digest *digest, struct err *err);
int store_results(struct store *store, uint32_t program, store_result_fn *fn, void *ctx,
                  struct err *err) MUST_CHECK;

/* The accepted result of a task: the attempt that left it, and the digest of its result.json.
 * *found is false when there is none. */
struct store_accepted {
    uint32_t attempt_no;
    char attempt_id[UUID_TEXT_SIZE];
    struct digest digest;
};
int store_accepted(struct store *store, uint32_t program, uint32_t task, struct store_accepted *out,
                   bool *found, struct err *err) MUST_CHECK;

typedef int store_journal_fn(void *ctx, int64_t seq, const char *line, struct err *err);
int store_journal(struct store *store, uint32_t program, int64_t from_seq, store_journal_fn *fn,
                  void *ctx, struct err *err) MUST_CHECK;
/* For journals of more rows, which are too long to be checked whole when the store is opened: by
 * another thread, with a connection of its own, while the store is in use. */
#define STORE_CHECKED_ROWS 100000
int store_check_journal(const char *state_dir, uint32_t program, int64_t n_rows,
                        struct err *err) MUST_CHECK;
/* For a question that no daemon answers: the whole journal of a store that no owner has checked
 * since it was closed. ERR_CORRUPT says what differs; any other error proves nothing. */
int store_check_history(const char *state_dir, uint32_t program, struct err *err) MUST_CHECK;
int store_journal_head(struct store *store, uint32_t program, struct digest *head, int64_t *n_rows,
                       struct err *err) MUST_CHECK;

#endif
