/*
 * [notify] of serve.toml: a command of the user's own that is run at what a person should hear of,
 * with one JSON object on its standard input (docs/page.md).
 *
 * One command runs at a time, for at most NOTIFY_LIMIT_MS; up to NOTIFY_QUEUE_MAX wait, and what is
 * beyond is counted in the next one. Nothing waits for a command, and a failure is only logged.
 * No score, no worker's words and no reason that quotes one is in the object (invariant 8).
 */
#ifndef DAEMON_SHELL_NOTIFY_H
#define DAEMON_SHELL_NOTIFY_H

#include "daemon/shell/shell.h"

#define NOTIFY_LIMIT_MS  30000
#define NOTIFY_QUEUE_MAX 64

/* Does nothing without a command in sh->settings. */
void notify_open(struct shell *sh);
void notify_close(struct shell *sh); /* a command that runs goes on by itself */

/* After a row was committed and applied. */
void notify_row(struct shell *sh, const struct hosted *h, const struct state_row *r);
/* The daemon before this one ended without being told to. */
void notify_crashed(struct shell *sh);

#endif
