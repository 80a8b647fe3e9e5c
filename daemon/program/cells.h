/*
 * Whether a program's cells are where it left them: cells/ may be on a disk of its own ([run]
 * work), and while that is not mounted nothing is known about its contents.
 */
#ifndef DAEMON_PROGRAM_CELLS_H
#define DAEMON_PROGRAM_CELLS_H

#include <stdbool.h>

#include "daemon/program/hosted.h"

/* ERR_NOT_FOUND when the folder is not there, or, with `used`, when none of the program's cells is
 * in it: so an unmounted disk leaves a mount point. ERR_IO when that cannot be determined.
 * Blocking. */
int cells_check(const struct hosted *h, bool used, struct err *err) MUST_CHECK;
/* `used` of a program that has an accepted result; on the loop. */
bool cells_are_used(const struct hosted *h);

#endif
