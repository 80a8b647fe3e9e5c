/*
 * The unit that a measure's value and its differences are in. A program states none: a measure with
 * a chance level is a proportion, and what a bundled worker's metric counts is known by its name.
 */
#ifndef TRUTHTABLE_EVALUATE_MEASURE_UNIT_H
#define TRUTHTABLE_EVALUATE_MEASURE_UNIT_H

#include "prereg/program/program.h"

/* Values and differences of this unit are printed as percentages and percentage points. */
#define UNIT_PROPORTION "proportion"

/* "proportion", "nats per token", "bits per byte", "steps", "perplexity"; NULL: a worker from
 * elsewhere decides. */
const char *measure_unit(const struct plan_program *p, const struct plan_measure *m);

#endif
