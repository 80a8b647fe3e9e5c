/*
 * Effects and the first error as text, from verdict.json alone (truthtable/evaluate/effects.h), so
 * that every command and the report print the same lines. Plain ASCII but for names; one line each,
 * whatever a name holds.
 */
#ifndef TRUTHTABLE_EVALUATE_EFFECT_LINES_H
#define TRUTHTABLE_EVALUATE_EFFECT_LINES_H

#include <cjson/cJSON.h>

#include "base/strbuf.h"

/* What a terminal is shown of them; verdict.json has all. */
#define EFFECTS_SHOWN 12

/* Appends at most `max` lines of verdict.json's effects, each behind `indent`, and how many more
 * there are. */
void effect_lines(const cJSON *verdict, size_t max, const char *indent, struct strbuf *out);
/* Where no outcome binds, appends a line each for the first error and the first input that is open;
 * nothing of a verdict that binds. */
void effect_error_lines(const cJSON *verdict, const char *indent, struct strbuf *out);
/* The task that the first error is of, "CELL/STAGE"; NULL: none. Borrowed. */
const char *effect_error_task(const cJSON *verdict);

#endif
