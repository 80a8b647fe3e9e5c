/*
 * What the table reads although it is not sealed: measures with counted = false whose stage no
 * counted measure reads, and facts of such stages. Their values are visible while cells run, so
 * that the run could be ended or amended because of them.
 *
 * Conditions are not parsed (their grammar is truthtable's): names are searched in their text.
 */
#ifndef PREREG_PROGRAM_OPEN_READS_H
#define PREREG_PROGRAM_OPEN_READS_H

#include <cjson/cJSON.h>

#include "base/diag.h"
#include "prereg/program/program.h"

/* Names as conditions write them, "measure loss" or "fact.train.val_loss", each once, in the
 * table's order. The caller deletes it. */
cJSON *open_reads(const struct plan_program *p) __attribute__((returns_nonnull));
/* A warning at the first condition that reads each of them. */
void open_reads_check(const struct plan_program *p, struct diag *diag);

#endif
