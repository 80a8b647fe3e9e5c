/*
 * FOLDER/unfit: the shim of a cluster's job has begun nothing, because its node is not what the
 * program pins. Written whole, by rename, before the shim ends. The attempt never ran, whatever the
 * cluster's queue has shown of its job.
 */
#ifndef DAEMON_SHIM_UNFIT_H
#define DAEMON_SHIM_UNFIT_H

#include <stdbool.h>

#include "base/err.h"

struct unfit {
    char node[128]; /* as the cluster calls it; "" where it does not say */
    char has[160];  /* "NVIDIA T4", "no GPU" */
};

int unfit_write(const char *folder, const struct unfit *u, struct err *err) MUST_CHECK;
/* The name of this job's node, and what it has. */
void unfit_fill(struct unfit *u, const char *has);
/* False: it is not there, or cannot be read now. The caller has listed the folder. */
bool unfit_read(const char *folder, struct unfit *out);

#endif
