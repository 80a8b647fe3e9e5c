/* One program on its way back into a database; for state/rebuild/ only. */
#ifndef STATE_REBUILD_INTERNAL_H
#define STATE_REBUILD_INTERNAL_H

#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "prereg/lock/lock.h"
#include "state/rebuild/rebuild.h"
#include "state/store/internal.h"

/* Begins the detail of every row that was derived from files; the next rebuild finds it. */
#define REBUILD_UNVERIFIED "UNVERIFIED HISTORY"

struct rebuilding {
    struct store *store;
    char *id;
    char *folder; /* STATE/programs/<id> */
    struct plan_program *program;
    struct lock *lock;
    struct wall_time submitted;
    uint32_t no;
    bool unverified;
    bool tampered;
    int64_t n_bytes;     /* of journal.jsonl, as replayed */
    bool journal_is_new; /* another journal.jsonl is to replace the present one */
    bool adds_rows;      /* the files show what the journal, as replayed, lacks */
    struct strbuf note;
    bool scores_open;
    bool removed; /* its cells were given up: their remains say nothing */
    uint32_t n_records;
    struct task_row *tasks; /* as rebuilt so far; the grid's, then those of apparatus checks */
    struct rebuilding_check {
        char *name;
        size_t stage; /* INDEX_NONE: the program has no such stage any more */
    } * checks;       /* in the order of their tasks */
    size_t n_checks;
};

/* NULL: a task of the grid. */
static inline const struct rebuilding_check *rebuild_check_of(const struct rebuilding *r,
                                                              uint32_t task)
{
    size_t grid = program_n_tasks(r->program);
    return task < grid ? NULL : &r->checks[task - grid];
}

void rebuild_note(struct rebuilding *r, const char *fmt, ...)
    PRINTF_LIKE(2, 3); /* also: unverified */

/* amendments.c: as a crash left the files of amendments, so the daemon would have mended them.
 * What cannot be is left as it lies: it is found out when lock, program and journal are held
 * against one another. */
void rebuild_heal_amendments(const struct rebuilding *r);

/* tasks.c: the cells' files against the tasks. Its own
 * transactions. */
int rebuild_from_files(struct rebuilding *r, struct err *err) MUST_CHECK;

/* What journal.heads, provenance.json and verdict.json know of rows that the journal lacks: noted,
 * unverified. */
int rebuild_check_noted(struct rebuilding *r, struct err *err) MUST_CHECK;

/* publish.c: how what was rebuilt replaces what is there, in two steps. First, once a
 * program is whole in the new database: its journal beside the old one, synced, where the two
 * differ. Then, once all are: journals and database take their places. An old journal that the new
 * one does not continue is kept under a name of its own. */
int rebuild_write_journal(struct rebuilding *r, struct err *err) MUST_CHECK;
int rebuild_publish(const char *dir, const struct rebuilding *all, size_t n,
                    struct err *err) MUST_CHECK;
/* What a rebuild that failed has written. */
void rebuild_discard(const char *dir, const struct rebuilding *all, size_t n);
/* ERR_NO_SPACE when the disk has no room for what will be written. local: of the database. */
int rebuild_check_space(const char *dir, const char *local, struct err *err) MUST_CHECK;
int rebuild_remove_new(const char *dir, struct err *err) MUST_CHECK;
#define REBUILD_DATABASE LAYOUT_DATABASE ".rebuild"

/* attempts.c */
struct found_attempt {
    char *path;
    struct attempt_name name;
};
struct found_task {
    struct found_attempt *attempts; /* by number */
    size_t n;
    size_t cap;
    size_t linked; /* index of the one that result.json points to, or SIZE_MAX */
    bool has_result;
    struct digest digest; /* of the linked result.json */
    cJSON *result;
};
/* An absent folder is an empty one. */
int found_task_read(const struct rebuilding *r, uint32_t task, struct found_task *out,
                    struct err *err) MUST_CHECK;
void found_task_release(struct found_task *f);
/* Rows for attempts that the journal does not know, applied as they are made. */
int found_take_in(struct rebuilding *r, uint32_t task, const struct found_task *f,
                  struct err *err) MUST_CHECK;

#endif
