/* Reading a program for the commands that need no daemon: diagnostics go to standard error, or into
 * the JSON answer. */
#ifndef CTL_LOAD_H
#define CTL_LOAD_H

#include <cjson/cJSON.h>

#include "base/diag.h"
#include "base/err.h"
#include "prereg/lock.h"
#include "prereg/program.h"

/* program_load() with its diagnostics printed to standard error unless `quiet`. *out is NULL on
 * error. */
int load_program(const char *path, bool quiet, struct diag *diag, struct program **out,
                 struct err *err) MUST_CHECK;

/* [{"level","line","column","message"}…] */
cJSON *load_diag_json(const struct diag *diag);

/* The lock beside the program: *out is NULL when there is none. ERR_LOCK when it is not one, or
 * when the plan has changed since. */
int load_lock(const struct program *p, struct lock **out, struct err *err) MUST_CHECK;

#endif
