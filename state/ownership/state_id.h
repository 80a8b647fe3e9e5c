/*
 * STATE/state-id: the identity of a state folder, a UUID that is made once, by the first daemon,
 * and never changes: not by a restart, another host, `rebuild` or a move of the folder. A copy of
 * the folder has it, too.
 */
#ifndef STATE_OWNERSHIP_STATE_ID_H
#define STATE_OWNERSHIP_STATE_ID_H

#include "base/err.h"
#include "base/uuid.h"

/* ERR_NOT_FOUND: it has none (yet), or is not visible here. ERR_CORRUPT: not a UUID on one line. */
int state_id_read(const char *state, char id[UUID_TEXT_SIZE], struct err *err) MUST_CHECK;
/* Reads it, or makes it. For the daemon that serves the folder. */
int state_id_have(const char *state, char id[UUID_TEXT_SIZE], struct err *err) MUST_CHECK;

#endif
