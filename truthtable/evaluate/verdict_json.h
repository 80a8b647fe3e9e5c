/* The parts of verdict.json; private to the verdict. Every function hands out a new value. */
#ifndef TRUTHTABLE_EVALUATE_VERDICT_JSON_H
#define TRUTHTABLE_EVALUATE_VERDICT_JSON_H

#include <cjson/cJSON.h>

#include "truthtable/evaluate/evaluation.h"
#include "truthtable/evidence/task_coverage.h"

/* Pairs of conditions are left out, and counted, above this many entries. */
#define PAIRS_MAX 4096

/* A point as a number; anything else as null, with what is known of a range under "<key>_bounds".
 */
void verdict_json_put_value(cJSON *obj, const char *key, const struct number *x);
/* The members "inputs", "counters", "contrasts", "pairs" and "coverage". */
cJSON *verdict_json_inputs(const struct table_evaluation *ev);
cJSON *verdict_json_counters(const struct table_evaluation *ev);
cJSON *verdict_json_contrasts(const struct table_evaluation *ev);
cJSON *verdict_json_pairs(const struct table_evaluation *ev);
cJSON *verdict_json_coverage(const struct coverage *c);
/* Validity conditions that rest on timings, or those that do not. */
cJSON *verdict_json_validity(const struct table_evaluation *ev, bool timing);
/* Sentences a reader should not miss: items taken from the plan, counters that disagree. */
cJSON *verdict_json_notes(const struct table_evaluation *ev, const struct coverage *c);

#endif
