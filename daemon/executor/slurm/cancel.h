/*
 * Ending jobs: an id is cancelled only out of an answer that has just shown it under our name (rule
 * 2), one name a call. Private to the pure part of this room.
 */
#ifndef DAEMON_EXECUTOR_SLURM_CANCEL_H
#define DAEMON_EXECUTOR_SLURM_CANCEL_H

#include "daemon/executor/slurm/records.h"

/* Collects the jobs of an answer that must end. Attempts have their best rows marked. */
void cancel_find(struct slurm_book *b, const struct slurm_rows *rows);
int64_t cancel_due_ms(struct slurm_book *b);
void cancel_call(struct slurm_book *b);
void cancel_answered(struct slurm_book *b);
void cancel_release(struct slurm_book *b);

#endif
