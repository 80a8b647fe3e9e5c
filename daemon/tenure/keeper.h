/*
 * Keeps this daemon's tenure: renews its heartbeat on the loop, and checks before every write that
 * no other daemon has taken over. One that has a successor learns it through `lost`, once, and
 * must not write any more: the caller ends the process there.
 */
#ifndef DAEMON_TENURE_KEEPER_H
#define DAEMON_TENURE_KEEPER_H

#include <uv.h>

#include "state/tenure/record.h"

struct keeper;

struct keeper *keeper_create(uv_loop_t *loop, const char *state, const struct tenure *own,
                             void (*lost)(void *ctx, const struct err *why), void *ctx);
/* Before a commit. 0: ours. ERR_IO: cannot be determined, so nothing may be written now. */
int keeper_check(struct keeper *k, struct err *err) MUST_CHECK;
/* Stops the heartbeat. */
void keeper_close(struct keeper *k);
/* After the last write, when the loop has run dry: says that this daemon has stopped. NULL is
 * fine. */
void keeper_free(struct keeper *k);

#endif
