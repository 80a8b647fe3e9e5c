/*
 * The shim as a cluster's job, on a node that shares the attempt's folder with the daemon and
 * nothing else. What to run is the file LAYOUT_SPEC there; a heartbeat proves life, since a lock
 * proves nothing between hosts; and LAYOUT_CURRENT fences: a shim whose attempt was superseded
 * kills its worker and publishes nothing.
 *
 * It calls no command of the cluster: nodes may lack them.
 */
#ifndef DAEMON_SHIM_CLUSTER_H
#define DAEMON_SHIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "daemon/shim/files.h"
#include "daemon/shim/heartbeat.h"

#define CLUSTER_VERB "--slurm"

struct cluster_job {
    const char *folder; /* absolute */
    struct heartbeat beat;
    int64_t due_ms; /* mono: of the next heartbeat */
    bool superseded;
};

/* Refuses with ERR_REFUSED what must not run: an attempt that is not the current one, or a job that
 * its site has put back into the queue after it began here (then LAYOUT_REFUSED is left for the
 * daemon). *spec_fd is a copy of the spec in memory, by the name that marks the worker's tree. The
 * working directory is the folder. Without a heartbeat (cluster_tick), what is refused afterwards
 * counts as a job that has not begun, unless the queue showed it running meanwhile: then it was
 * lost with its host. */
int cluster_open(struct cluster_job *c, const char *folder, int *spec_fd,
                 struct err *err) MUST_CHECK;

/* The same for a shim that its daemon started, where hosts share the state folder: the heartbeat
 * and the fence, without a job and with the spec that it has. */
int cluster_share(struct cluster_job *c, const char *folder, struct err *err) MUST_CHECK;

/* Adds what the worker gets of the job's own environment: what names its GPUs and its job, and,
 * where lines of setup made it, everything that `spec` does not set. */
void cluster_environment(struct shim_spec *spec, char *const *environment);

/* Often, while the worker runs: writes the heartbeat when it is due. False: the attempt was
 * superseded, so its worker is to be killed. */
bool cluster_tick(void *cluster);

/* Before exit.json: ERR_REFUSED when the attempt was superseded. */
int cluster_may_publish(struct cluster_job *c, struct err *err) MUST_CHECK;

#endif
