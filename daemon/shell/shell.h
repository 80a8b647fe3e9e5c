/*
 * The shell of preregd: carries out the pure core's decisions with libuv, files and processes.
 *
 * One struct shell, on one thread. Across turns of the loop things are named by number and key,
 * never by pointer, except in jobs, which hold references. Invariant: nothing is done before the
 * rows that say so are committed (pump.h).
 */
#ifndef DAEMON_SHELL_SHELL_H
#define DAEMON_SHELL_SHELL_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/executor/executor.h"
#include "daemon/executor/job.h"
#include "daemon/executor/key_map.h"
#include "daemon/program/hosted.h"
#include "daemon/rpc/handler.h"
#include "daemon/shell/pump.h"
#include "daemon/shell/settings.h"
#include "state/ownership/work_owner.h"
#include "state/store/store.h"

struct shell_attempt;
struct counted_reader;
struct server;
struct tenure_hold;

/* A program of the store that does not load, or whose rows the store rejects: the former is
 * left out until it is submitted again or the daemon restarts, the latter until the daemon
 * restarts. */
struct unloaded {
    char *id;
    char *name;
    struct err why;
};

/* What happened while this daemon served, for /metrics. */
struct shell_counters {
    uint64_t attempts_started;
    uint64_t attempts_ended[END_REASON_NR];
    uint64_t event_bytes; /* of events.jsonl, read and posted */
};

struct state_space { /* bytes of its file system; -1: not known (yet) */
    int64_t free_bytes;
    int64_t total_bytes;
    bool asked; /* a job is under way */
};

struct http;
struct notify;
struct page_control { /* of the live page (daemon/http), which nothing below it knows */
    void *ctx;
    /* Describes the page, after starting it or renewing its token where asked for. */
    int (*ask)(void *ctx, bool start, bool new_token, cJSON **out, struct err *err);
};

struct shell {
    uv_loop_t loop;
    char *state;       /* absolute */
    char *shim;        /* absolute path of prereg-shim */
    const char *local; /* where socket and logs are: `state`, unless that is shared between hosts */
    struct store *store;
    struct core *core;
    struct core_config config;
    struct pump *pump;
    struct executor *executors[EXECUTOR_NR];
    struct server *server;
    struct server_replies replies; /* of the server, for what is answered later */
    struct http *http;             /* the live page; NULL: it is off */
    struct page_control page;
    struct notify *notify; /* of [notify]; NULL: none */
    struct shell_counters counters;
    struct settings settings;   /* serve.toml, as it was at the start */
    struct work_owner owner;    /* this state folder, as a program's [run] work names it */
    struct tenure_hold *tenure; /* NULL: the state folder is not shared */
    const char *taken_over;   /* likewise: from whom that had not stopped, and the proof; or NULL */
    bool moved;               /* likewise: the daemon before this one served on another host */
    struct hosted **programs; /* by number; NULL where there is none */
    size_t cap_programs;
    struct unloaded *unloaded;
    size_t n_unloaded;
    size_t cap_unloaded;
    struct check_job *waiting_checks; /* history_check.c: of journals that could not be read */
    struct shell_attempt *attempts;   /* alive, or ended and not committed as such yet */
    size_t n_attempts;
    struct key_map attempt_map;    /* the same by key, without those that are closing */
    uv_timer_t tick;               /* of attempts.c; runs while there are any */
    uv_timer_t disk;               /* of disk.c */
    struct state_space space;      /* likewise: of the state folder, as it was seen last */
    struct gpu_watch *gpus;        /* of gpu_watch.c */
    struct counted_reader *reader; /* of counted_losses.c; NULL when stopping */
    uv_signal_t on_term;
    uv_signal_t on_int;
    uv_signal_t on_usr2; /* of Slurm: the time limit is near */
    struct wall_time started;
    int64_t checked_rows; /* of a journal as long the store has checked every row:
                             STORE_CHECKED_ROWS, but for tests */
    char *read_buffer;    /* of attempts.c */
    bool pruning;         /* a job of prune.c is under way */
    bool stopping;
    uv_timer_t stop_due;   /* serve.c: stopping waits for what is being cancelled */
    int64_t stop_until_ms; /* mono; 0: it is not asked to stop */
};

/* programs.c. NULL when there is none. A damaged program (pump.h) stays here until the daemon ends:
 * jobs and attempts of it may be under way. */
struct hosted *shell_program(const struct shell *sh, uint32_t no);
bool shell_is_damaged(const struct shell *sh, const struct hosted *h);
/* The same without damaged ones: the programs that requests can be about. */
struct hosted *shell_served(const struct shell *sh, size_t no);

/* ---- the acts; each is one file ---- */
void shell_start_attempt(struct shell *sh, const struct core_act *act);  /* act_start.c */
void shell_verify_attempt(struct shell *sh, const struct core_act *act); /* act_verify.c */
/* After an amendment took effect: verifies again what was verified while it was being written. */
void shell_verify_again(struct shell *sh, uint32_t program);          /* act_verify.c */
void shell_link_result(struct shell *sh, const struct core_act *act); /* act_link.c */
void shell_compute_verdict(struct shell *sh, uint32_t program);       /* act_verdict.c */
void shell_write_report(struct shell *sh, uint32_t program);          /* act_report.c */
/* Closes the handles of prereg-report, which goes on: stopping does not wait for it. */
void shell_close_report(struct hosted *h); /* act_report.c */
/* Whether the report is whole and not older than its verdict. */
bool shell_has_report(const struct hosted *h); /* act_report.c */
/* Runs prereg-report for a reported program without a report. */
void shell_mend_report(struct shell *sh, struct hosted *h); /* act_report.c */
/* prune.c: removes what [run] keep does not keep of the checkpoints of a task that is done and
 * linked, or of all such tasks of a program. */
void shell_prune_task(struct shell *sh, struct hosted *h, uint32_t task);
void shell_prune_all(struct shell *sh, struct hosted *h);
/* Removes the rest of a removed program's cells, off the loop. */
void shell_remove_cells(struct shell *sh, uint32_t program); /* act_remove.c */
void shell_watch_disk(struct shell *sh); /* disk.c; also checks for what came back */
void shell_look_for_mend(struct shell *sh, struct hosted *h); /* mend.c */

/* Adding a program to the shell and its core. */

/* Adds a program of the store to the core, fresh or recovered. Owns h from here on, also on
 * failure. */
int shell_add_program(struct shell *sh, struct hosted *h, const struct store_program *row,
                      struct err *err) MUST_CHECK;

/* Gives the core another [run] and journals it. */
int shell_change_run(struct shell *sh, struct hosted *h, const struct plan_program *p,
                     struct err *err) MUST_CHECK;

/* The background check of a journal that is too long for the store to check at once. */

/* Starts the job when the journal is that long. Verdict and report wait for it, also while the
 * journal cannot be read. Call it before the program is added, which may ask for either. */
int history_check_start(struct shell *sh, struct hosted *h, struct err *err) MUST_CHECK;
/* Ends the waits for journals that could not be read, some of which are minutes long. */
void history_check_close(struct shell *sh);

#endif
