/* The composition of the daemon. */
#ifndef DAEMON_SERVE_H
#define DAEMON_SERVE_H

#include "base/err.h"

/* Serves the state folder until a signal or a request stops it: commits what waits, leaves shims
 * and workers alone, and lets the loop run dry. Blocks. state: a path, created when absent. */
int serve_state(const char *state, struct err *err) MUST_CHECK;

#endif
