/*
 * What the inputs of the table read: the stages that the exclusion budget covers, and what is read
 * although it is not sealed. The second are measures with counted = false whose stage no counted
 * measure reads, and facts of such stages. Their values are visible while cells run, so that the
 * run could be ended or amended because of them.
 */
#ifndef PREREG_PROGRAM_INPUT_READS_H
#define PREREG_PROGRAM_INPUT_READS_H

#include <cjson/cJSON.h>

#include "base/diag.h"
#include "prereg/program/program.h"

/* Sets `budgeted` of every stage that a counted measure or an input of the table reads, and
 * `excludable` of those and of all stages before them. */
void mark_budgeted(struct plan_program *p);

/* Names as conditions write them, "measure loss" or "fact.train.val_loss", each once, in the
 * table's order. The caller deletes it. */
cJSON *open_reads(const struct plan_program *p) __attribute__((returns_nonnull));
/* Warns at the first condition that reads each of them. */
void open_reads_check(const struct plan_program *p, struct diag *diag);

#endif
