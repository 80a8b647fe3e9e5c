/*
 * Pairs of cells that the plan says are one work ([[same_work]], prereg/program/same_work.h). Their
 * difference is 0 by construction, whatever comes out: it was not measured, so it has no error and
 * no interval, and does not count as a replicate's.
 */
#ifndef TRUTHTABLE_CONDITION_EQUAL_PAIRS_H
#define TRUTHTABLE_CONDITION_EQUAL_PAIRS_H

#include <stdbool.h>

#include "truthtable/condition/cell_layout.h"

#define EQUAL_WHY "equal by construction: the two are one work under two names ([[same_work]])"

/* Which pair of a contrast, in which measure. */
struct pair_at {
    size_t contrast;
    size_t measure;
    size_t setting;
    size_t replicate;
};

/* Of a difference of contrasts: when its four cells cancel in twos. */
bool pair_is_equal(const struct plan_program *p, const struct layout *l, const struct pair_at *at);
/* Whether all pairs of the contrast are, in this measure. False without [[same_work]]. */
bool contrast_is_equal(const struct plan_program *p, const struct layout *l, size_t contrast,
                       size_t measure);
/* Whether two conditions are one work in this measure. */
bool conditions_are_equal(const struct plan_program *p, size_t measure, size_t a, size_t b);

#endif
