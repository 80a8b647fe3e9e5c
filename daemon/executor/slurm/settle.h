/*
 * From what the files say, or keep silent about, to the end of an attempt: rules 12 and 16 to 20.
 * Private to the pure part of this room.
 */
#ifndef DAEMON_EXECUTOR_SLURM_SETTLE_H
#define DAEMON_EXECUTOR_SLURM_SETTLE_H

#include "daemon/executor/slurm/records.h"

/* The queue does not show it alive any more. over: it says so itself, else it is absent. */
void settle_gone(struct slurm_book *b, uint32_t slot, bool over);
/* The batch was accepted for sure: the queue has shown it, or one of its jobs has run. */
void settle_accepted(struct slurm_book *b, uint32_t batch);
void settle_files(struct slurm_book *b, const struct slurm_event *ev);
/* Looks at everything that may have files: once a round. ok: the queue has answered. */
void settle_round(struct slurm_book *b, bool ok);
/* Whether it is known to be alive at now_ms. */
bool settle_is_alive(const struct slurm_book *b, const struct attempt_record *a);

#endif
