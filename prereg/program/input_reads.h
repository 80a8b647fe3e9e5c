/*
 * What the inputs of the table read, as far as their text shows: the stages whose metrics and facts
 * conditions name. Conditions are compiled in truthtable/, which this room does not know; a name in
 * a condition has one form only, so that its words are enough.
 */
#ifndef PREREG_PROGRAM_INPUT_READS_H
#define PREREG_PROGRAM_INPUT_READS_H

#include "prereg/program/program.h"

/* Whether the condition names this measure ("[mmlu]", "measure.mmlu") or a fact of this stage
 * ("fact.train.x"); texts in quotes are not names. */
bool condition_reads_measure(const char *text, const char *measure);
bool condition_reads_fact_of(const char *text, const char *stage);
/* The name, of *n bytes, of the next fact of this stage at or behind *at, which moves behind it;
 * NULL: there is none. */
const char *condition_next_fact_of(const char **at, const char *stage, size_t *n);

/* Sets `budgeted` of every stage that a counted measure or an input of the table reads, and
 * `excludable` of those and of all stages before them. */
void mark_budgeted(struct plan_program *p);

#endif
