/*
 * A program that this daemon has: its bundle (plan and lock as they are in STATE/programs/<id>),
 * its folders, and a mirror of its committed task rows for status.
 *
 * A bundle is constant once loaded; jobs hold a reference while they use it, counted on the
 * loop's thread. Another [run] for the same root makes a new bundle. The digests
 * last found good are used in the program's lane only (job.h).
 */
#ifndef DAEMON_PROGRAM_HOSTED_H
#define DAEMON_PROGRAM_HOSTED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "daemon/core/event.h"
#include "daemon/executor/job.h"
#include "prereg/lock/lock.h"
#include "prereg/lock/pin.h"
#include "prereg/program/program.h"
#include "prereg/reuse/reuse.h"
#include "state/store/store.h"

struct bundle {
    unsigned refs;
    struct plan_program *program;
    struct lock *lock;
    struct reuse_pin *reuse; /* per task: what is accepted from an earlier receipt; NULL: nothing */
    char *origin; /* where grid.toml was submitted from: relative paths are taken from there */
};

/* Parses a program's text with relative paths from `origin`, reads its lock, and checks that the
 * plan is the locked one. */
int bundle_load_text(const struct strbuf *text, const char *lock_path, const char *origin,
                     struct bundle **out, struct err *err) MUST_CHECK;
int bundle_load(const char *program_path, const char *lock_path, const char *origin,
                struct bundle **out, struct err *err) MUST_CHECK;
/* The same for a folder below STATE/programs, with its amendments, whose signatures are checked. */
int bundle_load_own(const char *folder, const char *origin, struct bundle **out,
                    struct err *err) MUST_CHECK;
/* A program without its lock. */
int bundle_parse(const char *program_path, const char *origin, struct bundle **out,
                 struct err *err) MUST_CHECK;
int bundle_parse_text(const struct strbuf *text, const char *origin, struct bundle **out,
                      struct err *err) MUST_CHECK;
struct bundle *bundle_ref(struct bundle *b);
void bundle_unref(struct bundle *b); /* NULL is fine */

struct hosted;
/* Fills in what the core needs of a program, and the apparatus checks of h; release with
 * plan_release(). */
void plan_init(struct core_plan *plan, const struct plan_program *p, const struct hosted *h);
void plan_release(struct core_plan *plan);
/* Fills in which of n checks are second runs, and of which, by their names. */
void plan_link_checks(struct core_apparatus *list, uint32_t n);

struct report_process;

struct stage_times { /* of tasks that are done, to estimate the remaining time */
    int64_t n;
    double sum_ms;
};

/* The files that define a program in STATE; without amendments their digest is zero. */
enum { COPY_PROGRAM, COPY_LOCK, COPY_AMENDMENTS, COPIES_NR };

struct hosted_check { /* an apparatus check: task n_tasks + its place (daemon/program/apparatus.h)
                       */
    char *name;
    size_t stage; /* INDEX_NONE: no longer in the program */
    bool declared;
    int64_t took_ms; /* of its last run that ended well; -1: none has */
};

struct hosted {
    uint32_t no; /* in store and core */
    char *id;
    char *folder;            /* STATE/programs/<id> */
    struct bundle *bundle;   /* the loop's alone: another [run] replaces it */
    struct bundle *settings; /* with another [run], whose row is not committed yet; or NULL */
    struct bundle *plan;    /* the first; cells and stages are those of the root, so paths come from
                               it, in jobs too */
    struct pin_cache *pins; /* has a mutex of its own */
    atomic_bool work_claimed;  /* its cells in [run] work, by this daemon (work.h) */
    atomic_bool work_lost;     /* they were another state's when that was checked last */
    struct job_lane hash_lane; /* of the jobs that check what is pinned, one after another */
    struct {
        _Atomic int64_t done;
        _Atomic int64_t total;            /* bytes; 0: nothing is hashed */
    } hashing;                            /* again, before the verdict */
    struct sync_group *syncs;             /* of the file system that its cells are on (durable.h) */
    struct digest good_copies[COPIES_NR]; /* in STATE, when last found good; in the lane */
    struct amend_prepared *amend;         /* waits for its signature; or NULL */
    uint32_t amend_writes;                /* how often files of amendments were written */
    struct amend_prepared *amending;      /* takes effect when its row is committed; or NULL */
    char verdict_head[DIGEST_HEX_SIZE];   /* the head that the verdict was computed with */
    struct wall_time submitted;
    struct wall_time finished;   /* 0: not yet */
    struct program_row status;   /* as committed */
    bool unverified;             /* the history: see store_program */
    char *history_why;           /* what a job found wrong with it here; while `checking`, why it
                                    cannot be checked; or NULL */
    bool checking;               /* a job checks its journal (load.h): whether the history is
                                    verified is not known, and nothing is written that says so */
    bool verdict_due;            /* was asked for meanwhile; it follows the check */
    bool report_due;             /* likewise */
    bool text_lags;              /* grid.toml is older than the last amendment that took effect */
    struct task_row *tasks;      /* as committed; n_tasks of the grid, then those of the checks */
    size_t n_tasks;              /* of the grid */
    struct hosted_check *checks; /* NULL, or room for all there may ever be: jobs read names */
    size_t n_checks;
    uint32_t by_state[TASK_STATE_NR]; /* of the grid */
    struct stage_times *times;        /* per stage */
    int64_t malformed;                /* lines, over all ended attempts */
    char *withheld_why; /* its folder cannot be written, so its rows wait (pump.h); or NULL */
    char *paused_why[PAUSE_NR]; /* of each bit of status.paused; or NULL */
    struct wall_time latest;    /* of its journal's times */
    bool clock_behind;          /* noted, and the clock has not passed `latest` since */
    char *clock_why;       /* this machine's clock was behind its journal (clocks.h); or NULL */
    char *refused_why;     /* of the verdict, when it was last asked for; or NULL */
    char *verdict_text;    /* verdict.json's bytes once computed here; or NULL */
    cJSON *verdict_timing; /* validity that rests on timings; or NULL */
    struct run_record *run_record; /* once the verdict was computed here; or NULL */
    struct run_record *followed;   /* while it runs, for its status (counted.c); or NULL */
    bool following;                /* rows of its journal are left to read for that */
    cJSON *runs;                   /* of its [run], as a verdict is answered with; or NULL */
    bool verdict_waits;            /* the lock refused it: asked for again once that holds */
    bool looked_at;                /* a job checks whether missing data are back */
    bool room_asked;               /* a job checks the room on the disk */
    int64_t host_due_ms;           /* mono: this machine is given another chance then; 0: not set */
    int64_t host_wait_ms;          /* and how long after the next failure */
    bool report_ready;             /* prereg-report has ended well */
    bool report_running;
    unsigned report_failures;      /* of prereg-report in a row */
    char *report_why;              /* of the last of them; or NULL */
    struct later *report_later;    /* of act_report.c, before the next try; or NULL */
    struct report_process *report; /* of act_report.c, while prereg-report runs */
    uint32_t *prune; /* tasks whose superseded checkpoints are to be removed (prune.c) */
    size_t n_prune;
    size_t cap_prune;
    uint32_t prune_next; /* likewise all tasks from there on; n_tasks: none */
    uint64_t version;    /* counts changes, for subscribers */
};

/* A program without bundle and rows yet; mirror_load() fills them in. */
struct hosted *hosted_new(uint32_t no, const char *state, const char *id);
void hosted_free(struct hosted *h);
void hosted_forget_checks(struct hosted *h);
void hosted_add_check(struct hosted *h, const char *name, size_t stage, bool declared);
/* Takes the rows over (malloc'd, n of them, the checks' last) and counts. */
void hosted_set_tasks(struct hosted *h, struct task_row *rows, size_t n);
/* The pauses changed from `before` to `after`: new ones get this reason, ended ones lose theirs. */
void hosted_note_pauses(struct hosted *h, unsigned before, unsigned after, const char *why);
/* Why it is paused for that, as found out since; a copy is kept. */
void hosted_set_paused_why(struct hosted *h, enum pause_bit bit, const char *why);
/* The pause that a person must hear of first, and its reason: by cancel, lock, apparatus, failures,
 * disk, person, host, data. A pause for data alone ends by itself. NULL: not paused. */
const char *hosted_paused_by(const struct hosted *h);
const char *hosted_why_of(const struct hosted *h, enum pause_bit bit); /* or NULL */
/* The reason of that pause; without a pause, why the verdict was refused. NULL: none is known. */
const char *hosted_paused_why(const struct hosted *h);
/* Adds how long an attempt with an accepted result ran, by the monotonic clock. Attempts without
 * that time are skipped: a wall clock may have jumped meanwhile. */
void hosted_note_time(struct hosted *h, uint32_t task, const struct attempt_row *a);
/* What is accepted from an earlier receipt, per task, which no amendment changes; NULL: nothing. */
const struct reuse_pin *hosted_reuse(const struct hosted *h);
/* Whether it accepts a result from an earlier receipt; whether it accepts any, and runs no worker.
 */
bool hosted_is_reused(const struct hosted *h, uint32_t task);
bool hosted_accepts(const struct hosted *h, uint32_t task);
/* The row of another [run] is committed: `settings` becomes the bundle. */
void hosted_take_settings(struct hosted *h);
/* Mirrors one committed row. */
void hosted_apply(struct hosted *h, const struct state_row *row);

/* "verified", "unverified", or "checking" while that is not known. */
const char *hosted_history(const struct hosted *h);

/* Apparatus checks follow the grid's tasks in the numbering. */
bool hosted_is_check(const struct hosted *h, uint32_t task);
/* The check whose task this one does a second time; UINT32_MAX: none. */
uint32_t hosted_first_run(const struct hosted *h, uint32_t task);
size_t hosted_cell(const struct hosted *h, uint32_t task); /* of the grid alone */
size_t hosted_stage(const struct hosted *h, uint32_t task);
/* Heap strings: cells/<cell>/<stage> or apparatus/<name>, and the attempt's folder in it. Two
 * digits of its number keep the target of the link of its result (act_link.c) within the 59 bytes
 * that ext4 stores in an inode: the link takes no block. */
char *hosted_task_folder(const struct hosted *h, uint32_t task) __attribute__((returns_nonnull));
char *hosted_attempt_folder(const struct hosted *h, uint32_t task, uint32_t no, const char *id)
    __attribute__((returns_nonnull));
/* "CELL/STAGE", or "apparatus/NAME" */
char *hosted_task_name(const struct hosted *h, uint32_t task) __attribute__((returns_nonnull));
/* UINT32_MAX when there is none. */
uint32_t hosted_find_task(const struct hosted *h, const char *name);

#endif
