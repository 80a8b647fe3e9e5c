/*
 * Which commands of programs this user has allowed to run: a stranger's program is data until the
 * user agrees, and `--describe`, `try` and `submit` execute what it names.
 *
 * A command is identified by one digest over its words, the stage's env and the bytes of the files
 * that it names; STATE/known-commands holds these, a line each. A worker that was installed with
 * this executable, without arguments and env, is always allowed.
 */
#ifndef PREREG_LOCK_TRUST_H
#define PREREG_LOCK_TRUST_H

#include <stdbool.h>

#include "base/err.h"
#include "prereg/program/program.h"

#define TRUST_VARIABLE "PREREGD_RUN" /* "1": as --run, for scripts */

struct trust_ask {
    const char *state; /* the state folder; NULL: there is none, nothing is known or remembered */
    bool run;          /* --run: do not ask */
    bool all;          /* the stages themselves are executed, also those with describe = false */
    bool quiet;        /* refuse instead of asking */
};

/* 0 when every command that --describe (with `all`: try and submit) would execute may run; new ones
 * are then in the list. Asks on the terminal; ERR_REFUSED where there is none, or where the answer
 * is not yes. */
int trust_commands(const struct trust_ask *ask, const struct plan_program *p,
                   struct err *err) MUST_CHECK;

#endif
