/*
 * Determines from an attempt's folder whether it lives, and buries what died without an exit.json.
 * Blocking; runs off the loop.
 */
#ifndef DAEMON_EXECUTOR_POST_MORTEM_H
#define DAEMON_EXECUTOR_POST_MORTEM_H

#include "daemon/executor/executor.h"
#include "daemon/shim/fence.h"
#include "daemon/shim/files.h"
#include "daemon/shim/heartbeat.h"

enum examine_finding {
    FOUND_ENDED,     /* `end` holds; nothing of it is alive or can come alive */
    FOUND_ALIVE,     /* its shim holds the lock; `start` holds when has_start */
    FOUND_YOUNG,     /* no lock yet, but its shim was just spawned */
    FOUND_ELSEWHERE, /* its shim is, or may be, on another host: its heartbeat tells, no lock */
    FOUND_UNCLEAR,   /* cannot be determined now; `why` */
};

struct examination {
    enum examine_finding finding;
    struct attempt_end end;
    bool has_start;
    struct shim_start start;
    bool has_beat; /* of FOUND_ELSEWHERE */
    struct heartbeat beat;
    char why[256];
};

/* Only exit.json, without waiting for anything: true when it is there and whole. */
bool examine_exit(const char *folder, const char *id, struct attempt_end *end);

/* shim_lives: the caller knows that the shim's process has not ended, so nothing is fenced off.
 * used: the attempt's folder, or one of the same program, has been there once, so that a cells/
 * with nothing in it is a mount point without its disk. */
void examine_attempt(const struct fence *f, bool shim_lives, bool used, struct examination *out);

#endif
