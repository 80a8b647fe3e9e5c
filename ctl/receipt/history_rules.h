/* What a row must agree with beyond its own form, in what the rows before it say; private to
 * history. Rows that were made from files after the daemon's own were lost came in no order of
 * their own: of those only the times are held. */
#ifndef CTL_RECEIPT_HISTORY_RULES_H
#define CTL_RECEIPT_HISTORY_RULES_H

#include "ctl/receipt/history.h"

/* Of an attempt, a check of the apparatus or not: it started neither before the lock nor, when it
 * ended, at another time than it had. `started` is the attempt as it started; NULL: it does now. */
int history_check_attempt(const struct history *h, struct wall_time locked,
                          const struct state_row *row, const struct attempt_row *started,
                          struct fault *f) MUST_CHECK;
/* That an attempt started: who could have looked at what, and when the first was. */
void history_note_start(struct history *h, const struct state_row *row);

/* Of a row of the program: only the row that says so opens, unblinds, concludes or reports; scores
 * open when no counted task is left; an amendment claims no less access than there was. */
int history_check_program(const struct history *h, const struct state_row *row,
                          struct fault *f) MUST_CHECK;

#endif
