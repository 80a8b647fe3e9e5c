/* The composition of the daemon. */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

#include <stdbool.h>

#include "base/err.h"
#include "daemon/rpc/loopback.h"

struct serve_options {
    const char *state;    /* absolute; created when absent */
    const char *database; /* a local folder for a state folder that hosts share; NULL: not said */
    const struct loopback_address
        *http;      /* the live page is on, there; NULL: as serve.toml has it */
    bool take_over; /* a person wants it, though the last daemon is not provably gone */
    bool (*confirm)(const char *question); /* asks that person; or NULL */
};

/* Serves the state folder until a signal or a request stops it: commits what waits, leaves shims
 * and workers alone, and lets the loop run dry. Blocks. A daemon that is succeeded ends the
 * process at once with EXIT_MOVED, without another write. */
int serve_state(const struct serve_options *options, struct err *err) MUST_CHECK;

#endif
