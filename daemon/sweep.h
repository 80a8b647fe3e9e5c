/*
 * What dead attempts and dead writers leave on the disk and nothing reads any more: temporary files
 * of atomic writes, and all checkpoints but the newest of a task. Errors are logged and end
 * nothing.
 */
#ifndef DAEMON_SWEEP_H
#define DAEMON_SWEEP_H

#include <stddef.h>

/* Of the earlier attempts of one task, none of which is alive, newest first: keeps the two newest
 * checkpoints that have their manifest (a torn one passes for whole until it is read), removes the
 * older ones and temporary files. Checkpoints of other forms are left alone. */
void sweep_attempts(char *const *folders, size_t n);

/* Temporary files in STATE and the folders of its programs, when the daemon starts; cells/ is left
 * to sweep_attempts(). */
void sweep_state(const char *state);

#endif
