/*
 * One cgroup (version 2) per attempt, where a part of the hierarchy was delegated to this daemon.
 * Every process that a worker starts is born in it and cannot leave by closing, clearing or
 * executing anything; all of them are killed in one step that no fork can outrun.
 *
 * The daemon finds the base at its start; the shim makes <base>/prereg-<attempt>, forks the worker
 * into it and removes it after the last process; the daemon ends and removes what a dead shim left.
 * No controller is enabled. A machine without delegation, or a step that fails, is not an error:
 * the marks of mark.h remain.
 */
#ifndef DAEMON_SHIM_GROUP_H
#define DAEMON_SHIM_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The cgroup of this process in *base (heap), where groups may be made below it. Delegated means:
 * writable, and for root, who may write anywhere, that systemd says so (Delegate=) or does not run
 * here. ERR_NOT_FOUND says why there is none. */
int group_find_base(char **base, struct err *err) MUST_CHECK;

/* <base>/prereg-<attempt>, on the heap. */
char *group_path(const char *base, const char *attempt);
/* Whether path is a folder of a cgroup file system with the name of this attempt's group: a
 * path from a file that workers can write is not trusted without this. */
bool group_is_of(const char *path, const char *attempt);

/* Makes the group; *fd is its folder, for CLONE_INTO_CGROUP. */
int group_make(const char *path, int *fd, struct err *err) MUST_CHECK;
/* SIGKILL to every process in it and in the groups below it. */
void group_kill(const char *path);
/* Removes it once nothing is alive in it; true when it is not there any more. */
bool group_remove(const char *path);
/* Removes the groups of attempts directly below base that are empty and older than a minute (a
 * younger one may be about to be used). Only this removes them where daemon and shim were killed
 * and the state folder was deleted. Returns how many it removed. */
size_t group_sweep(const char *base);

#endif
