/*
 * Ends the container of a worker that `try` or `rerun` runs. podman does not take its container
 * with it when it is killed, and it is killed when this process is: so another process waits for
 * the end of both, and has podman remove the container.
 */
#ifndef CTL_CONTAINER_GUARD_H
#define CTL_CONTAINER_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct container_guard {
    int fd;    /* closed by the end of this process, too; -1: without a container */
    pid_t pid; /* of the process that waits */
};

/* Guards the container of that name, which need not exist yet; NULL: the worker has none. */
int container_guard_open(struct container_guard *g, const char *name, struct err *err) MUST_CHECK;

/* Ends the guard when podman has ended: by itself, so that its container is gone, or not. Returns
 * when all processes of the container have ended, with the memory of the largest one; 0: not
 * known. */
double container_guard_close(struct container_guard *g, bool by_itself);

#endif
