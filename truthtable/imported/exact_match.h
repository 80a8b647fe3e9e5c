/* Upstream's exact_match, for the rules that are known here. */
#ifndef TRUTHTABLE_IMPORTED_EXACT_MATCH_H
#define TRUTHTABLE_IMPORTED_EXACT_MATCH_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* The metric's entry in the task's "metric_list" says which rules apply. False when it is not
 * there, or names a rule (a regular expression, lower case beyond ASCII) that is not known; then
 * *right says nothing. */
bool exact_match(const cJSON *config, const char *answer, const char *target, bool *right);

#endif
