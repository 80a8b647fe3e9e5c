/* The sentence about a result of an apparatus check: written by the daemon into the journal, and
 * again by a verification, which holds the numbers of a result against it. */
#ifndef PREREG_TASK_APPARATUS_TEXT_H
#define PREREG_TASK_APPARATUS_TEXT_H

#include <stdbool.h>

#include "prereg/program/analysis.h"

#define APPARATUS_TEXT_SIZE 256

/* Of `a` the metric, the value and the tolerance are used. A value that is NaN was not measured:
 * then `why` ends the text, and `holds` is ignored. */
void apparatus_text(const struct plan_apparatus *a, double value, bool holds, const char *why,
                    char text[APPARATUS_TEXT_SIZE]);

#endif
