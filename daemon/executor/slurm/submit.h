/*
 * From committed attempts to batches in the queue: rules 1, 5, 6, 10, 11 and 23. Private to the
 * pure part of this room.
 */
#ifndef DAEMON_EXECUTOR_SLURM_SUBMIT_H
#define DAEMON_EXECUTOR_SLURM_SUBMIT_H

#include "daemon/executor/slurm/records.h"

void submit_start(struct slurm_book *b, const struct slurm_event *ev);
void submit_tested(struct slurm_book *b, const struct slurm_event *ev);
void submit_answered(struct slurm_book *b, const struct slurm_event *ev);
/* When the next call is due: now_ms or earlier when one is; INT64_MAX: none. */
int64_t submit_due_ms(struct slurm_book *b);
/* Makes that call. Requires that one is due. */
void submit_call(struct slurm_book *b);
/* Reports room when nothing waits that could show it, or returns when to check again. */
int64_t submit_room_ms(struct slurm_book *b);

#endif
