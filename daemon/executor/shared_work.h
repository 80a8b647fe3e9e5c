/*
 * What a program shares with the other machines that run its attempts: the folder that its real
 * cells/ is in, WORK/ID of [run] work, or its own folder in the state. Beside cells/ it holds jobs/
 * (scripts and lists of a cluster's jobs) and objects/ (copies of the workers, since the state
 * folder may be on a disk of the daemon's alone).
 */
#ifndef DAEMON_EXECUTOR_SHARED_WORK_H
#define DAEMON_EXECUTOR_SHARED_WORK_H

#include "base/err.h"
#include "prereg/lock/pin.h"

/* program_folder: STATE/programs/ID. Blocking; for free(). */
char *shared_work_folder(const char *program_folder) __attribute__((returns_nonnull));
/* The folder WORK/ID of [run] work that a program's cells/ leads to, which one state folder alone
 * may have (state/ownership/work_owner.h). NULL: its cells are in its own folder, or a person has
 * put them elsewhere. Not resolved where the disk is not there. For free(). */
char *shared_work_owned(const char *program_folder);
/* The path without links, as other machines see it; a copy when it does not exist. */
char *shared_work_path(const char *path) __attribute__((returns_nonnull));

/* Copies each argument that is an object of the state folder into `work`'s objects and names the
 * copy in its place. A copy is read again unless `cache` knows it. */
int shared_work_objects(const char *state, const char *work, struct pin_cache *cache, char **argv,
                        struct err *err) MUST_CHECK;

#endif
