/* The GPUs that a cluster has given to the job of a shim: only the node can say which they are. */
#ifndef DAEMON_SHIM_JOB_GPUS_H
#define DAEMON_SHIM_JOB_GPUS_H

#include "daemon/shim/files.h"

/* Where spec->asks_gpus: asks prereg-gpus, which is beside the shim, for those that the job's
 * environment leaves visible, and puts them into spec->gpus for start.json. ERR_REFUSED when one is
 * not of the model that spec->pin_gpu locks, or that cannot be known: *notes has what the node has
 * instead ("NVIDIA T4"). Without a pinned model what cannot be known is left out, and said in
 * *notes. */
int job_gpus_find(struct shim_spec *spec, struct strbuf *notes, struct err *err) MUST_CHECK;

#endif
