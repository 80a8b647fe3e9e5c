/* What the files of the book ask of each other. Private to the pure part of this room. */
#ifndef DAEMON_EXECUTOR_SLURM_BOOK_PARTS_H
#define DAEMON_EXECUTOR_SLURM_BOOK_PARTS_H

#include "daemon/executor/slurm/records.h"

/* ---- submit ---- */

/* From committed attempts to batches in the queue: rules 1, 5, 6, 10, 11 and 23 (submit.c). */

void submit_start(struct slurm_book *b, const struct slurm_event *ev);
void submit_tested(struct slurm_book *b, const struct slurm_event *ev);
void submit_answered(struct slurm_book *b, const struct slurm_event *ev);
/* When the next call is due: now_ms or earlier when one is; INT64_MAX: none. */
int64_t submit_due_ms(struct slurm_book *b);
/* Makes that call. Requires that one is due. */
void submit_call(struct slurm_book *b);
/* Reports room when nothing waits that could show it, or returns when to check again. */
int64_t submit_room_ms(struct slurm_book *b);

/* ---- watch ---- */

/* Asking the queue, and what its answers mean for each attempt: rules 2, 7, 13, 15, 16 and 18
 * (watch.c). */

int64_t watch_due_ms(const struct slurm_book *b); /* of the next question; INT64_MAX: none */
void watch_call(struct slurm_book *b);
void watch_answered(struct slurm_book *b, const struct slurm_event *ev);

int64_t watch_accounting_due_ms(const struct slurm_book *b);
void watch_accounting_call(struct slurm_book *b);
void watch_accounted(struct slurm_book *b, const struct slurm_event *ev);

/* ---- cancel ---- */

/* Ending jobs: an id is cancelled only out of an answer that has just shown it under our name (rule
 * 2), one name a call (cancel.c). */

/* Collects the jobs of an answer that must end. Attempts have their best rows marked. */
void cancel_find(struct slurm_book *b, const struct slurm_rows *rows);
int64_t cancel_due_ms(struct slurm_book *b);
void cancel_call(struct slurm_book *b);
void cancel_answered(struct slurm_book *b);
void cancel_release(struct slurm_book *b);

/* ---- settle ---- */

/* From what the files say, or keep silent about, to the end of an attempt: rules 12 and 16 to 20
 * (settle.c). */

/* The queue does not show it alive any more. over: it says so itself, else it is absent. */
void settle_gone(struct slurm_book *b, uint32_t slot, bool over);
/* The batch was accepted for sure: the queue has shown it, or one of its jobs has run. */
void settle_accepted(struct slurm_book *b, uint32_t batch);
void settle_files(struct slurm_book *b, const struct slurm_event *ev);
/* Looks at everything that may have files: once a round. ok: the queue has answered. */
void settle_round(struct slurm_book *b, bool ok);
/* Whether it is known to be alive at now_ms. */
bool settle_is_alive(const struct slurm_book *b, const struct attempt_record *a);

/* ---- acts ---- */

/* Appends acts to a step's `out`, and ends attempts (acts.c). */

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
/* Ends one that its node has not begun: END_NEVER_LAUNCHED, and excused if that node is excluded.
 */
void acts_end_unfit(struct slurm_book *b, uint32_t slot, bool excluded, const char *detail);

#endif
