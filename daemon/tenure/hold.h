/*
 * Keeps this daemon's tenure: renews its heartbeat on the loop, and checks before every write that
 * no other daemon has taken over. One that has a successor learns it through `lost`, once, and
 * must not write any more: the caller ends the process there.
 */
#ifndef DAEMON_TENURE_HOLD_H
#define DAEMON_TENURE_HOLD_H

#include <uv.h>

#include "state/tenure/record.h"

struct tenure_hold;

struct tenure_hold *tenure_hold_create(uv_loop_t *loop, const char *state, const struct tenure *own,
                                       void (*lost)(void *ctx, const struct err *why), void *ctx);
/* Before a commit. 0: ours. ERR_IO: cannot be determined, so nothing may be written now. */
int tenure_hold_check(struct tenure_hold *h, struct err *err) MUST_CHECK;
/* Stops the heartbeat. */
void tenure_hold_close(struct tenure_hold *h);
/* After the last write, when the loop has run dry: says that this daemon has stopped. NULL is
 * fine. */
void tenure_hold_free(struct tenure_hold *h);

#endif
