/*
 * Runs one of Slurm's commands from the loop, with a watchdog: a client may hang for as long as its
 * controller does. What it prints is kept up to a bound; more than that is an answer that was cut.
 */
#ifndef DAEMON_EXECUTOR_SLURM_CLIENT_H
#define DAEMON_EXECUTOR_SLURM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/strbuf.h"

struct slurm_reply {
    bool whole;   /* it ran to its end, within its time, and all it printed is here */
    bool missing; /* it is not installed, or may not be run */
    int code;     /* its exit status; -1: not started, or ended by a signal */
    const struct strbuf *out;
    const struct strbuf *err; /* when it could not be started: why */
};

typedef void slurm_reply_fn(void *ctx, const struct slurm_reply *reply);

struct slurm_call;

struct slurm_command { /* read before slurm_call_start() returns */
    char *const *argv; /* ends with NULL; so does environment */
    char *const *environment;
    const char *input; /* its standard input; NULL: nothing */
};

/* `done` comes exactly once on the loop, never from inside this call; unless it is given up. */
struct slurm_call *slurm_call_start(uv_loop_t *loop, const struct slurm_command *command,
                                    slurm_reply_fn *done, void *ctx)
    __attribute__((returns_nonnull));
/* Kills the command; `done` does not come. */
void slurm_call_give_up(struct slurm_call *call);

#endif
