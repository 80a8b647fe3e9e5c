/* The sentence about a result of an apparatus check: written by the daemon into the journal, and
 * again by a verification, which holds the numbers of a result against it. Whether a result holds
 * is decided here, for both. */
#ifndef PREREG_TASK_APPARATUS_TEXT_H
#define PREREG_TASK_APPARATUS_TEXT_H

#include <stdbool.h>

#include "prereg/program/analysis.h"

#define APPARATUS_TEXT_SIZE 256

/* What a check measured. */
struct apparatus_score {
    double value;    /* NaN: it was not measured, then `why` is the worker's reason */
    double first;    /* of a second run: what the first one measured; else NaN */
    const char *why; /* or NULL */
};

/* Whether the score is within `within` of the expected one, and, of a second run, within `again`
 * of the first score; up to `rounding`, relative, since decimals are not exact. */
bool apparatus_score_holds(const struct plan_apparatus *a, const struct apparatus_score *score,
                           double rounding);

/* Of `a` the metric, the value and the tolerances are used. `holds` is ignored where nothing was
 * measured. */
void apparatus_text(const struct plan_apparatus *a, const struct apparatus_score *score, bool holds,
                    char text[APPARATUS_TEXT_SIZE]);

#endif
