/* Checks of a row against the rows before it, beyond its own form; private to history. A journal
 * that was rebuilt from files has no order of its own: of such rows only the times are checked. */
#ifndef CTL_RECEIPT_HISTORY_RULES_H
#define CTL_RECEIPT_HISTORY_RULES_H

#include "ctl/receipt/history.h"

/* Checks the times of an attempt, of a task or of an apparatus check: it started neither before
 * the lock nor, when it ends, at another time than it had. `started` is the attempt as it
 * started; NULL: it does now. */
int history_check_attempt(const struct history *h, struct wall_time locked,
                          const struct state_row *row, const struct attempt_row *started,
                          struct err *err) MUST_CHECK;
/* Notes that an attempt started: it raises the level of access, and may be the first. */
void history_note_start(struct history *h, const struct state_row *row);

/* Checks a row of the program: only the row for it opens, unblinds, concludes or reports; scores
 * open when no counted task is left; an amendment claims no less access than there was. */
int history_check_program(const struct history *h, const struct state_row *row,
                          struct err *err) MUST_CHECK;

#endif
