/* Results of apparatus checks in the folders of their attempts, apparatus/NAME: what they measured,
 * whether that holds, and all of a check in order. Reads files alone, so that the daemon and
 * preregctl say the same. */
#ifndef PREREG_TASK_APPARATUS_RESULTS_H
#define PREREG_TASK_APPARATUS_RESULTS_H

#include <cjson/cJSON.h>

#include "prereg/lock/lock.h"
#include "prereg/task/apparatus_text.h"

/* What a result has of the check's metric; NaN: nothing. */
double apparatus_value(const struct plan_apparatus *a, const cJSON *result);
/* Whether a result holds; `text` says what was expected and what was measured. first: of a second
 * run, what the first one measured; else NaN. *value is NaN when nothing was measured. Only the
 * metric, the value and the tolerances of `a` are used. */
bool apparatus_judged(const struct plan_apparatus *a, double first, const cJSON *result,
                      double *value, char text[APPARATUS_TEXT_SIZE]);
/* What the first run measured, by the result linked in its folder, which is beside that of the
 * second run; NaN where there is none. */
double apparatus_shown_first(const struct plan_apparatus *a, const char *second_folder);
/* Every result that the attempts in a check's folder left, in order, whatever was asked of them
 * (docs/apparatus.md). */
cJSON *apparatus_results(const struct lock *lock, const char *name, const char *folder);

#endif
