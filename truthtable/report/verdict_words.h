/* The verdict in plain words: sentences and short texts that several sections share. */
#ifndef TRUTHTABLE_REPORT_VERDICT_WORDS_H
#define TRUTHTABLE_REPORT_VERDICT_WORDS_H

#include "truthtable/report/report_model.h"

bool words_history_is_unverified(const struct report_model *m);
const char *words_assurance(const struct report_model *m);
bool words_row_fires(const struct report_model *m, size_t row); /* from 1 */
/* An input's reading in verdict.json; without one every level is possible. */
bool words_level_is_possible(const cJSON *reading, const char *level);
/* "4, 8, 12 and 16" */
const char *words_rows_fired(struct arena *a, const struct report_model *m);
/* Why it came out so, in one sentence for the head of the report. */
const char *words_lead(struct arena *a, const struct report_model *m);
/* How the inputs were read and what that leaves, in two or three sentences. */
const char *words_reading(struct arena *a, const struct report_model *m);
/* A count of an object, or an em dash. */
const char *words_count(struct arena *a, const cJSON *obj, const char *key);
/* [2, 2] -> "2", [0, 3] -> "0 to 3" */
const char *words_interval(struct arena *a, const cJSON *pair);
/* A member's text, or an em dash: a cell of a table is never without a text. */
const char *words_member(const cJSON *obj, const char *key);
/* The same, or "". */
const char *words_or_empty(const cJSON *obj, const char *key);
/* A value of any JSON kind on one line. */
const char *words_value(struct arena *a, const cJSON *v);
/* Strings of a list as "a, b"; an em dash for none. */
const char *words_list(struct arena *a, const cJSON *list);
/* "a, b and c" */
const char *words_join(struct arena *a, const char *const *parts, size_t n, const char *last);

#endif
