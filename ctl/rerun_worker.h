/*
 * Running one worker to its end for `preregctl rerun` and `try`: in its folder, with the
 * environment given and nothing else, its output in stdout.log and stderr.log.
 *
 * SIGINT, SIGTERM and SIGHUP, but for those that are ignored (nohup), are held while a guard is
 * open: the worker gets SIGTERM, is killed after the grace time or at the next signal, and the
 * caller can clean up. A worker dies with this process when that is killed, and so does its
 * container.
 */
#ifndef CTL_RERUN_WORKER_H
#define CTL_RERUN_WORKER_H

#include <signal.h>

#include "base/json/json.h"

struct rerun_guard {
    int fd; /* signalfd; -1 closed */
    sigset_t before;
};

/* Holds the signals until rerun_guard_close(). */
int rerun_guard_open(struct rerun_guard *g, struct err *err) MUST_CHECK;
void rerun_guard_close(struct rerun_guard *g); /* signals that came meanwhile are dropped */
/* ERR_REFUSED when a signal has come. */
int rerun_guard_check(const struct rerun_guard *g, struct err *err) MUST_CHECK;

/* How it ended. */
struct rerun_ended {
    int code;          /* exit code; -1: none */
    double seconds;    /* from its start to its end */
    double peak_bytes; /* of memory, of the largest process of it */
};

/* What to run; everything is borrowed. */
struct rerun_worker {
    const char *name;  /* for messages */
    const char *exec;  /* absolute */
    char *const *argv; /* NULL-terminated, as env: "NAME=value" */
    char *const *env;
    const char *folder;        /* absolute */
    const char *container;     /* the name of its container, or NULL: it has none */
    struct rerun_ended *ended; /* or NULL */
};

/* Writes what a worker finds in its folder when it starts: task.json, and events.jsonl, empty. */
int rerun_worker_prepare(const char *folder, const cJSON *task, struct err *err) MUST_CHECK;
/* Runs the worker. 0 when it exited with code 0. ERR_REFUSED: it was stopped by a signal to us;
 * ERR_OTHER: it ended otherwise, which the message describes with the last line of its stderr. */
int rerun_worker_run(const struct rerun_guard *g, const struct rerun_worker *w,
                     struct err *err) MUST_CHECK;

#endif
