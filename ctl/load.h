/* Reading a program, and the lock beside it, for the commands that need no daemon. */
#ifndef CTL_LOAD_H
#define CTL_LOAD_H

#include "base/err.h"
#include "prereg/lock.h"
#include "prereg/program.h"

/* program_load() with its diagnostics printed to standard error. *out is NULL on error. */
int load_program(const char *path, struct program **out, struct err *err) MUST_CHECK;

/* The lock beside the program: *out is NULL when there is none. ERR_LOCK when it is not one, or
 * when the plan has changed since. */
int load_lock(const struct program *p, struct lock **out, struct err *err) MUST_CHECK;

#endif
