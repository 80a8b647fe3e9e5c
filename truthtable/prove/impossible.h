/*
 * Proofs that a row of the table cannot fire when every record is there and is a number.
 *
 * Each input's conditions are read as what must not be false (the row's level) and not be true (the
 * levels before it), or, as the other way a level becomes possible, as all false. What is linear in
 * the quantities of the program becomes exact inequalities, along with what always holds between
 * those quantities (0 <= counter <= measures, |mean| <= max_abs, scores within 0..1, ...); what is
 * not linear, and what may be undetermined even then, constrains nothing. A row is impossible when
 * no branch of all this has a solution in real numbers. Rounding of 1e-16 is not modelled.
 */
#ifndef TRUTHTABLE_PROVE_IMPOSSIBLE_H
#define TRUTHTABLE_PROVE_IMPOSSIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "truthtable/condition/decision_rules.h"

/* levels: one per table input; INDEX_NONE leaves an input open. False: not proved. */
bool row_is_impossible(const struct rules *rules, const size_t *levels);

#endif
