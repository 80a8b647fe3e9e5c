/* Appends acts to a step's `out`, and ends attempts. Private to the pure part of this room. */
#ifndef DAEMON_EXECUTOR_SLURM_ACTS_H
#define DAEMON_EXECUTOR_SLURM_ACTS_H

#include "daemon/executor/slurm/records.h"

struct slurm_act *acts_add(struct slurm_book *b, enum slurm_act_kind kind);
void acts_note(struct slurm_book *b, const char *text); /* of the arena of `out` */
void acts_begun(struct slurm_book *b, uint32_t slot);   /* once for each attempt */
/* The batch's files are not needed any more; once for each. */
void acts_forget(struct slurm_book *b, uint32_t batch);
/* Ends an attempt as its exit.json says. */
void acts_end(struct slurm_book *b, uint32_t slot, const struct attempt_end *end);
/* Ends one that has no exit.json: its job must not run any more. */
void acts_end_without(struct slurm_book *b, uint32_t slot, enum end_reason reason,
                      const char *detail);

#endif
