/*
 * WORK/ID/owner.json: which state folder has the cells of a program under [run] work. Two state
 * folders that ran the same program there would fence each other's attempts, so the second one is
 * refused.
 *
 * The file is claimed (base/files/claim.h), and belongs to the state of its "state_id". Host and
 * path say where that state was last served, for people, and tell a copy of the state folder from
 * the folder itself.
 */
#ifndef STATE_OWNERSHIP_WORK_OWNER_H
#define STATE_OWNERSHIP_WORK_OWNER_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/uuid.h"

struct work_owner {
    char id[UUID_TEXT_SIZE]; /* of the state folder */
    char host[256];
    char state[4096];           /* its path, absolute */
    char since[WALL_TEXT_SIZE]; /* when it was claimed, by its clock */
};

/* This state folder on this host; makes its id where it has none. */
int work_owner_init(struct work_owner *own, const char *state, struct err *err) MUST_CHECK;

/* Reads WORK/ID/owner.json. ERR_NOT_FOUND: it is not claimed, or it is not visible yet. */
int work_owner_read(const char *folder, struct work_owner *out, struct err *err) MUST_CHECK;

/* The three below: ERR_BUSY when it is another state's, or was claimed by a copy of this one; the
 * message names it and what to do. ERR_NOT_FOUND where the folder itself is not there. */

/* Whether `own` may claim it; claims nothing. An absent folder is free. `adopt`: also from a state
 * that a person says is gone, unless its folder is seen to be there. */
int work_owner_check(const char *folder, const struct work_owner *own, bool adopt,
                     struct err *err) MUST_CHECK;
/* Claims it for `own`: when the program is added, and when a daemon starts. */
int work_owner_claim(const char *folder, const struct work_owner *own, bool adopt,
                     struct err *err) MUST_CHECK;
/* Whether it is still as this daemon claimed it; claims it again where the file is gone. */
int work_owner_keep(const char *folder, const struct work_owner *own, struct err *err) MUST_CHECK;
/* Gives it up, once the cells are removed. Leaves that of another. */
void work_owner_release(const char *folder, const struct work_owner *own);

#endif
