/*
 * Effects: what the inputs of the table read, each with its value, interval, n and unit, and the
 * first error that stands between the data and an outcome. Members of verdict.json;
 * effect_lines.h makes text of them.
 */
#ifndef TRUTHTABLE_EVALUATE_EFFECTS_H
#define TRUTHTABLE_EVALUATE_EFFECTS_H

#include <cjson/cJSON.h>

#include "prereg/program/program.h"
#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evidence/task_coverage.h"

/* The elements of "effects", in the order in which the table's inputs read them, then what a
 * voiding validity that does not hold reads. A pooled figure is followed by the measures that it
 * is, or may be, pooled over. */
cJSON *effects_json(const struct table_evaluation *ev);

/* "first_error": {"task","what"}, `task` null where it is not one task's; null when there is none.
 * Over the exclusion budget: the first task that was lost; else the second run of an apparatus
 * check that voids, else the validity that does, else the first record that is undetermined. */
cJSON *effects_first_error(const struct table_evaluation *ev, const struct coverage *c,
                           const struct evidence *e);

/*
 * The unit that a measure's value and its differences are in. A program states none: a measure with
 * a chance level is a proportion, and what a bundled worker's metric counts is known by its name.
 */

/* Values and differences of this unit are printed as percentages and percentage points. */
#define UNIT_PROPORTION "proportion"

/* "proportion", "nats per token", "bits per byte", "steps", "perplexity"; NULL: a worker from
 * elsewhere decides. */
const char *measure_unit(const struct plan_program *p, const struct plan_measure *m);

#endif
