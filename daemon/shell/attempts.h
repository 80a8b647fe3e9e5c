/*
 * The attempts in flight: their events.jsonl is ingested by byte offset, exactly once (the offset
 * is committed with the events), and their start is noticed.
 *
 * One struct shell_attempt from the row that starts it (or from the restart that finds it) to the
 * row that ends it. inotify marks an attempt; a tick reads the marked ones, ten times a second at
 * most, and all of them every two seconds (those of other machines every ten), for file systems
 * that do not notify. Of an attempt that waits in another scheduler's queue nothing is read.
 */
#ifndef DAEMON_SHELL_ATTEMPTS_H
#define DAEMON_SHELL_ATTEMPTS_H

#include "daemon/program/events.h"
#include "daemon/shell/shell.h"

struct shell_attempt {
    struct shell_attempt *next;
    struct shell_attempt *previous;
    struct shell *shell;
    struct attempt_key key;
    struct attempt_row row; /* as committed */
    char *folder;
    int64_t offset;     /* of events.jsonl: read and posted up to there */
    int64_t malformed;  /* lines of it, likewise */
    int64_t since_ms;   /* mono: its progress is measured from there, */
    int64_t since_done; /* when it was that far */
    char unit[EVENTS_UNIT_SIZE];
    bool preparing;   /* a job makes its folder: neither alive nor dead yet */
    bool began;       /* its folder may have files: before that no file is read */
    bool up;          /* start.json was seen to say something */
    bool ended;       /* the executor said so */
    bool end_waits;   /* `end` is posted once all its events were read */
    bool probe_waits; /* likewise `health` */
    bool dirty;       /* events.jsonl was written to */
    bool verifying;   /* a job verifies its result */
    bool unread;      /* which could not be read last time; that was logged */
    bool must_end;    /* its task is cancelled or stopped */
    bool judge_again; /* verified while an amendment was being written: repeated after it */
    bool closing;
    bool has_watch;
    uv_fs_event_t watch;
    struct attempt_end end;
    enum core_health health;
};

/* The committed row of a new or recovered attempt. */
struct shell_attempt *attempt_add(struct shell *sh, const struct attempt_key *key,
                                  const struct attempt_row *row);
/* NULL when there is none, or its end is committed. */
struct shell_attempt *attempt_find(const struct shell *sh, const struct attempt_key *key);
void attempt_remove(struct shell_attempt *a);
/* At the end: all of them. */
void attempts_close(struct shell *sh);

/* Copies a row that was committed. */
void attempt_mirror(struct shell_attempt *a, const struct attempt_row *row);
/* The time of one unit of its work in ms, from its progress since it was first seen; NaN while
 * unknown. By the monotonic clock. */
double attempt_pace_ms(const struct shell_attempt *a);

/* What the executor needs to know; points into `a`. */
void attempt_locate(const struct shell_attempt *a, struct attempt_place *out);

/* Where its row says that it runs. */
struct executor *shell_executor_of(const struct shell *sh, const struct shell_attempt *a);

/* The executors' listener. */
void attempts_on_began(void *ctx, const struct attempt_key *key);
void attempts_on_full(void *ctx, enum executor_kind executor, bool full);
void attempts_on_ended(void *ctx, const struct attempt_key *key, const struct attempt_end *end);
void attempts_on_probed(void *ctx, const struct attempt_key *key, enum core_health health);

#endif
