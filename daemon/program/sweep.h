/*
 * Removes what dead attempts and dead writers left on the disk: temporary files of atomic writes,
 * and all checkpoints of a task but the newest. Errors are logged and stop nothing.
 */
#ifndef DAEMON_PROGRAM_SWEEP_H
#define DAEMON_PROGRAM_SWEEP_H

#include <stddef.h>

/* Of the earlier attempts of one task, none of which is alive, newest first: keeps the two newest
 * checkpoints that have their manifest (a torn one looks whole until it is read), removes the
 * older ones and temporary files. Checkpoints of other forms are left alone. */
void sweep_attempts(char *const *folders, size_t n);

/* Temporary files in STATE and the folders of its programs, when the daemon starts; cells/ is left
 * to sweep_attempts(). */
void sweep_state(const char *state);

#endif
