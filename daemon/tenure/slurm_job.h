/* Asks squeue, then sacct, whether a job of Slurm has ended. Blocking, each with a watchdog. */
#ifndef DAEMON_TENURE_SLURM_JOB_H
#define DAEMON_TENURE_SLURM_JOB_H

#include "state/tenure/judge.h"

/* The job of this process, by its environment: job, cluster and job_name; job_submitted is asked of
 * squeue and stays "" where that cannot be (then Slurm will prove nothing about this daemon). */
void slurm_job_of_self(struct tenure *t);
/* Fills e->job and e->job_state. An id alone proves nothing, since Slurm may give it to another
 * job: name and submit time must be those of the tenure. "Cannot ask" and "absent" prove
 * nothing. */
void slurm_job_ask(const struct tenure *holder, struct tenure_evidence *e);
/* One line "id|name|submitted|state" of an answer, judged; false when it is of another job. */
bool slurm_job_line(const struct tenure *holder, const char *line, struct tenure_evidence *e);

#endif
