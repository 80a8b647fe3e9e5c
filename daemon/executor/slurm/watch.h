/*
 * Asking the queue, and what its answers mean for each attempt: rules 2, 7, 13, 15, 16 and 18.
 * Private to the pure part of this room.
 */
#ifndef DAEMON_EXECUTOR_SLURM_WATCH_H
#define DAEMON_EXECUTOR_SLURM_WATCH_H

#include "daemon/executor/slurm/records.h"

int64_t watch_due_ms(const struct slurm_book *b); /* of the next question; INT64_MAX: none */
void watch_call(struct slurm_book *b);
void watch_answered(struct slurm_book *b, const struct slurm_event *ev);

int64_t watch_accounting_due_ms(const struct slurm_book *b);
void watch_accounting_call(struct slurm_book *b);
void watch_accounted(struct slurm_book *b, const struct slurm_event *ev);

#endif
