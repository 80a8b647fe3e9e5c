/*
 * Where attempts run. The shell prepares an attempt's folder and hands it over with what is to run
 * there; the executor starts the shim, or has it started, watches it, and reports how it ended.
 * local.h runs shims on this machine, slurm/slurm.h submits them to a cluster.
 *
 * Callbacks come on the loop, and may come from inside a call. Every call about an unknown or ended
 * attempt does nothing. UNKNOWN is an answer: it never means dead.
 */
#ifndef DAEMON_EXECUTOR_EXECUTOR_H
#define DAEMON_EXECUTOR_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "daemon/core/event.h"
#include "prereg/program/program.h"

struct attempt_key {
    uint32_t program;
    uint32_t task;
    uint32_t no;
};

struct attempt_place {
    struct attempt_key key;
    const char *id;     /* UUID */
    const char *folder; /* absolute */
    bool used;          /* a folder of the program's attempts has been there: for `probe` */
    const struct placement *placement;
    const char *program_folder; /* STATE/programs/ID */
    const struct plan_program *program;
    size_t stage;
    const struct strbuf *spec; /* what to run (shim/files.h); for `start` alone */
};

struct attempt_end {
    enum end_reason reason;
    int code;   /* -1 unless END_EXITED */
    int signal; /* 0 unless END_SIGNALLED */
    int64_t ran_ms;
    int64_t user_ms;
    int64_t system_ms;
    int64_t max_rss_bytes; /* -1 unknown; so the three before */
    bool unfit; /* NEVER_LAUNCHED: its node is not what the program pins, whatever was seen alive */
    bool excused; /* likewise, and the program's next jobs keep off that node: no fault repeats */
    char detail[200];
};

struct executor_listener {
    void *ctx;
    /* Its shim may have begun, so its folder may have files from now on. Of an attempt that waits
     * in a queue no file is read before this: on a shared file system that would keep the
     * files from being seen later. At least once before its first sign of life; may be repeated. */
    void (*began)(void *ctx, const struct attempt_key *key);
    /* Exactly once for an attempt that was started or probed, and nothing after it. */
    void (*ended)(void *ctx, const struct attempt_key *key, const struct attempt_end *end);
    /* The answer to a probe that found no end. */
    void (*probed)(void *ctx, const struct attempt_key *key, enum core_health health);
    /* Whether it takes no more attempts for now. */
    void (*full)(void *ctx, enum executor_kind executor, bool full);
};

struct executor;

struct executor_ops {
    /* Fails without a callback, or is followed by `ended` eventually. */
    int (*start)(struct executor *x, const struct attempt_place *place, struct err *err);
    /* Is answered by `probed` or `ended`, also for an attempt of an earlier daemon. */
    void (*probe)(struct executor *x, const struct attempt_place *place);
    void (*terminate)(struct executor *x, const struct attempt_key *key);
    void (*kill)(struct executor *x, const struct attempt_key *key);
    /* How many attempts are to end and run on as long as this process does no more for it; NULL:
     * none, since terminate and kill act at once. */
    size_t (*ending)(const struct executor *x);
    /* Appends what it knows of an attempt, for people: `brief`, its state and reason ("PENDING,
     * Priority (...)"), which many attempts may share; else also node and job. False: nothing. */
    bool (*explain)(const struct executor *x, const struct attempt_key *key, bool brief,
                    struct strbuf *out);
    /* Stops watching; running attempts go on. */
    void (*close)(struct executor *x);
    void (*free)(struct executor *x); /* after the loop has run dry */
};

struct executor { /* embedded first in an implementation */
    const struct executor_ops *ops;
    struct executor_listener listener;
};

#endif
