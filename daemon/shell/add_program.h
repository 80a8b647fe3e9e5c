/* Adding a program to the shell and its core. */
#ifndef DAEMON_SHELL_ADD_PROGRAM_H
#define DAEMON_SHELL_ADD_PROGRAM_H

#include "daemon/shell/shell.h"

/* Adds a program of the store to the core, fresh or recovered. Owns h from here on, also on
 * failure. */
int shell_add_program(struct shell *sh, struct hosted *h, const struct store_program *row,
                      struct err *err) MUST_CHECK;

/* Gives the core another [run] and journals it. */
int shell_change_run(struct shell *sh, struct hosted *h, const struct plan_program *p,
                     struct err *err) MUST_CHECK;

#endif
