/* Finding a program, its lock and the state folder, for the commands that need no daemon. */
#ifndef CTL_LOAD_H
#define CTL_LOAD_H

#include "base/err.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* program_load() with its diagnostics printed to standard error. *out is NULL on error. */
int load_program(const char *path, struct plan_program **out, struct err *err) MUST_CHECK;

/* The lock beside the program: *out is NULL when there is none. ERR_LOCK when it is not one, or
 * when the plan has changed since. */
int load_lock(const struct plan_program *p, struct lock **out, struct err *err) MUST_CHECK;

/* The state folder: the one that was named, NULL: the user's own. */
int load_state_folder(const char *named, char **out, struct err *err) MUST_CHECK;

#endif
