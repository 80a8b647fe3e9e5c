/*
 * Which inputs of the table say something about the same quantities. Inputs of different groups
 * share no quantity, and no relation that always holds links theirs: a contradiction between the
 * conditions of some inputs is one within a group. (Were a link missed, a proof might not be
 * found; none would be wrong.)
 */
#ifndef TRUTHTABLE_PROVE_RELATED_INPUTS_H
#define TRUTHTABLE_PROVE_RELATED_INPUTS_H

#include <stddef.h>

#include "truthtable/condition/decision_rules.h"

/* Fills group[table input] with 0..n-1 in order of first appearance and returns n. */
size_t related_groups(const struct rules *rules, size_t *group);

#endif
